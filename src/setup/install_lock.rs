//! The lock of a node's installation. Only one process at a time can change the installation.
//!
//! The runtime's directory is the directory from which the container runtime reads CNI
//! configurations (`--conf-dir`).

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use super::{HostPaths, SetupError, manifest};
use crate::regular_file::found;

/// How long to wait for a process that has the lock. When a DaemonSet replaces its pod, the
/// previous installer ends within this time.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// The lock of an installation, held until this value is dropped.
///
/// The lock is a file in the folder `.jackfield` of the runtime's directory. The folder also
/// contains the [`manifest`], which records what is installed. Only root can enter this folder.
/// Jackfield does not lock the runtime's directory itself, because every user who can read that
/// directory could lock it too.
#[derive(Debug)]
pub(super) struct InstallLock {
    lock: File,
    path: PathBuf,
    /// Whether this process has just created the runtime's directory.
    pub(super) made_dir: bool,
}

impl InstallLock {
    /// Takes the lock.
    ///
    /// If the runtime's directory is missing, there are two cases:
    ///
    /// - The cluster network writes its configuration to another directory (`--cluster-conf-dir`).
    ///   Jackfield then creates the runtime's directory, because perhaps no other program does.
    /// - The cluster network writes its configuration to the runtime's directory. A missing
    ///   directory is then an error, because either the path is wrong, or the node has no cluster
    ///   network.
    pub(super) fn take(paths: &HostPaths) -> Result<InstallLock, SetupError> {
        let dir = paths.here(&paths.conf_dir);
        let made_dir = make_sure_of(&dir, paths)?;
        let path = manifest::lock(paths);
        let until = Instant::now() + PATIENCE;
        loop {
            let lock = open(&path, paths)?;
            match lock.try_lock() {
                Ok(()) if is_at(&lock, &path) => {
                    return Ok(InstallLock {
                        lock,
                        path,
                        made_dir,
                    });
                }
                // The previous owner of the lock removed the file, so open and lock the new file.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(SetupError::Busy(dir)),
                Err(TryLockError::Error(cause)) => {
                    return Err(SetupError::io(&path, "locked", cause));
                }
            }
        }
    }

    /// Takes the lock again if another program removed or replaced the lock file. A lock on the
    /// previous file would not stop other processes from locking the new file.
    pub(super) fn renew(&mut self, paths: &HostPaths) -> Result<(), SetupError> {
        if !is_at(&self.lock, &self.path) {
            *self = InstallLock::take(paths)?;
        }
        Ok(())
    }
}

impl Drop for InstallLock {
    /// If nothing is installed, that is, if there is no manifest, removes the lock file and its
    /// folder. Does not remove a file that another program has put in the lock file's place,
    /// because a process may have locked that file.
    fn drop(&mut self) {
        if is_at(&self.lock, &self.path) {
            manifest::forget_lock(&self.path);
        }
    }
}

/// Makes sure that the runtime's directory exists. Returns whether this call created it.
fn make_sure_of(dir: &Path, paths: &HostPaths) -> Result<bool, SetupError> {
    let failed = |action| move |cause| SetupError::io(dir, action, cause);
    match found(fs::metadata(dir)).map_err(failed("read"))? {
        Some(metadata) if metadata.is_dir() => Ok(false),
        Some(_) => Err(failed("read")(io::ErrorKind::NotADirectory.into())),
        None if !paths.is_apart() => Err(SetupError::NoConfDir(dir.to_owned())),
        None => fs::create_dir(dir)
            .map(|()| true)
            .map_err(failed("created")),
    }
}

fn open(path: &Path, paths: &HostPaths) -> Result<File, SetupError> {
    manifest::make_folder(&manifest::folder(paths))?;
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let opened = options.custom_flags(flags.bits()).open(path);
    opened.map_err(|cause| SetupError::io(path, "opened", cause))
}

/// Whether the open file is the file at the path.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: Metadata| (found.dev(), found.ino());
    let there = fs::symlink_metadata(path).ok().map(number);
    there.is_some() && there == file.metadata().ok().map(number)
}
