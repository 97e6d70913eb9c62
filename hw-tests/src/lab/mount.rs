//! Folders of the host that the guest sees.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A folder that appears in the guest at `/mnt/TAG`, read-only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(super) tag: String,
    pub(super) folder: PathBuf,
}

impl Mount {
    /// A folder of the suite's own.
    pub(super) fn of(tag: &str, folder: &Path) -> Self {
        Self {
            tag: tag.to_owned(),
            folder: folder.to_owned(),
        }
    }
}

impl FromStr for Mount {
    type Err = MountError;

    fn from_str(text: &str) -> Result<Self, MountError> {
        let Some((tag, folder)) = text.split_once('=') else {
            return Err(MountError::Form(text.to_owned()));
        };
        // 9p carries tags of up to 31 bytes; QEMU and the kernel's command line split at commas.
        let fits = (1..=31).contains(&tag.len())
            && tag
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !fits || ["runner", "out", "cni", "dpdk"].contains(&tag) {
            return Err(MountError::Tag(tag.to_owned()));
        }
        let folder = PathBuf::from(folder);
        if !folder.is_dir() || folder.to_str().is_none_or(|path| path.contains(',')) {
            return Err(MountError::Folder(folder));
        }
        Ok(Self {
            tag: tag.to_owned(),
            folder,
        })
    }
}

/// Text that is no mount.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MountError {
    #[error("'{0}' is no mount; remedy: write TAG=DIR, as in firmware=/lib/firmware")]
    Form(String),
    #[error(
        "'{0}' is no tag; remedy: 1 to 31 letters, digits and hyphens, not runner, out, cni or dpdk"
    )]
    Tag(String),
    #[error("{}: no folder, or a comma in its name; remedy: name a folder that exists", .0.display())]
    Folder(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_a_tag_and_a_folder() {
        let mount: Mount = "tools=/tmp".parse().unwrap();
        assert_eq!((mount.tag.as_str(), mount.folder), ("tools", "/tmp".into()));
    }

    #[test]
    fn what_is_no_mount_is_refused() {
        for (text, part) in [
            ("tools", "TAG=DIR"),
            ("=/tmp", "no tag"),
            ("a,b=/tmp", "no tag"),
            ("out=/tmp", "no tag"),
            ("cni=/tmp", "no tag"),
            ("tools=/no/such/folder", "/no/such/folder"),
        ] {
            let error = text.parse::<Mount>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
