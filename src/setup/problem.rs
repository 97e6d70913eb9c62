//! What can be wrong with the runtime's directory and with what was installed.

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
    /// The file, or a file of its sibling folder, cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ConfDirError),
    /// The text is not a JSON object.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The object is not a network configuration.
    #[error(transparent)]
    Network(#[from] NetworkConfigError),
    /// The chain has Jackfield behind another plugin.
    #[error("its chain has {NAME} behind another plugin, so {NAME} would call itself")]
    WithinChain,
    /// The network has no name.
    #[error("it has no name")]
    NoName,
}

/// Why there is no cluster network to stand in front of.
#[derive(Debug, thiserror::Error)]
pub enum NoNetwork {
    /// The directory has no configuration of a network.
    #[error("there is none")]
    Missing,
    /// The first file of the directory cannot be used.
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

/// How a node differs from what was, or is to be, installed on it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Drift {
    /// Another program renamed our configuration.
    #[error("{file} was renamed to {to}")]
    Renamed {
        /// The configuration.
        file: PathBuf,
        /// Its new name.
        to: String,
    },
    /// Our configuration was changed into something that is not a configuration.
    #[error("{file} was changed and is not a configuration: {cause}")]
    Damaged {
        /// The configuration.
        file: PathBuf,
        /// What is wrong with it.
        cause: Arc<ConfFileProblem>,
    },
    /// The file of our configuration holds another program's.
    #[error("{0} holds the configuration of another program")]
    Overwritten(PathBuf),
    /// Our configuration is missing.
    #[error("{0} is missing")]
    Missing(PathBuf),
    /// Another file sorts before our configuration.
    #[error("{first} comes before {ours}")]
    NotFirst {
        /// The file that the runtime takes.
        first: PathBuf,
        /// The name of ours.
        ours: String,
    },
    /// Our configuration names another cluster network than it should.
    #[error(
        "the cluster network is {} and no longer {}",
        wanted.as_deref().unwrap_or("another one"),
        current.as_deref().unwrap_or("the configured one")
    )]
    OtherNetwork {
        /// The network that it should name, if it should name one.
        wanted: Option<String>,
        /// The network that it names, if it names one.
        current: Option<String>,
    },
    /// Our configuration differs in another key.
    #[error("{0} differs from what is to be installed")]
    OtherContent(PathBuf),
    /// The binary has another content.
    #[error("{0} was replaced")]
    BinaryReplaced(PathBuf),
    /// The binary cannot be read.
    #[error("{path}: {cause}")]
    BinaryUnreadable {
        /// The binary.
        path: PathBuf,
        /// Why.
        cause: Arc<io::Error>,
    },
    /// The binary has another mode or owner.
    #[error("{path}: its mode is {mode:o} and its owner {owner}, not {MODE:o} and 0")]
    BinaryMode {
        /// The binary.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Its user.
        owner: u32,
    },
    /// The manifest of the installation is missing.
    #[error("the manifest of the installation is missing")]
    NoManifest,
}

impl Drift {
    /// What keeps it from coming back.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Drift::Renamed { to, .. } if to.ends_with(CILIUM) => {
                "set cni.exclusive to false in Cilium's values"
            }
            Drift::NotFirst { .. } => {
                "rename that file, or let the runtime read a directory of its own"
            }
            Drift::OtherNetwork { .. } => "let only one network configure this directory",
            _ => "find the program that changes it, and stop it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_networks_have_their_words() {
        let no_name = || ConfFileProblem::NoName;
        let lines = [
            (
                ConfFileProblem::WithinChain.to_string(),
                "its chain has jackfield behind another plugin, so jackfield would call itself",
            ),
            (ConfFileProblem::NoName.to_string(), "it has no name"),
            (NoNetwork::Missing.to_string(), "there is none"),
            (
                NoNetwork::BrokenFirst {
                    name: "a".to_owned(),
                    cause: Arc::new(no_name()),
                }
                .to_string(),
                "a comes first and is not a configuration: it has no name",
            ),
            (
                NoNetwork::Named {
                    file: "/a".into(),
                    cause: no_name(),
                }
                .to_string(),
                "clusterNetwork names /a, which is not a configuration: it has no name",
            ),
        ];
        for (words, expected) in lines {
            assert_eq!(words, expected);
        }
    }

    #[test]
    fn drift_has_its_words_and_a_remedy() {
        let stop = "find the program that changes it, and stop it";
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
                Drift::Damaged {
                    file: "/a".into(),
                    cause: Arc::new(ConfFileProblem::NoName),
                },
                "/a was changed and is not a configuration: it has no name",
                stop,
            ),
            (Drift::Missing("/a".into()), "/a is missing", stop),
            (
                Drift::NotFirst {
                    first: "/a".into(),
                    ours: "b".to_owned(),
                },
                "/a comes before b",
                "rename that file, or let the runtime read a directory of its own",
            ),
            (
                Drift::OtherNetwork {
                    wanted: Some("/a".to_owned()),
                    current: Some("/b".to_owned()),
                },
                "the cluster network is /a and no longer /b",
                "let only one network configure this directory",
            ),
            (
                Drift::BinaryMode {
                    path: "/a".into(),
                    mode: 0o777,
                    owner: 7,
                },
                "/a: its mode is 777 and its owner 7, not 755 and 0",
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
