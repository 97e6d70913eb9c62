//! One call of a plugin, and the trait that executes it.

use std::time::Instant;

use super::error::DelegateError;
use super::search::Binary;
use crate::cni::Verb;
use crate::cni::{CniArgs, ContainerId, InterfaceName};

/// The parameters of one call of a plugin: CNI 1.1.0 §2.
#[derive(Clone, Copy, Debug)]
pub struct DelegateCall<'a> {
    /// The operation.
    pub verb: Verb,
    /// The plugin's binary.
    pub binary: &'a Binary,
    /// The sandbox; `None` for GC, STATUS and VERSION.
    pub container_id: Option<&'a ContainerId>,
    /// The path of the sandbox's network namespace; a DEL may have none.
    pub netns: Option<&'a str>,
    /// The interface; `None` for GC, STATUS and VERSION.
    pub ifname: Option<&'a InterfaceName>,
    /// `CNI_ARGS`.
    pub args: &'a CniArgs,
    /// `CNI_PATH`, in which the plugin finds its own delegates, such as IPAM plugins.
    pub cni_path: &'a str,
    /// The plugin's configuration.
    pub stdin: &'a str,
    /// The time after which the plugin and all its children are killed.
    pub deadline: Instant,
}

/// Executes plugins: [`Processes`](super::Processes) does, tests use lists of answers.
pub trait DelegateExec {
    /// Executes one call and returns the plugin's standard output: exactly one JSON document after
    /// an ADD, any text after the other verbs.
    ///
    /// # Errors
    ///
    /// [`DelegateError`], with one variant for each cause.
    fn exec(&self, call: &DelegateCall<'_>) -> Result<Vec<u8>, DelegateError>;
}
