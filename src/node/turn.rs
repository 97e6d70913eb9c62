//! One at a time: whoever changes a node's installation holds its directory.

use std::fs::{DirBuilder, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{NodeError, Place};

/// How long somebody else's turn is waited for: a pod that is being replaced ends within this.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(50);

/// The lock on the runtime's directory, held. It needs no file, and ends with its process.
#[derive(Debug)]
pub(super) struct Turn {
    dir: File,
    /// Whether the directory was made just now.
    pub(super) made_dir: bool,
}

impl Turn {
    /// Takes the turn. A directory of our own is made where it is missing; one that the cluster
    /// network shares is somebody else's to make.
    pub(super) fn take(place: &Place) -> Result<Turn, NodeError> {
        let here = place.here(&place.conf_dir);
        let (dir, made_dir) = match File::open(&here) {
            Ok(dir) => (dir, false),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound && place.is_apart() => {
                let made = DirBuilder::new().create(&here);
                made.map_err(|cause| NodeError::io(&here, "cannot be made", cause))?;
                (open(&here)?, true)
            }
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                return Err(NodeError::NoConfDir { dir: here });
            }
            Err(cause) => return Err(NodeError::io(&here, "cannot be read", cause)),
        };
        let until = Instant::now() + PATIENCE;
        loop {
            match dir.try_lock() {
                Ok(()) => {
                    return Ok(Turn { dir, made_dir });
                }
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(NodeError::Busy { dir: here }),
                Err(TryLockError::Error(cause)) => {
                    return Err(NodeError::io(&here, "cannot be locked", cause));
                }
            }
        }
    }
}

impl Turn {
    /// Takes it again where the directory was made anew: the lock is on the one that is gone.
    pub(super) fn renew(&mut self, place: &Place) -> Result<(), NodeError> {
        let number = |found: Metadata| (found.dev(), found.ino());
        let there = place.here(&place.conf_dir).metadata().ok().map(number);
        if there != self.dir.metadata().ok().map(number) {
            *self = Turn::take(place)?;
        }
        Ok(())
    }
}

fn open(dir: &Path) -> Result<File, NodeError> {
    File::open(dir).map_err(|cause| NodeError::io(dir, "cannot be read", cause))
}
