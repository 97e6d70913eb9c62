//! One call of a plugin, and the trait that executes it.

use std::time::Instant;

use serde_json::value::RawValue;

use super::error::DelegateError;
use super::search::Binary;
use crate::cni::{CapabilityArgs, CniArgs, ContainerId, InterfaceName, RawObject, Verb};

/// The parameters of one call of a plugin: CNI 1.1.0 §2.
#[derive(Clone, Copy, Debug)]
pub struct DelegateCall<'a> {
    /// The operation.
    pub verb: Verb,
    /// The plugin's binary.
    pub binary: &'a Binary,
    /// The parameters of the attachment for ADD, DEL and CHECK; `None` for the other verbs.
    pub attachment: Option<&'a Parameters<'a>>,
    /// `CNI_PATH`, where the plugin looks for its own delegates, such as IPAM plugins.
    pub cni_path: &'a str,
    /// The plugin's configuration.
    pub stdin: &'a str,
    /// The time after which Jackfield kills the plugin and its children.
    pub deadline: Instant,
}

/// The parameters of ADD, DEL and CHECK: CNI 1.1.0 §3 "Attachment Parameters".
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    /// The ID of the sandbox (`CNI_CONTAINERID`).
    pub container_id: &'a ContainerId,
    /// The path of the sandbox's network namespace. `None` only in a DEL.
    pub netns: Option<&'a str>,
    /// The interface in the sandbox.
    pub ifname: &'a InterfaceName,
    /// `CNI_ARGS`.
    pub args: &'a CniArgs,
    /// The capability arguments (`runtimeConfig`).
    pub capability_args: &'a CapabilityArgs,
    /// The `cni-args` that the pod's annotation sets for the network.
    pub cni_args: Option<&'a RawObject>,
    /// Top-level keys that Jackfield adds to the configuration of every plugin.
    pub inject: &'a [(String, Box<RawValue>)],
}

/// Executes plugins. [`Processes`](super::Processes) executes them as child processes; tests
/// implement this trait with prepared answers.
pub trait DelegateExec {
    /// Executes one call and returns the plugin's standard output. After an ADD or VERSION, the
    /// output is exactly one JSON document. After other verbs, it may be any text.
    ///
    /// # Errors
    ///
    /// [`DelegateError`], with one variant for each cause.
    fn exec(&self, call: &DelegateCall<'_>) -> Result<Vec<u8>, DelegateError>;
}
