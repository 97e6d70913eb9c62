//! What can be wrong with a file of device information.

use std::io;
use std::path::Path;

use crate::info::DeviceInfoError;
use crate::quoted::Quoted;

/// Why a file of device information was not read, written or removed: file, finding, remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A part of a file's name that cannot be one.
    #[error(
        "the {what} {value} cannot be part of a file name: give one without / and control characters"
    )]
    Name {
        /// What it is the name of.
        what: &'static str,
        /// The name.
        value: Quoted,
    },
    /// A file that is not safe to read.
    #[error("{path} {finding}: remove it, and look who put it there")]
    Unsafe {
        /// The file.
        path: String,
        /// What is wrong with it.
        finding: &'static str,
    },
    /// A file that holds no device information, or half of it.
    #[error("{path}: {cause}; remove the file, or restart the device plugin that wrote it")]
    Content {
        /// The file.
        path: String,
        /// What is wrong with it.
        #[source]
        cause: DeviceInfoError,
    },
    /// A file of another device.
    #[error(
        "{path} describes another device than {asked}: two resources share this file name, or it is stale; remove it, or rename a resource"
    )]
    OtherDevice {
        /// The file.
        path: String,
        /// The device that was asked for.
        asked: Quoted,
    },
    /// The file system refused.
    #[error("{path} cannot be {action}: {reason}; look at the directory's owner, mode and room")]
    Io {
        /// The file or directory.
        path: String,
        /// What was to be done with it.
        action: &'static str,
        /// What the system said.
        reason: String,
    },
}

impl StoreError {
    pub(super) fn name(what: &'static str, value: &str) -> Self {
        Self::Name {
            what,
            value: Quoted::new(value),
        }
    }

    pub(super) fn io(path: &Path, action: &'static str, error: &io::Error) -> Self {
        Self::Io {
            path: path.display().to_string(),
            action,
            reason: error.to_string(),
        }
    }
}
