//! Errors in device information.

use crate::quoted::Quoted;

/// Why device information does not follow the specification.
#[derive(Debug, thiserror::Error)]
pub enum DeviceInfoError {
    /// The text is not a JSON object with values of the right types.
    #[error("device-info is broken: {0}; write a JSON map as in Device Information 1.1.0 §3")]
    Json(#[source] serde_json::Error),
    /// A required key is missing.
    #[error("device-info lacks the key {0}, which is required; add it")]
    Missing(&'static str),
    /// A key has an invalid value.
    #[error("device-info has {key} {value}; write {remedy}")]
    Value {
        /// The path of the key in the JSON map, for example `pci.pci-address`.
        key: &'static str,
        /// The value.
        value: Quoted,
        /// Valid values.
        remedy: &'static str,
    },
}
