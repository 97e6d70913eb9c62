//! The error for a lock that could not be taken.

use std::io;
use std::path::{Path, PathBuf};

/// Why a lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock. The lock can be one of these:
    ///
    /// - the [`Lock`](super::Lock) of a container;
    /// - the [`Turn`](super::Turn), which a call holds while it reserves devices, MACs and GUIDs;
    /// - the [`ChangesLock`](super::ChangesLock), which prevents a GC during a change of a running
    ///   pod, and a change during a GC.
    #[error("lock {} is held by {holders}; try again when the lock is free", path.display())]
    Busy {
        /// The locked file or directory.
        path: PathBuf,
        /// The process IDs of the lock's holders, for the message.
        holders: String,
    },
    /// The file of the lock, or the directory of the locks, cannot be used.
    #[error(
        "lock {}: {cause}; make the directory of the locks writable, owned by root, mode \
         0700",
        path.display()
    )]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why it cannot be used.
        #[source]
        cause: io::Error,
    },
}

impl LockError {
    pub(super) fn io(path: &Path, cause: io::Error) -> LockError {
        LockError::Io {
            path: path.to_owned(),
            cause,
        }
    }

    pub(super) fn busy(path: &Path, holders: &[i32]) -> LockError {
        let numbers: Vec<String> = holders.iter().map(ToString::to_string).collect();
        LockError::Busy {
            path: path.to_owned(),
            holders: match numbers.as_slice() {
                [] => "a process that could not be identified".to_owned(),
                numbers => format!("process {}", numbers.join(", ")),
            },
        }
    }
}
