//! The binaries of a chain.

use std::path::PathBuf;

use super::search::{Binary, FindError, Ours, find, list};
use crate::cni::{NetworkConfig, PluginType};

/// The binaries of a chain, with one entry for each plugin.
///
/// If a binary is missing, an ADD runs no plugin and fails. A DEL runs the plugins whose binaries
/// were found.
#[derive(Clone, Debug)]
pub struct Binaries(Vec<Result<Binary, FindError>>);

impl Binaries {
    /// Finds the binaries of all plugins of a chain: see [`find`].
    #[must_use]
    pub fn find(dirs: &[PathBuf], config: &NetworkConfig, ours: &Ours) -> Self {
        let plugins = config.plugins().iter();
        let binaries = plugins.map(|plugin| find(dirs, plugin.plugin_type(), ours));
        Self(binaries.collect())
    }

    /// Returns the binaries that were found, in the order of the chain.
    pub fn found(&self) -> impl Iterator<Item = &Binary> {
        self.0.iter().flatten()
    }

    /// Returns an error for each plugin without a usable binary. The number is the plugin's
    /// position in the chain, from 0.
    pub fn missing(&self) -> impl Iterator<Item = (usize, &FindError)> {
        let places = self.0.iter().enumerate();
        places.filter_map(|(place, binary)| Some((place, binary.as_ref().err()?)))
    }

    /// Returns the binary of the plugin at this position in the chain, from 0.
    pub(super) fn get(&self, place: usize, plugin: &PluginType) -> Result<&Binary, FindError> {
        match self.0.get(place) {
            Some(found) => found.as_ref().map_err(Clone::clone),
            None => Err(FindError::NotFound {
                plugin: plugin.clone(),
                dirs: list(&[]),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_missing_binaries_of_a_chain_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bridge");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let config = r#"{"name":"n","plugins":[{"type":"bridge"},{"type":"nope"}]}"#;
        let config = NetworkConfig::parse(config.as_bytes()).unwrap();
        let ours = Ours::this_process().unwrap();
        let binaries = Binaries::find(&[dir.path().to_owned()], &config, &ours);
        assert_eq!(
            binaries
                .missing()
                .map(|(place, _)| place)
                .collect::<Vec<_>>(),
            [1]
        );
        assert_eq!(
            binaries.get(0, &"bridge".parse().unwrap()).unwrap().path(),
            path
        );
        binaries.get(2, &"more".parse().unwrap()).unwrap_err();
    }
}
