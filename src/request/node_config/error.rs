//! What is wrong with a node configuration.

use super::values::MAX_DEFAULT_NETWORKS;
use crate::cni::{self, InvalidValue, JsonError, NameError, NetworkConfigError};

/// What is wrong with the node configuration.
#[derive(Debug, thiserror::Error)]
pub enum NodeConfigError {
    /// Jackfield supports none of the CNI versions that the configuration names.
    #[error(transparent)]
    Version(cni::VersionError),
    /// `cniVersion` is not a string.
    #[error("{0}; write versions as strings")]
    VersionType(#[source] JsonError),
    /// `cniVersions` is not a list of strings.
    #[error("{0}; write the versions as a list of strings")]
    VersionList(#[source] JsonError),
    /// A required key is missing.
    #[error("key {key} is missing in the node configuration; {remedy}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A value is invalid.
    #[error("key {key} of the node configuration is {value}: {cause}")]
    Value {
        /// The path of the key, including the keys of the enclosing objects.
        key: String,
        /// The shortened value, or the length of a list that is too long.
        value: String,
        /// What is wrong.
        #[source]
        cause: Box<ValueError>,
    },
}

/// What is wrong with the value of a key, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// The value has the wrong type.
    #[error("{0}; correct its type")]
    Type(#[source] InvalidValue),
    /// The value is not a valid network name.
    #[error(transparent)]
    Name(NameError),
    /// The value is not a valid namespace.
    #[error("it is not a valid namespace; write the name of a namespace")]
    Namespace,
    /// A path is not absolute, or contains a NUL character.
    #[error("write an absolute path without NUL characters")]
    RelativePath,
    /// The value is not one of the documented choices.
    #[error("use one of {}", .0.join(", "))]
    Choice(Vec<&'static str>),
    /// A list of networks is too long.
    #[error("it is too long; name at most {MAX_DEFAULT_NETWORKS} networks")]
    TooMany,
    /// The name of a network is empty.
    #[error("a name is empty; write the name of a definition or of a configuration on disk")]
    EmptyName,
    /// `clusterNetwork` and `delegates` are both set.
    #[error("the key delegates is set as well; remove one of the two keys")]
    BesideDelegates,
    /// `manifestDir` is set together with `agentSocket` or `kubeconfig`.
    #[error(
        "agentSocket or kubeconfig is set as well; remove manifestDir, or remove agentSocket and \
         kubeconfig"
    )]
    BesideCluster,
    /// An element of `delegates` is not a network configuration.
    #[error("delegates[{index}]: {source}; correct it")]
    Delegate {
        /// The index of the element.
        index: usize,
        /// What is wrong.
        source: NetworkConfigError,
    },
    /// A deadline is not within its limits.
    #[error(
        "write a duration above zero and at most one day, such as \"500ms\", \"2s\" or \"1m30s\""
    )]
    Deadline,
    /// An element of `types` in `policy` is not a plugin type.
    #[error("it is not a plugin; write the type of a plugin, such as \"macvlan\"")]
    PluginType,
    /// An element of `networks` in `policy` is not a definition.
    #[error("it is not a definition; write it as \"namespace/name\"")]
    Definition,
    /// An element of `denyKeys` in `policy` is not the path of a key.
    #[error("it is not a key; write the path of a key, such as \"ipam.dataDir\"")]
    DeniedKey,
}

impl NodeConfigError {
    /// The CNI code.
    pub fn code(&self) -> u32 {
        match self {
            NodeConfigError::Version(_) => cni::code::INCOMPATIBLE_VERSION,
            NodeConfigError::VersionType(_) => cni::code::DECODING_FAILURE,
            _ => cni::code::INVALID_NETWORK_CONFIG,
        }
    }
}
