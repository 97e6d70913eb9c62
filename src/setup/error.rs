//! Why a node could not be set up, kept or cleared, as data.

mod words;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::binary::Machine;
use super::problem::{Drift, NoNetwork};
use crate::cluster::conf_dir::ConfDirError;
use crate::cni::JsonError;
use crate::diagnostic;
use crate::journal::JournalError;
use crate::operation::Failure;
use crate::request::{NodeConfigError, RequestError};

/// What stands in the way of a change. The node keeps the network that it had.
///
/// `Display` is one line: the object, what is wrong, and what to do.
#[derive(Debug)]
pub enum SetupError {
    /// An action on a file or directory failed.
    Io {
        /// The path, as this process sees it.
        path: PathBuf,
        /// The action.
        action: FileAction,
        /// Why it failed.
        cause: io::Error,
    },
    /// The runtime's directory does not exist.
    NoConfDir {
        /// The directory.
        dir: PathBuf,
    },
    /// Another process changes the installation.
    Busy {
        /// The directory.
        dir: PathBuf,
    },
    /// There is no network to stand in front of.
    NoClusterNetwork {
        /// The directory.
        dir: PathBuf,
        /// How long the installer waited.
        waited: Duration,
        /// Why there is none.
        reason: Box<NoNetwork>,
    },
    /// The node is Multus', and `--from-multus` is not set.
    Multus {
        /// The configuration of Multus.
        file: PathBuf,
    },
    /// There is no Multus to take over from.
    NoMultus {
        /// The directory.
        dir: PathBuf,
    },
    /// The runtime takes another network than Multus'.
    MultusNotFirst {
        /// The file that the runtime takes.
        first: PathBuf,
        /// The configuration of Multus.
        multus: PathBuf,
    },
    /// The configuration of Multus cannot be used.
    MultusConf {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: Box<MultusConfError>,
    },
    /// The rehearsal found pods that would fail.
    PodsWouldFail {
        /// How many.
        count: usize,
    },
    /// The rehearsal is impossible.
    NoRehearsal {
        /// Why.
        cause: Box<Failure>,
    },
    /// A file of the node sorts before every name that our configuration may have.
    NotFirst {
        /// The file.
        file: PathBuf,
    },
    /// The configuration to install is invalid.
    Conf(Box<NodeConfigError>),
    /// The configuration to install delegates to Jackfield.
    CallsItself {
        /// The value of `clusterNetwork`; `None` where `delegates` does so.
        cluster_network: Option<String>,
    },
    /// A newer binary is installed.
    Downgrade {
        /// The binary.
        path: PathBuf,
        /// Its version.
        installed: Box<semver::Version>,
        /// Ours.
        ours: Box<semver::Version>,
    },
    /// This binary is for another machine than the node's plugins.
    OtherMachine {
        /// A plugin of the node.
        path: PathBuf,
        /// Its machine.
        theirs: Machine,
        /// Ours.
        ours: Machine,
    },
    /// Another program undoes every repair.
    GivenUp(Box<Drift>),
    /// The manifest of the installation cannot be read.
    Manifest {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: Box<ManifestError>,
    },
    /// The manifest of an installation that had replaced a file is missing.
    NoManifest {
        /// The only copy of the file.
        kept: PathBuf,
        /// The folder of the manifest.
        folder: PathBuf,
    },
    /// The manifest of what is installed is missing.
    ManifestGone {
        /// The runtime's directory.
        dir: PathBuf,
    },
    /// With another `journalDir`, pods' records would not be found.
    JournalMoved {
        /// The directory that has the records.
        from: PathBuf,
        /// The directory in which they would be looked for.
        to: PathBuf,
        /// How many sandboxes are on record.
        count: usize,
    },
    /// The journal cannot be read.
    Journal(JournalError),
    /// The journal has damaged records, whose pods may still be attached.
    DamagedRecords {
        /// One of the files.
        first: PathBuf,
        /// How many there are.
        count: usize,
    },
    /// The installed configuration is invalid, so the journal cannot be found.
    InstalledConf(Box<RequestError>),
    /// Sandboxes are on record, and this process runs in a container, where it cannot detach them.
    InContainer {
        /// How many.
        count: usize,
        /// The journal, as the host names it.
        journal: PathBuf,
        /// The installed binary.
        binary: PathBuf,
    },
    /// The sandboxes on record could not be detached.
    Retire(Box<Failure>),
    /// Some sandboxes could not be detached.
    NotDetached {
        /// Why, one failure per sandbox.
        failures: Vec<Failure>,
        /// The installed binary.
        binary: PathBuf,
    },
    /// Pods that Jackfield attached still run.
    StillAttached {
        /// The pods, or their containers.
        names: Vec<String>,
        /// The installed binary.
        binary: PathBuf,
    },
    /// A directory cannot be watched.
    Watch {
        /// The directory.
        dir: PathBuf,
        /// Why.
        cause: io::Error,
    },
}

/// An action on a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// Read it.
    Read,
    /// Write it.
    Write,
    /// Create it.
    Create,
    /// Open it.
    Open,
    /// Lock it.
    Lock,
    /// Remove it.
    Remove,
    /// Rename it into its place.
    PutInPlace,
    /// Give it to its user and group.
    ChangeOwner,
    /// Start it.
    Start,
}

/// Why the configuration of Multus cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MultusConfError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] ConfDirError),
    /// The text is not the expected JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// Another plugin comes before Multus in its list.
    #[error("Multus is not the first plugin of its list")]
    NotFirstPlugin,
}

/// Why the manifest of an installation cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The manifest is not the expected JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The configuration beside the manifest is not a JSON object.
    #[error(transparent)]
    Conf(#[from] JsonError),
    /// The manifest has another form.
    #[error("its form is {found}, this version reads {expected}")]
    Form {
        /// Its form.
        found: u32,
        /// Ours.
        expected: u32,
    },
}

impl SetupError {
    /// A failure of the file system.
    pub(super) fn io(path: &Path, action: FileAction, cause: io::Error) -> SetupError {
        SetupError::Io {
            path: path.to_owned(),
            action,
            cause,
        }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&diagnostic::line(self))
    }
}

impl std::error::Error for SetupError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SetupError::Io { cause, .. } | SetupError::Watch { cause, .. } => Some(cause),
            SetupError::MultusConf { cause, .. } => Some(&**cause),
            SetupError::NoRehearsal { cause } | SetupError::Retire(cause) => Some(&**cause),
            SetupError::Conf(cause) => Some(&**cause),
            SetupError::Manifest { cause, .. } => Some(&**cause),
            SetupError::Journal(cause) => Some(cause),
            SetupError::InstalledConf(cause) => Some(&**cause),
            _ => None,
        }
    }
}
