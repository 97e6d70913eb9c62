//! One at a time: whoever changes a node's installation holds its lock.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use super::{HostPaths, SetupError, manifest};

/// How long somebody else's turn is waited for: a pod that is being replaced ends within this.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// The lock of an installation, held until this is dropped.
///
/// It is a file in the folder of the manifest, which only root can enter: a lock on the runtime's own
/// directory would be anybody's, who can read it.
#[derive(Debug)]
pub(super) struct InstallLock {
    lock: File,
    path: PathBuf,
    /// Whether the runtime's directory was made just now.
    pub(super) made_dir: bool,
}

impl InstallLock {
    /// Takes the turn. A directory of our own is made where it is missing; one that the cluster
    /// network shares is somebody else's to make.
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
                // It was removed with the installation: there is a new one to lock.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(SetupError::Busy { dir }),
                Err(TryLockError::Error(cause)) => {
                    return Err(SetupError::io(&path, "cannot be locked", cause));
                }
            }
        }
    }

    /// Takes it again where the folder was made anew: the lock is on the one that is gone.
    pub(super) fn renew(&mut self, paths: &HostPaths) -> Result<(), SetupError> {
        if !is_at(&self.lock, &self.path) {
            *self = InstallLock::take(paths)?;
        }
        Ok(())
    }
}

impl Drop for InstallLock {
    /// Where nothing is installed, nothing stays.
    fn drop(&mut self) {
        if is_at(&self.lock, &self.path) {
            manifest::forget_lock(&self.path);
        }
    }
}

/// Makes sure that the runtime's directory is there, and returns whether it was made.
fn make_sure_of(dir: &Path, paths: &HostPaths) -> Result<bool, SetupError> {
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => Ok(false),
        Ok(_) => {
            let cause = io::Error::from(io::ErrorKind::NotADirectory);
            Err(SetupError::io(dir, "cannot be read", cause))
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound && paths.is_apart() => {
            let made = DirBuilder::new().create(dir);
            made.map_err(|cause| SetupError::io(dir, "cannot be made", cause))?;
            Ok(true)
        }
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Err(SetupError::NoConfDir {
            dir: dir.to_owned(),
        }),
        Err(cause) => Err(SetupError::io(dir, "cannot be read", cause)),
    }
}

fn open(path: &Path, paths: &HostPaths) -> Result<File, SetupError> {
    manifest::make_folder_of(paths)?;
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let opened = options.custom_flags(flags.bits()).open(path);
    opened.map_err(|cause| SetupError::io(path, "cannot be opened", cause))
}

/// Whether the file that is open is the one at the path.
fn is_at(file: &File, path: &Path) -> bool {
    let number = |found: Metadata| (found.dev(), found.ino());
    let there = fs::symlink_metadata(path).ok().map(number);
    there.is_some() && there == file.metadata().ok().map(number)
}
