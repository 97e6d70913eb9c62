//! What the installer reports while it works, as data.

mod words;

use std::io;
use std::path::PathBuf;

use super::problem::{Drift, NoNetwork};
use crate::journal::Key;

/// A step of the installer, or something that an administrator should know.
#[derive(Debug)]
pub enum Notice {
    /// Binary and configuration are in place.
    Installed {
        /// The binary.
        binary: PathBuf,
        /// The configuration.
        conf: PathBuf,
        /// The cluster network behind it; `None` where `delegates` has it.
        network: Option<String>,
    },
    /// All is well on the node.
    Well,
    /// The installer waits for the cluster network.
    WaitsForNetwork {
        /// The directory.
        dir: PathBuf,
        /// Why there is none.
        reason: NoNetwork,
    },
    /// The cluster network was removed.
    NetworkGone {
        /// The directory.
        dir: PathBuf,
        /// Why there is none.
        reason: NoNetwork,
    },
    /// The installer makes a repair.
    Repairs {
        /// The number of the repair within ten minutes.
        number: usize,
        /// The most repairs within ten minutes.
        most: usize,
        /// What it repairs.
        drift: Drift,
    },
    /// Other plugins were appended to our list.
    Followed {
        /// The name of our configuration.
        name: String,
        /// Their types.
        followers: Vec<String>,
    },
    /// The installer follows the cluster network to another file.
    Follows(Drift),
    /// The configuration of Multus is beside ours.
    UnusedMultus {
        /// The configuration of Multus.
        file: PathBuf,
    },
    /// A key of Multus' configuration needs attention.
    Remark {
        /// The configuration of Multus.
        file: PathBuf,
        /// What to know about the key.
        remark: TakeoverRemark,
    },
    /// `--back` finds no installation.
    NotInstalled,
    /// `--back` finds no Multus.
    NoMultusToGoBackTo,
    /// Multus has the node again.
    MultusIsBack {
        /// Our binary, which stays.
        binary: PathBuf,
    },
    /// The output of an attempt to take over, which runs in a process of its own.
    Attempt(String),
    /// `uninstall` finds no installation.
    NothingInstalled {
        /// The directory.
        dir: PathBuf,
    },
    /// A file that another program has rewritten since stays.
    RewrittenStays(PathBuf),
    /// A replaced file is back.
    Restored(PathBuf),
    /// A file is removed.
    Removed(PathBuf),
    /// A configuration of Multus delegates to ours, which goes.
    MultusNamesOurs(PathBuf),
    /// The cluster network's configuration was copied into the runtime's directory.
    NetworkCopied {
        /// The configuration.
        file: PathBuf,
        /// The runtime's directory.
        conf_dir: PathBuf,
        /// The directory to which the cluster network writes.
        cluster_conf_dir: PathBuf,
    },
    /// A binary that another program put in place of ours stays.
    BinaryStays(PathBuf),
    /// Damaged records stay, by force.
    DamagedRecords {
        /// One of the files.
        first: PathBuf,
        /// How many there are.
        count: usize,
    },
    /// The installed configuration is missing, so the journal is looked for in its default place.
    DefaultJournal,
    /// A note of an operation on a sandbox.
    Operation(String),
    /// A sandbox is detached.
    Detached(Key),
    /// The containers that were detached are removed from Multus' cache.
    MultusCacheCleared {
        /// How many.
        count: usize,
        /// The cache.
        dir: PathBuf,
    },
    /// A directory cannot be removed.
    DirStays {
        /// The directory.
        dir: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Nothing of Jackfield is left on the node.
    Uninstalled,
}

/// What an administrator should know about Multus' configuration before the takeover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TakeoverRemark {
    /// Neither Multus nor Jackfield has the key.
    UnknownKey(String),
    /// Multus has no such log level.
    UnknownLogLevel(String),
    /// `delegates` stands beside `clusterNetwork`, which Multus prefers.
    IgnoredDelegates,
    /// Multus' DaemonSet maintains the kubeconfig.
    KubeconfigOfMultus(String),
}
