//! The configuration that a plugin reads from stdin.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use thiserror::Error;

use super::json::{JsonError, Members, RawObject, same_key};
use super::names::{ContainerId, InterfaceName, NetworkName};
use super::plugin_config::PluginConfig;
use super::result::{CniResult, ResultError};
use super::version::Version;

/// The values that a call adds to a plugin's configuration: CNI 1.1.0 §3 "Deriving request
/// configuration from plugin configuration".
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// The network's name.
    pub name: &'a NetworkName,
    /// The protocol version.
    pub version: Version,
    /// `prevResult`, or `None` to omit it. An ADD passes the result of the previous plugin. DEL and
    /// CHECK pass the result of the whole ADD.
    pub prev_result: Option<&'a CniResult>,
    /// Capability values from the runtime and the pod. A plugin gets only the capabilities that it
    /// declares.
    pub capability_args: &'a CapabilityArgs,
    /// The pod's `cni-args`. Each key overrides the same key in `args.cni` of the definition (NPWG
    /// 1.3 §4.1.2.1.6.2).
    pub cni_args: Option<&'a RawObject>,
    /// Top-level keys that every plugin gets: `deviceID` and `pciBusID`.
    pub inject: &'a [(String, Box<RawValue>)],
    /// The attachments that GC must keep; `None` for other verbs.
    pub valid_attachments: Option<&'a [ValidAttachment]>,
}

/// The values of capabilities by name, in the order of insertion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityArgs(RawObject);

impl CapabilityArgs {
    /// Creates an empty set of values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a capability to a JSON text, and replaces an existing value.
    pub fn set(&mut self, name: &str, value: Box<RawValue>) {
        self.0.set(name, value);
    }

    /// Sets the value of a capability.
    ///
    /// # Errors
    ///
    /// When the value cannot be written as JSON.
    pub fn insert<T: Serialize + ?Sized>(
        &mut self,
        name: &str,
        value: &T,
    ) -> Result<(), JsonError> {
        self.set(name, to_raw_value(value)?);
        Ok(())
    }

    /// Returns the value of a capability. The lookup is case-sensitive. If the name occurs more
    /// than once, returns the last value.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        let mut last_first = self.0.iter().rev();
        last_first.find_map(|(key, value)| (key == name).then_some(value))
    }

    /// Returns the names and values in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Converts the `runtimeConfig` of a runtime. Skips `null` values.
impl From<&RawObject> for CapabilityArgs {
    fn from(object: &RawObject) -> Self {
        let present = object.iter().filter(|(_, value)| value.get() != "null");
        let owned = present.map(|(name, value)| (name.into(), value.to_owned()));
        Self(owned.collect())
    }
}

/// An attachment that GC must keep: CNI 1.1.0 §2 "GC".
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ValidAttachment {
    /// `CNI_CONTAINERID` of the attachment's ADD.
    #[serde(rename = "containerID")]
    pub container_id: ContainerId,
    /// `CNI_IFNAME` of the attachment's ADD.
    pub ifname: InterfaceName,
}

impl ValidAttachment {
    /// The keys under which a configuration lists the attachments. The specification defines the
    /// first key. The reference library writes both keys.
    pub const KEYS: [&str; 2] = ["cni.dev/valid-attachments", "cni.dev/attachments"];

    /// Reads the attachments from the configuration of a GC.
    ///
    /// Returns `None` if the configuration has neither key. In that case, GC must not remove
    /// anything. Returns an empty list if a key is `null` and neither key has a list.
    ///
    /// # Errors
    ///
    /// [`JsonError::Key`] when the value is not a list, or when an element is invalid. If Jackfield
    /// skipped an invalid element, GC would remove an attachment that it must keep.
    pub fn read_list(config: &RawObject) -> Result<Option<Vec<Self>>, JsonError> {
        for key in Self::KEYS {
            if let Some(list) = config.read(key)? {
                return Ok(Some(list));
            }
        }
        let is_null = Self::KEYS.into_iter().any(|key| config.contains(key));
        Ok(is_null.then(Vec::new))
    }
}

/// Why the configuration for a plugin's stdin cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvocationError {
    /// `args` of the definition cannot be merged with the pod's `cni-args`.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The previous result cannot be written in the version of the configuration.
    #[error("prevResult: {0}")]
    PrevResult(#[from] ResultError),
}

