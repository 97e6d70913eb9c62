//! Writes files atomically: a file appears whole or not at all.
//!
//! The installer stages all files first: it writes each file to the directory of its destination,
//! under a name that no runtime reads, and syncs the file to disk. Then the installer renames the
//! files, which needs no disk space.
//!
//! containerd watches its CNI directory. A rename in this directory causes two events: one for the
//! old name, and one for the new name. containerd ignores the event for the new name, and reloads
//! its configuration only at the event for the old name. If the installer renamed a file from a
//! different directory, containerd would not get the event for the old name. The installer also
//! renames the binary into place, because the kernel refuses writes to a running program.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::SetupError;
use crate::regular_file::found;

/// The prefix and suffix of the name of a staged file.
const PREFIX: &str = ".jackfield-";
const SUFFIX: &str = ".tmp";

/// A file that is written but not yet in place. Dropping the value removes the file.
#[derive(Debug)]
pub(super) struct StagedFile {
    file: NamedTempFile,
    target: PathBuf,
}

impl StagedFile {
    /// Writes the content of `source` to a new file beside `target`.
    pub(super) fn new(
        target: &Path,
        mut source: impl Read,
        mode: u32,
    ) -> Result<StagedFile, SetupError> {
        let dir = target.parent().unwrap_or(Path::new("/"));
        let mut stage = || -> io::Result<NamedTempFile> {
            let mut file = tempfile::Builder::new()
                .prefix(PREFIX)
                .suffix(SUFFIX)
                .tempfile_in(dir)?;
            io::copy(&mut source, file.as_file_mut())?;
            file.as_file()
                .set_permissions(Permissions::from_mode(mode))?;
            file.as_file().sync_all()?;
            Ok(file)
        };
        Ok(StagedFile {
            file: stage().map_err(|cause| SetupError::io(target, "written", cause))?,
            target: target.to_owned(),
        })
    }

    /// Gives the file to a user and a group.
    pub(super) fn owned_by(self, (user, group): (u32, u32)) -> Result<StagedFile, SetupError> {
        fchown(self.file.as_file(), Some(user), Some(group))
            .map_err(|cause| SetupError::io(&self.target, "given to its owner", cause))?;
        Ok(self)
    }

    /// Renames the file to its target.
    pub(super) fn put(self) -> Result<(), SetupError> {
        let StagedFile { file, target } = self;
        file.persist(&target)
            .map_err(|error| SetupError::io(&target, "put in place", error.error))?;
        sync_dir_of(&target);
        Ok(())
    }
}

/// Removes a file, unless it is gone already.
pub(super) fn remove(path: &Path) -> Result<(), SetupError> {
    removed(path, fs::remove_file(path))
}

/// Removes a directory with everything in it, unless it is gone already.
pub(super) fn remove_dir(path: &Path) -> Result<(), SetupError> {
    removed(path, fs::remove_dir_all(path))
}

fn removed(path: &Path, outcome: io::Result<()>) -> Result<(), SetupError> {
    found(outcome).map_err(|cause| SetupError::io(path, "removed", cause))?;
    sync_dir_of(path);
    Ok(())
}

/// Removes the staged files that an earlier, interrupted run left in `dir`.
pub(super) fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Syncs the directory of `path`, so that a rename or removal is on disk. If the sync fails, a
/// power loss may undo the last change. If that change was part of an installation,
/// `install --watch` then repeats it.
fn sync_dir_of(path: &Path) {
    if let Some(dir) = path.parent() {
        let _ = File::open(dir).and_then(|dir| dir.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staged_file_is_put_in_place_or_disappears() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.conf");
        drop(StagedFile::new(&target, &b"x"[..], 0o600).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        StagedFile::new(&target, &b"x"[..], 0o600)
            .unwrap()
            .put()
            .unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"x");
        assert_eq!(
            fs::metadata(&target).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let missing = dir.path().join("no/a");
        match StagedFile::new(&missing, &b"x"[..], 0o600).unwrap_err() {
            SetupError::Io { path, action, .. } => {
                assert_eq!((path, action), (missing, "written"));
            }
            error => panic!("{error}"),
        }
    }

    #[test]
    fn only_the_staged_files_of_an_interrupted_run_are_swept() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".jackfield-abc.tmp"), "").unwrap();
        fs::write(dir.path().join("10-a.conf"), "").unwrap();
        sweep(dir.path());
        let rest: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
        assert_eq!(rest.len(), 1);
        assert_eq!(rest[0].file_name(), "10-a.conf");
    }
}
