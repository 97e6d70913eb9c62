//! What can be wrong with the runtime's directory and with the installed files.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::NAME;
use super::binary::MODE;
use crate::cluster::conf_dir::ConfDirError;
use crate::cni::{JsonError, NetworkConfigError};

/// What Cilium appends to the name of a configuration that it renames.
const CILIUM: &str = ".cilium_bak";

/// Why a file cannot be used as a CNI configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfFileProblem {
    /// The file cannot be read. Or the file has further plugins in a folder (CNI 1.1.0 §1), and
    /// this folder cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ConfDirError),
    /// The text is not a JSON object.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The object is not a network configuration.
    #[error(transparent)]
    Network(#[from] NetworkConfigError),
    /// Jackfield comes after another plugin in the list, so the list is not Jackfield's own
    /// configuration. With this list as the cluster network, Jackfield would call itself.
    #[error("its list of plugins contains {NAME}, so {NAME} would call itself")]
    WithinChain,
    /// The network has no name.
    #[error("the key \"name\" is missing")]
    NoName,
}

/// Why there is no cluster network for Jackfield to delegate to.
#[derive(Debug, thiserror::Error)]
pub enum NoNetwork {
    /// The directory has no configuration of a network.
    #[error("there is none")]
    Missing,
    /// A broken file sorts before the first configuration of a network.
    #[error("{name} comes first and is not a configuration: {cause}")]
    BrokenFirst {
        /// The file's name.
        name: String,
        /// What is wrong with it.
        cause: Arc<ConfFileProblem>,
    },
    /// `clusterNetwork` names a file that cannot be used.
    #[error("clusterNetwork names {file}, which is not a configuration: {cause}")]
    Named {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        cause: ConfFileProblem,
    },
}

/// How the files on a node differ from the installation.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Drift {
    /// Another program renamed Jackfield's configuration.
    #[error("{file} was renamed to {to}")]
    Renamed {
        /// The configuration.
        file: PathBuf,
        /// The new name of the configuration's file.
        to: String,
    },
    /// Jackfield's configuration was changed and cannot be used any more.
    #[error("{0} was changed and is not a configuration: {1}")]
    Damaged(PathBuf, Arc<ConfFileProblem>),
    /// The file of Jackfield's configuration contains the configuration of another program.
    #[error("{0} contains the configuration of another program")]
    Overwritten(PathBuf),
    /// Jackfield's configuration is missing.
    #[error("{0} is missing")]
    Missing(PathBuf),
    /// Another file sorts before Jackfield's configuration.
    #[error("{first} comes before {ours}")]
    NotFirst {
        /// The file that the runtime uses.
        first: PathBuf,
        /// The name of the file with Jackfield's configuration.
        ours: String,
    },
    /// Jackfield's configuration names the wrong cluster network.
    #[error(
        "{NAME} should delegate to {}, but its key \"clusterNetwork\" is {}",
        wanted.as_deref().unwrap_or("the networks of its key \"delegates\""),
        current.as_deref().unwrap_or("missing")
    )]
    OtherNetwork {
        /// The value that `clusterNetwork` should have; `None` if the network is in `delegates`.
        wanted: Option<String>,
        /// The current value of `clusterNetwork`; `None` if the key is missing.
        current: Option<String>,
    },
    /// `clusterNetwork` is right, but another part of Jackfield's configuration differs from what
    /// the installer would write.
    #[error("{0} differs from the configuration to install")]
    OtherContent(PathBuf),
    /// The content of the binary has changed.
    #[error("{0} was replaced")]
    BinaryReplaced(PathBuf),
    /// The binary cannot be read.
    #[error("{0}: {1}")]
    BinaryUnreadable(PathBuf, Arc<io::Error>),
    /// The binary has the wrong mode or owner.
    #[error(
        "{path}: its mode is {mode:o} and its owner is {owner} instead of mode {MODE:o} and owner 0"
    )]
    BinaryMode {
        /// The binary.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// The user ID of its owner.
        owner: u32,
    },
    /// The [`Manifest`](super::manifest::Manifest) is missing.
    #[error("the manifest of the installation (.jackfield/manifest.json) is missing")]
    NoManifest,
}

impl Drift {
    /// Returns how to prevent the difference from coming back after a repair.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Drift::Renamed { to, .. } if to.ends_with(CILIUM) => {
                "set cni.exclusive to false in Cilium's values"
            }
            Drift::NotFirst { .. } => {
                "rename the other program's file, or let only jackfield write to the runtime's directory"
            }
            Drift::OtherNetwork { .. } => {
                "let only one program write the cluster network's configuration"
            }
            _ => "find and stop the program that changes or removes this file",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_of_a_file_or_network_has_its_message() {
        let no_name = || ConfFileProblem::NoName;
        let lines = [
            (
                ConfFileProblem::WithinChain.to_string(),
                "its list of plugins contains jackfield, so jackfield would call itself",
            ),
            (
                ConfFileProblem::NoName.to_string(),
                "the key \"name\" is missing",
            ),
            (NoNetwork::Missing.to_string(), "there is none"),
            (
                NoNetwork::BrokenFirst {
                    name: "a".to_owned(),
                    cause: Arc::new(no_name()),
                }
                .to_string(),
                "a comes first and is not a configuration: the key \"name\" is missing",
            ),
            (
                NoNetwork::Named {
                    file: "/a".into(),
                    cause: no_name(),
                }
                .to_string(),
                "clusterNetwork names /a, which is not a configuration: the key \"name\" is missing",
            ),
        ];
        for (words, expected) in lines {
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn drift_has_a_message_and_a_remedy() {
        let stop = "find and stop the program that changes or removes this file";
        let renamed = |to: &str| Drift::Renamed {
            file: "/a".into(),
            to: to.to_owned(),
        };
        for (drift, words, remedy) in [
            (
                renamed("a.cilium_bak"),
                "/a was renamed to a.cilium_bak",
                "set cni.exclusive to false in Cilium's values",
            ),
            (renamed("a.old"), "/a was renamed to a.old", stop),
            (
                Drift::Damaged("/a".into(), Arc::new(ConfFileProblem::NoName)),
                "/a was changed and is not a configuration: the key \"name\" is missing",
                stop,
            ),
            (Drift::Missing("/a".into()), "/a is missing", stop),
            (
                Drift::NotFirst {
                    first: "/a".into(),
                    ours: "b".to_owned(),
                },
                "/a comes before b",
                "rename the other program's file, or let only jackfield write to the runtime's directory",
            ),
            (
                Drift::OtherNetwork {
                    wanted: Some("/a".to_owned()),
                    current: Some("/b".to_owned()),
                },
                "jackfield should delegate to /a, but its key \"clusterNetwork\" is /b",
                "let only one program write the cluster network's configuration",
            ),
            (
                Drift::BinaryMode {
                    path: "/a".into(),
                    mode: 0o777,
                    owner: 7,
                },
                "/a: its mode is 777 and its owner is 7 instead of mode 755 and owner 0",
                stop,
            ),
        ] {
            assert_eq!(
                (drift.to_string().as_str(), drift.remedy()),
                (words, remedy)
            );
        }
    }
}