/// Keys that Jackfield does not copy from a plugin's configuration to the plugin's stdin. Jackfield
/// itself writes `cniVersion`, `name`, `runtimeConfig` and `prevResult`.
const RUNTIME_KEYS: [&str; 7] = [
    "cniVersion",
    "name",
    "cniVersions",
    "capabilities",
    "runtimeConfig",
    "prevResult",
    // The plugin writes to this path as root, so a definition must not choose the path. Plugins get
    // the path as a capability (DEVINFO 1.1.0 §5.1.1).
    "CNIDeviceInfoFile",
];

impl PluginConfig {
    /// Returns the text for the plugin's stdin.
    ///
    /// Copies values of the plugin's configuration byte for byte.
    ///
    /// # Errors
    ///
    /// [`InvocationError`] when [`Self::check_args`] refuses the pod's `cni-args`, or when the
    /// previous result cannot be converted.
    pub fn request(&self, invocation: &Invocation<'_>) -> Result<String, InvocationError> {
        let body = self.body();
        let prev_result = invocation
            .prev_result
            .map(|result| result.to_json(invocation.version))
            .transpose()?;
        let args = merged_args(body, invocation.cni_args)?;
        let is_replaced = |key: &str| {
            let starts_so = |start: &str| start.eq_ignore_ascii_case("cni.dev/");
            RUNTIME_KEYS.iter().any(|name| same_key(key, name))
                || key.get(..8).is_some_and(starts_so)
                || (args.is_some() && same_key(key, "args"))
                || invocation
                    .inject
                    .iter()
                    .any(|(name, _)| same_key(key, name))
        };

        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let extra = length(&prev_result) + length(&args) + 512;
        let mut out = String::with_capacity(body.size_hint() + extra);
        let mut members = Members::open(&mut out);
        members.push_text("cniVersion", invocation.version.as_str());
        members.push_text("name", invocation.name.as_str());
        for (key, value) in body.iter().filter(|(key, _)| !is_replaced(key)) {
            members.push(key, value.get());
        }
        for (key, value) in invocation.inject {
            members.push(key, value.get());
        }
        if let Some(args) = &args {
            members.push("args", args);
        }
        let declared: HashSet<&str> = self.capabilities().collect();
        let values = invocation.capability_args.iter();
        let mut values = values
            .filter(|(name, _)| declared.contains(name))
            .peekable();
        if values.peek().is_some() {
            let mut config = Members::open(members.key("runtimeConfig"));
            values.for_each(|(name, value)| config.push(name, value.get()));
            config.close();
        }
        if let Some(result) = prev_result {
            members.push("prevResult", &result);
        }
        if let Some(attachments) = invocation.valid_attachments {
            let list = to_raw_value(attachments).map_err(JsonError::from)?;
            for key in ValidAttachment::KEYS {
                members.push(key, list.get());
            }
        }
        members.close();
        Ok(out)
    }

    /// Checks that the pod's `cni-args` can be merged into this plugin's `args.cni`.
    ///
    /// # Errors
    ///
    /// [`JsonError`] when the pod has `cni-args` but the configuration's `args` or `args.cni` is
    /// not an object.
    pub fn check_args(&self, pods: &RawObject) -> Result<(), JsonError> {
        if pods.is_empty() {
            return Ok(());
        }
        args_of(self.body()).map(drop)
    }
}

/// Returns the definition's `args` and `args.cni`.
fn args_of(body: &RawObject) -> Result<(RawObject, RawObject), JsonError> {
    let args = body.read::<RawObject>("args")?.unwrap_or_default();
    let cni = args.read::<RawObject>("cni")?.unwrap_or_default();
    Ok((args, cni))
}

/// Returns the value of `args` with the pod's `cni-args` merged in; `None` if the pod has no
/// `cni-args`.
fn merged_args(body: &RawObject, pods: Option<&RawObject>) -> Result<Option<String>, JsonError> {
    let Some(pods) = pods.filter(|pods| !pods.is_empty()) else {
        return Ok(None);
    };
    let (mut args, mut cni) = args_of(body)?;
    cni.overlay(pods);
    args.remove("cni");
    args.set("cni", to_raw_value(&cni)?);
    Ok(Some(args.to_string()))
}

#[cfg(test)]
mod tests;
