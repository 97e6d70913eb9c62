//! Why the journal could not be used.

use std::io;
use std::path::Path;

/// Why the journal could not be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Users other than root could put records into the journal.
    #[error("journal {path}: {cause}; make it a directory owned by root, mode 0700")]
    Exposed {
        /// The directory.
        path: String,
        /// Who else can write there.
        cause: String,
    },
    /// A file or directory cannot be used.
    #[error("journal {path} {what}: {cause}; make journalDir a writable directory with free space")]
    Io {
        /// The path.
        path: String,
        /// The operation that failed.
        what: &'static str,
        /// Why.
        cause: String,
    },
}

impl JournalError {
    pub(super) fn io(what: &'static str, path: &Path, cause: &io::Error) -> JournalError {
        JournalError::Io {
            path: path.display().to_string(),
            what,
            cause: cause.to_string(),
        }
    }
}
