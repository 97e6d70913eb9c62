//! Files that appear whole or not at all.
//!
//! Everything that an installation writes is staged first, each file beside its place under a
//! name that no runtime reads, synced to disk; only when all of it is there is it put in place,
//! by renames, which need no space. A runtime's watch misses what is renamed from another
//! directory, and opening a binary for writing while plugins run it is refused.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::SetupError;

/// What a file on its way is called.
const PREFIX: &str = ".jackfield-";
const SUFFIX: &str = ".tmp";

/// A file that is written and not yet in its place; dropped, it is gone.
#[derive(Debug)]
pub(super) struct Staged {
    file: NamedTempFile,
    target: PathBuf,
}

impl Staged {
    /// Writes `bytes` beside `target`.
    pub(super) fn text(target: &Path, bytes: &[u8], mode: u32) -> Result<Staged, SetupError> {
        Staged::with(target, mode, |file| file.write_all(bytes))
    }

    /// Copies an open file beside `target`.
    pub(super) fn copy(target: &Path, source: &mut File, mode: u32) -> Result<Staged, SetupError> {
        Staged::with(target, mode, |file| io::copy(source, file).map(drop))
    }

    fn with(
        target: &Path,
        mode: u32,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<Staged, SetupError> {
        let dir = target.parent().unwrap_or(Path::new("/"));
        let stage = || -> io::Result<NamedTempFile> {
            let mut file = tempfile::Builder::new()
                .prefix(PREFIX)
                .suffix(SUFFIX)
                .tempfile_in(dir)?;
            write(file.as_file_mut())?;
            file.as_file()
                .set_permissions(Permissions::from_mode(mode))?;
            file.as_file().sync_all()?;
            Ok(file)
        };
        Ok(Staged {
            file: stage().map_err(|cause| SetupError::io(target, "cannot be written", cause))?,
            target: target.to_owned(),
        })
    }

    /// Gives it to a user and a group.
    pub(super) fn owned_by(self, (user, group): (u32, u32)) -> Result<Staged, SetupError> {
        fchown(self.file.as_file(), Some(user), Some(group))
            .map_err(|cause| SetupError::io(&self.target, "cannot be given to its owner", cause))?;
        Ok(self)
    }

    /// Puts it in its place.
    pub(super) fn put(self) -> Result<(), SetupError> {
        let Staged { file, target } = self;
        file.persist(&target)
            .map_err(|error| SetupError::io(&target, "cannot be put in place", error.error))?;
        sync_dir_of(&target);
        Ok(())
    }
}

/// Takes a file away; one that is gone is no error.
pub(super) fn remove(path: &Path) -> Result<(), SetupError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(SetupError::io(path, "cannot be removed", cause))
        }
        _ => {
            sync_dir_of(path);
            Ok(())
        }
    }
}

/// Takes away what an earlier run that was ended left in `dir` on its way.
pub(super) fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) && name.ends_with(SUFFIX) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A name in a directory is on disk when the directory is. Where that cannot be had, a power loss
/// costs the last change, which `--watch` makes again.
pub(super) fn sync_dir_of(path: &Path) {
    if let Some(dir) = path.parent() {
        let _ = File::open(dir).and_then(|dir| dir.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_staged_file_appears_when_it_is_put_and_is_gone_when_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.conf");
        drop(Staged::text(&target, b"x", 0o600).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        Staged::text(&target, b"x", 0o600).unwrap().put().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"x");
        assert_eq!(
            fs::metadata(&target).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let error = Staged::text(&dir.path().join("no/a"), b"x", 0o600).unwrap_err();
        assert!(
            error.to_string().contains("no/a: cannot be written"),
            "{error}"
        );
    }

    #[test]
    fn what_an_ended_run_left_is_swept_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".jackfield-abc.tmp"), "").unwrap();
        fs::write(dir.path().join("10-a.conf"), "").unwrap();
        sweep(dir.path());
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].file_name(), "10-a.conf");
    }
}
