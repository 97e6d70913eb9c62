//! Folders of the host that the guest mounts.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A folder of the host that the guest mounts read-only at `/mnt/TAG`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(super) tag: String,
    pub(super) folder: PathBuf,
}

impl Mount {
    /// Makes a mount of the suite's own.
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
        // 9p has tags of up to 31 bytes. QEMU and the kernel's command line split at commas.
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

/// A text that is not a mount.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MountError {
    #[error("'{0}' is not a mount; write TAG=DIR, such as firmware=/lib/firmware")]
    Form(String),
    #[error(
        "'{0}' is not a tag; use 1 to 31 letters, digits and hyphens, but not runner, out, cni or dpdk"
    )]
    Tag(String),
    #[error("{}: it is not a folder, or its name has a comma; name an existing folder", .0.display())]
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
    fn invalid_mounts_are_refused() {
        for (text, part) in [
            ("tools", "TAG=DIR"),
            ("=/tmp", "not a tag"),
            ("a,b=/tmp", "not a tag"),
            ("out=/tmp", "not a tag"),
            ("cni=/tmp", "not a tag"),
            ("tools=/no/such/folder", "/no/such/folder"),
        ] {
            let error = text.parse::<Mount>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
