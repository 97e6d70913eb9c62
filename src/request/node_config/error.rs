//! What is wrong with a node configuration.

use crate::cni;
use crate::request::deadlines::DeadlineError;

/// What is wrong with the node configuration.
#[derive(Debug, thiserror::Error)]
pub enum NodeConfigError {
    /// No version that we speak.
    #[error(transparent)]
    Version(cni::VersionError),
    /// `cniVersion` is no text.
    #[error("{0}; write versions as strings")]
    VersionType(String),
    /// `cniVersions` is no list of texts.
    #[error("{0}; write a list of versions as strings")]
    VersionList(String),
    /// A key is missing.
    #[error("key {key} is missing in the node configuration; {remedy}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What to write.
        remedy: &'static str,
    },
    /// A key has a wrong value.
    #[error("key {key} of the node configuration is {value}: {cause}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value, shortened.
        value: String,
        /// What is wrong, and the remedy.
        cause: String,
    },
    /// A deadline is no duration.
    #[error("key deadlines of the node configuration: {0}")]
    Deadline(#[source] DeadlineError),
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
