//! Operations on the files of the journal and of the locks. In unit tests, a simulated
//! [machine](crate::machine) decides the outcome of each operation.

use std::fs::{self, DirEntry, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::machine::{Operation, Verdict, judge};

/// Runs `act`. In a unit test, the simulated machine may refuse the operation, or return success
/// without running `act`.
fn unless_judged(operation: Operation<'_>, act: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    match judge(operation) {
        Verdict::Proceed => act(),
        Verdict::Refuse(cause) => Err(cause),
        Verdict::Pretend => Ok(()),
    }
}

/// Opens a file with `options`.
///
/// # Errors
/// The error of the file system.
pub(crate) fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    unless_judged(Operation::Open(path), || Ok(()))?;
    options.open(path)
}

/// Writes `bytes` in one system call. Returns how many bytes the file accepted.
///
/// # Errors
/// The error of the file system.
pub(crate) fn write(mut file: &File, bytes: &[u8]) -> io::Result<usize> {
    match judge(Operation::Write(file, bytes)) {
        Verdict::Proceed => file.write(bytes),
        Verdict::Refuse(cause) => Err(cause),
        Verdict::Pretend => Ok(bytes.len()),
    }
}

/// Renames a file, and replaces the file `to` if there is one.
///
/// # Errors
/// The error of the file system.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    unless_judged(Operation::Rename(from, to), || fs::rename(from, to))
}

/// Removes a file or a symbolic link.
///
/// # Errors
/// The error of the file system.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    unless_judged(Operation::Remove(path), || fs::remove_file(path))
}

/// Creates the symbolic link `path`.
///
/// # Errors
/// The error of the file system.
pub(crate) fn link(target: impl AsRef<Path>, path: &Path) -> io::Result<()> {
    let link = || std::os::unix::fs::symlink(target, path);
    unless_judged(Operation::Link(path), link)
}

/// Opens a file with `options` and reads all of it.
///
/// # Errors
/// The error of the file system.
pub(crate) fn read(options: &OpenOptions, path: &Path) -> io::Result<Vec<u8>> {
    unless_judged(Operation::Read(path), || Ok(()))?;
    let mut bytes = Vec::with_capacity(8 << 10);
    options.open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the target of a symbolic link.
///
/// # Errors
/// The error of the file system.
pub(crate) fn read_link(path: &Path) -> io::Result<PathBuf> {
    unless_judged(Operation::Read(path), || Ok(()))?;
    fs::read_link(path)
}

/// Lists a directory.
///
/// # Errors
/// The error of the file system.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<DirEntry>> {
    unless_judged(Operation::Read(dir), || Ok(()))?;
    let entries: io::Result<Vec<DirEntry>> = fs::read_dir(dir)?.collect();
    #[cfg(test)]
    let entries = entries.map(in_order);
    entries
}

/// Sorts the entries if a simulation runs. The file system returns the entries in no particular
/// order, but each run of a simulation must see the same order.
#[cfg(test)]
fn in_order(mut entries: Vec<DirEntry>) -> Vec<DirEntry> {
    if crate::machine::current().is_some() {
        entries.sort_by_key(DirEntry::file_name);
    }
    entries
}

/// Locks a file (`flock`) if no other open file description holds the lock.
///
/// # Errors
/// `WouldBlock` if the lock is taken, or the error of the file system.
pub(crate) fn try_lock(file: &File) -> Result<(), TryLockError> {
    lock(file, File::try_lock)
}

/// Locks a file as [`try_lock`] does, but shares the lock with other callers of this function.
///
/// # Errors
/// The errors of [`try_lock`].
pub(crate) fn try_lock_shared(file: &File) -> Result<(), TryLockError> {
    lock(file, File::try_lock_shared)
}

fn lock(file: &File, lock: fn(&File) -> Result<(), TryLockError>) -> Result<(), TryLockError> {
    match judge(Operation::Lock(file)) {
        Verdict::Proceed => lock(file),
        Verdict::Refuse(cause) => Err(TryLockError::Error(cause)),
        Verdict::Pretend => Ok(()),
    }
}

/// Unlocks a file.
///
/// # Errors
/// The error of the file system.
pub(crate) fn unlock(file: &File) -> io::Result<()> {
    unless_judged(Operation::Unlock(file), || file.unlock())
}
