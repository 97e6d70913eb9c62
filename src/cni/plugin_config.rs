//! One plugin of a network configuration.

use std::collections::HashSet;

use serde_json::value::RawValue;
use thiserror::Error;

use super::json::{JsonError, RawObject};
use super::names::{NameError, PluginType};

/// One plugin of a chain: CNI 1.1.0 §1 "Plugin configuration objects".
///
/// [`Self::new`] reads the keys that Jackfield needs. It keeps the whole object as text for the
/// plugin's standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginConfig {
    plugin_type: PluginType,
    ipam_type: Option<PluginType>,
    capabilities: Vec<Box<str>>,
    body: RawObject,
}

impl PluginConfig {
    /// Reads a plugin's object.
    ///
    /// # Errors
    ///
    /// [`PluginConfigError`] when `type` is missing, when `type` or `ipam.type` is not a valid name
    /// of a binary, or when `capabilities` is not an object of booleans.
    pub fn new(body: RawObject) -> Result<Self, PluginConfigError> {
        let plugin_type = body.read_text("type")?.ok_or(PluginConfigError::NoType)?;
        let plugin_type = plugin_type.parse().map_err(PluginConfigError::Type)?;
        let mut capabilities: Vec<Box<str>> = Vec::new();
        if let Some(declared) = body.read::<RawObject>("capabilities")? {
            let mut seen = HashSet::new();
            // If a name occurs more than once, the last value applies, as in `RawObject`.
            for (name, value) in declared.iter().rev() {
                let is_declared =
                    boolean(name, value).map_err(|error| error.inside("capabilities"))?;
                if seen.insert(name) && is_declared {
                    capabilities.push(name.into());
                }
            }
            capabilities.reverse();
        }
        Ok(Self {
            plugin_type,
            ipam_type: ipam_type(&body)?,
            capabilities,
            body,
        })
    }

    /// The name of the plugin's binary.
    pub fn plugin_type(&self) -> &PluginType {
        &self.plugin_type
    }

    /// The name of the IPAM binary that the plugin executes, if the configuration names one.
    ///
    /// Jackfield does not execute this binary. But `policy` must allow the binary, and an ADD fails
    /// if the binary is missing.
    pub fn ipam_type(&self) -> Option<&PluginType> {
        self.ipam_type.as_ref()
    }

    /// The capabilities that the plugin declares by setting them to `true`.
    pub fn capabilities(&self) -> impl Iterator<Item = &str> {
        self.capabilities.iter().map(AsRef::as_ref)
    }

    /// Whether the plugin declares a capability: CNI 1.1.0 §3 "Deriving `runtimeConfig`".
    pub fn declares(&self, capability: &str) -> bool {
        self.capabilities().any(|declared| declared == capability)
    }

    /// The whole object, with the text of its values.
    pub fn body(&self) -> &RawObject {
        &self.body
    }
}

fn ipam_type(body: &RawObject) -> Result<Option<PluginType>, PluginConfigError> {
    // The plugin decides whether to accept an `ipam` that is not an object.
    let Ok(Some(ipam)) = body.read::<RawObject>("ipam") else {
        return Ok(None);
    };
    let name = ipam.read_text("type").map_err(|it| it.inside("ipam"))?;
    let name = name.map(|text| text.parse()).transpose();
    name.map_err(PluginConfigError::IpamType)
}

/// Reads the boolean of a key; `null` is `false`.
fn boolean(key: &str, value: &RawValue) -> Result<bool, JsonError> {
    match value.get() {
        "true" => Ok(true),
        "false" | "null" => Ok(false),
        other => Err(JsonError::key(key, other, "expected true or false")),
    }
}

/// Why a plugin's object is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PluginConfigError {
    /// A value has the wrong type.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// `type` is missing.
    #[error("key \"type\" is missing; name the plugin's binary")]
    NoType,
    /// `type` is not a valid name of a binary.
    #[error("key \"type\": {0}")]
    Type(#[source] NameError),
    /// `ipam.type` is not a valid name of a binary.
    #[error("key \"ipam.type\": {0}")]
    IpamType(#[source] NameError),
}

#[cfg(test)]
mod tests;
