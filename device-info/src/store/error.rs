//! Errors of the files of device information.

use std::io;
use std::path::Path;

use crate::info::DeviceInfoError;
use crate::quoted::Quoted;

/// Why a file of device information was not read, written or removed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A text that cannot be part of a file name.
    #[error(
        "the {what} {value} cannot be part of a file name; use one without /, control characters or a leading dot"
    )]
    Name {
        /// What the text is, for example a resource name.
        what: &'static str,
        /// The text.
        value: Quoted,
    },
    /// A file or directory that is unsafe to use.
    #[error("{path} {finding}; remove it, and check what created it")]
    Unsafe {
        /// The file or directory.
        path: String,
        /// What is wrong with the file or directory.
        finding: UnsafeFile,
    },
    /// A file whose content is not valid device information.
    #[error("{path}: {cause}; remove the file, or restart the device plugin that wrote it")]
    Content {
        /// The file.
        path: String,
        /// The parser's error.
        #[source]
        cause: DeviceInfoError,
    },
    /// A file that describes a different device.
    #[error(
        "{path} describes a device other than {asked}: the file is stale, or two resources share this file name; remove the file, or rename a resource"
    )]
    OtherDevice {
        /// The file.
        path: String,
        /// The requested device.
        asked: Quoted,
    },
    /// An error of the file system.
    #[error(
        "{path} cannot be {action}: {source}; check the directory's owner, mode and free space"
    )]
    Io {
        /// The file or directory.
        path: String,
        /// The failed action.
        action: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
}

/// Why a file or its directory is unsafe to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsafeFile {
    /// `dp` or `cni`, which should be a directory, is a symbolic link or a file.
    #[error("is not a directory")]
    NotDirectory,
    /// The file is a symbolic link.
    #[error("is a symbolic link")]
    Symlink,
    /// The file is a FIFO, a device, a socket or a directory.
    #[error("is not a regular file")]
    NotRegular,
    /// The owner is neither root nor the effective user of this process.
    #[error("belongs neither to root nor to the user of this process")]
    ForeignOwner,
    /// The file is larger than 64 KiB.
    #[error("is larger than 64 KiB")]
    TooLarge,
}

impl StoreError {
    pub(super) fn name(what: &'static str, value: &str) -> Self {
        Self::Name {
            what,
            value: Quoted::new(value),
        }
    }

    pub(super) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Self::Io {
            path: path.display().to_string(),
            action,
            source,
        }
    }
}
