//! One plugin of a network configuration.

use std::collections::HashSet;

use serde_json::value::RawValue;
use thiserror::Error;

use super::json::{JsonError, RawObject};
use super::names::{NameError, PluginType};

/// One plugin of a chain: CNI 1.1.0 §1 "Plugin configuration objects".
///
/// What the protocol needs of it is read once; everything is kept as it was written, for the
/// plugin to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginConfig {
    plugin_type: PluginType,
    ipam_type: Option<PluginType>,
    capabilities: Vec<Box<str>>,
    body: RawObject,
}

impl PluginConfig {
    /// Takes an object for a plugin.
    ///
    /// # Errors
    ///
    /// [`PluginConfigError`] when `type` is missing, or it or `ipam.type` is no name of a binary, or
    /// `capabilities` is no object of booleans.
    pub fn new(body: RawObject) -> Result<Self, PluginConfigError> {
        let plugin_type = match body.read::<String>("type")? {
            Some(text) if !text.is_empty() => text.parse().map_err(PluginConfigError::Type)?,
            _ => return Err(PluginConfigError::NoType),
        };
        let mut capabilities: Vec<Box<str>> = Vec::new();
        if let Some(declared) = body.read::<RawObject>("capabilities")? {
            let mut seen = HashSet::new();
            // The last of several wins, as everywhere.
            for (name, value) in declared.iter().rev() {
                let is_declared = boolean("capabilities", name, value)?;
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

    /// The plugin's binary.
    #[must_use]
    pub fn plugin_type(&self) -> &PluginType {
        &self.plugin_type
    }

    /// The binary that the plugin will execute for its addresses, if it names one.
    ///
    /// Jackfield never runs it, but a policy that allows some binaries has to know.
    #[must_use]
    pub fn ipam_type(&self) -> Option<&PluginType> {
        self.ipam_type.as_ref()
    }

    /// The capabilities that the plugin declares, that is, sets to `true`.
    pub fn capabilities(&self) -> impl Iterator<Item = &str> {
        self.capabilities.iter().map(AsRef::as_ref)
    }

    /// Whether the plugin declares a capability: CNI 1.1.0 §3 "Deriving `runtimeConfig`".
    #[must_use]
    pub fn declares(&self, capability: &str) -> bool {
        self.capabilities().any(|declared| declared == capability)
    }

    /// The object as it was written.
    #[must_use]
    pub fn body(&self) -> &RawObject {
        &self.body
    }
}

fn ipam_type(body: &RawObject) -> Result<Option<PluginType>, PluginConfigError> {
    // An `ipam` that is no object is for the plugin to judge.
    let Ok(Some(ipam)) = body.read::<RawObject>("ipam") else {
        return Ok(None);
    };
    match ipam.read::<String>("type") {
        Ok(Some(text)) if !text.is_empty() => {
            text.parse().map(Some).map_err(PluginConfigError::IpamType)
        }
        Ok(_) => Ok(None),
        Err(JsonError::Key { value, reason, .. }) => Err(JsonError::Key {
            key: "ipam.type".to_owned(),
            value,
            reason,
        }
        .into()),
        Err(other) => Err(other.into()),
    }
}

/// `true` or `false`, for a key within a key; `null` is `false`.
fn boolean(outer: &str, inner: &str, value: &RawValue) -> Result<bool, JsonError> {
    match value.get() {
        "true" => Ok(true),
        "false" | "null" => Ok(false),
        other => Err(JsonError::key(
            &format!("{outer}.{inner}"),
            other,
            "expected true or false",
        )),
    }
}

/// Why an object is no plugin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PluginConfigError {
    /// A key has a wrong value.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// There is no `type`.
    #[error("key \"type\" is missing; name the plugin's binary")]
    NoType,
    /// `type` is no name of a binary.
    #[error("key \"type\": {0}")]
    Type(#[source] NameError),
    /// `ipam.type` is no name of a binary.
    #[error("key \"ipam.type\": {0}")]
    IpamType(#[source] NameError),
}

#[cfg(test)]
mod tests;
