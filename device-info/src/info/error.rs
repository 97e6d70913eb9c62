//! What can be wrong with device information.

use crate::quoted::Quoted;

/// Why device information is not of the specification: key, value, remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceInfoError {
    /// No JSON object with values of the right types.
    #[error("device-info is broken: {0}; write a JSON map as of Device Information 1.1.0 §3")]
    Json(String),
    /// A required key is not there.
    #[error("device-info lacks {0}, which is required: write it")]
    Missing(&'static str),
    /// A value that the key cannot have.
    #[error("device-info has {key} {value}: write {remedy}")]
    Value {
        /// The key, with its section.
        key: &'static str,
        /// What is there.
        value: Quoted,
        /// What could be.
        remedy: &'static str,
    },
}
