//! Why a configuration on disk cannot be used, in words.

use super::ConfDirError;
use crate::diagnostic::Problem;

impl Problem for ConfDirError {
    fn words(&self) -> String {
        match self {
            Self::Missing(path) => format!("{} does not exist", path.display()),
            Self::Empty(dir) => format!(
                "{} has no .conflist, .configlist, .conf, .config or .json",
                dir.display()
            ),
            Self::Plugin { path, source } => format!("{}: {source}", path.display()),
            Self::Unreadable { path, source } => format!("{}: {source}", path.display()),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Missing(_) => "correct the path or wait for the network to be installed",
            Self::Empty(_) => "put one there",
            Self::Plugin { .. } => "make it the configuration of one plugin, or remove it",
            Self::Unreadable { .. } => "make it a readable configuration",
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;
    use crate::cni::PluginConfigError;

    #[test]
    fn each_error_names_its_file_and_what_to_do() {
        let path = || "/d".into();
        for (error, line) in [
            (
                ConfDirError::Missing(path()),
                "/d does not exist; correct the path or wait for the network to be installed",
            ),
            (
                ConfDirError::Empty(path()),
                "/d has no .conflist, .configlist, .conf, .config or .json; put one there",
            ),
            (
                ConfDirError::Plugin {
                    path: path(),
                    source: PluginConfigError::NoType,
                },
                "/d: key \"type\" is missing; name the plugin's binary; make it the \
                 configuration of one plugin, or remove it",
            ),
            (
                ConfDirError::Unreadable {
                    path: path(),
                    source: Arc::new(io::ErrorKind::PermissionDenied.into()),
                },
                "/d: permission denied; make it a readable configuration",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
