//! Why the journal could not be used.

use std::io;
use std::path::{Path, PathBuf};

use crate::diagnostic::{self, Problem};

/// Why the journal could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum JournalError {
    /// Users other than root could put records into the journal.
    Exposed {
        /// The directory.
        path: PathBuf,
        /// The reason, for example that other users can write to the directory.
        #[source]
        cause: io::Error,
    },
    /// A file or directory cannot be used.
    Io {
        /// The path.
        path: PathBuf,
        /// What failed, for example "cannot be read".
        what: &'static str,
        /// Why.
        #[source]
        cause: io::Error,
    },
}

impl JournalError {
    pub(super) fn io(what: &'static str, path: &Path, cause: io::Error) -> JournalError {
        JournalError::Io {
            path: path.to_owned(),
            what,
            cause,
        }
    }
}

impl Problem for JournalError {
    fn words(&self) -> String {
        match self {
            JournalError::Exposed { path, cause } => {
                format!("journal {}: {cause}", path.display())
            }
            JournalError::Io { path, what, cause } => {
                format!("journal {} {what}: {cause}", path.display())
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            JournalError::Exposed { .. } => "make it a directory owned by root, mode 0700",
            JournalError::Io { .. } => "make journalDir a writable directory with free space",
        };
        Some(remedy.to_owned())
    }
}
