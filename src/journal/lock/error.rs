//! Why a lock was not to be had.

use std::io;
use std::path::Path;

/// Why the lock was not to be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else works on the sandbox.
    #[error("sandbox lock {path} is held by {holders}; try again once it has ended")]
    Busy {
        /// The lock's file.
        path: String,
        /// Who holds it, as far as was found.
        holders: String,
    },
    /// The file cannot be used.
    #[error("sandbox lock {path}: {cause}; make its directory root's with mode 0700, and writable")]
    Io {
        /// The lock's file.
        path: String,
        /// Why.
        cause: String,
    },
}

impl LockError {
    pub(super) fn io(path: &Path, cause: &io::Error) -> LockError {
        LockError::Io {
            path: path.display().to_string(),
            cause: cause.to_string(),
        }
    }

    pub(super) fn busy(path: &Path, holders: &[i32]) -> LockError {
        let numbers: Vec<String> = holders.iter().map(ToString::to_string).collect();
        LockError::Busy {
            path: path.display().to_string(),
            holders: match numbers.as_slice() {
                [] => "a process that was not found".to_owned(),
                numbers => format!("process {}", numbers.join(", ")),
            },
        }
    }
}
