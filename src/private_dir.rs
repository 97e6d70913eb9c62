//! Directories whose content Jackfield trusts, such as those of the journal and the locks.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use thiserror::Error;

use crate::regular_file::found;

/// The mode bits that let a group or others write to a directory.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Accepts a missing directory. Accepts an existing directory if it belongs to root or to the user
/// of this process, and if no other user can write to it. Refuses symlinks and files.
///
/// # Errors
/// `PermissionDenied` with the reason, or the error of the file system.
pub(crate) fn check(dir: &Path) -> io::Result<()> {
    let Some(metadata) = found(fs::symlink_metadata(dir))? else {
        return Ok(());
    };
    let refused = |reason: Exposure| Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if !metadata.is_dir() {
        refused(Exposure::NotDirectory)
    } else if owner != 0 && owner != nix::unistd::geteuid().as_raw() {
        refused(Exposure::Owner(owner))
    } else if mode & WRITABLE_BY_OTHERS != 0 {
        refused(Exposure::Writable { mode })
    } else {
        Ok(())
    }
}

/// Why Jackfield cannot trust a directory.
#[derive(Debug, Error)]
enum Exposure {
    #[error("it is not a directory")]
    NotDirectory,
    #[error("user {0} owns it")]
    Owner(u32),
    #[error("other users can write to it (mode {mode:04o})")]
    Writable { mode: u32 },
}

/// Creates a directory and its missing parents. Only the user of this process can enter the new
/// directories.
///
/// # Errors
/// The error of the file system.
pub(crate) fn create(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

/// Runs `act`. If `act` returns `NotFound`, creates `dir` and runs `act` again.
///
/// # Errors
/// The error of `act`, or the error of creating `dir`.
pub(crate) fn or_create<T>(dir: &Path, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match found(act())? {
        Some(value) => Ok(value),
        None => create(dir).and_then(|()| act()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_directory_that_another_user_can_write_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("private");
        assert!(check(&dir).is_ok(), "not created yet");
        create(&dir).unwrap();
        for (mode, passes) in [
            (0o700, true),
            (0o755, true),
            (0o720, false),
            (0o702, false),
            (0o1777, false),
        ] {
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check(&dir).is_ok(), passes, "{mode:o}");
        }
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
        let link = base.path().join("link");
        symlink(&dir, &link).unwrap();
        assert!(check(&link).is_err());
        let file = base.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(check(&file).is_err());
        if nix::unistd::geteuid().is_root() {
            chown(&dir, Some(65_534), None).unwrap();
            let error = check(&dir).unwrap_err().to_string();
            assert_eq!(error, "user 65534 owns it");
        }
    }
}
