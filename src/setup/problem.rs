//! What can be wrong with the runtime's directory and with what was installed, as data.

mod words;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::cluster::conf_dir::ConfDirError;
use crate::cni::{JsonError, NetworkConfigError};

/// Why a file cannot be used as a CNI configuration.
#[derive(Debug)]
pub enum ConfFileProblem {
    /// The file is not a regular file.
    NotRegular,
    /// The file, or a file of its sibling folder, cannot be read.
    Unreadable(ConfDirError),
    /// The text is not a JSON object.
    Json(JsonError),
    /// The object is not a network configuration.
    Network(NetworkConfigError),
    /// The chain has Jackfield behind another plugin.
    WithinChain,
    /// The network has no name.
    NoName,
}

/// Why there is no cluster network to stand in front of.
#[derive(Debug)]
pub enum NoNetwork {
    /// The directory has no configuration of a network.
    Missing,
    /// The first file of the directory cannot be used.
    BrokenFirst {
        /// The file's name.
        name: String,
        /// What is wrong with it.
        cause: Arc<ConfFileProblem>,
    },
    /// `clusterNetwork` names something that is not a file.
    NamedNotAFile(PathBuf),
    /// `clusterNetwork` names a file that cannot be read.
    NamedUnreadable(ConfDirError),
    /// `clusterNetwork` names a file that is not a network configuration.
    NamedInvalid {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        cause: NetworkConfigError,
    },
}

/// How a node differs from what was, or is to be, installed on it.
#[derive(Debug, Clone)]
pub enum Drift {
    /// Another program renamed our configuration.
    Renamed {
        /// The configuration.
        file: PathBuf,
        /// Its new name.
        to: String,
    },
    /// Our configuration was changed into something that is not a configuration.
    Damaged {
        /// The configuration.
        file: PathBuf,
        /// What is wrong with it.
        cause: Arc<ConfFileProblem>,
    },
    /// The file of our configuration holds another program's.
    Overwritten {
        /// The file.
        file: PathBuf,
    },
    /// Our configuration is missing.
    Missing {
        /// The configuration.
        file: PathBuf,
    },
    /// Another file sorts before our configuration.
    NotFirst {
        /// The file that the runtime takes.
        first: PathBuf,
        /// The name of ours.
        ours: String,
    },
    /// Our configuration names another cluster network than it should.
    OtherNetwork {
        /// The network that it should name, if it should name one.
        wanted: Option<String>,
        /// The network that it names, if it names one.
        current: Option<String>,
    },
    /// Our configuration differs in another key.
    OtherContent {
        /// The configuration.
        file: PathBuf,
    },
    /// The binary has another content.
    BinaryReplaced {
        /// The binary.
        path: PathBuf,
    },
    /// The binary cannot be read.
    BinaryUnreadable {
        /// The binary.
        path: PathBuf,
        /// Why.
        cause: Arc<io::Error>,
    },
    /// The binary has another mode or owner.
    BinaryMode {
        /// The binary.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Its user.
        owner: u32,
    },
    /// The manifest of the installation is missing.
    NoManifest,
}

impl Drift {
    /// Whether the binary differs, not the runtime's directory.
    pub(super) fn is_of_binary(&self) -> bool {
        matches!(
            self,
            Drift::BinaryReplaced { .. }
                | Drift::BinaryUnreadable { .. }
                | Drift::BinaryMode { .. }
        )
    }
}
