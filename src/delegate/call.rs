//! One call of one plugin, and the seam behind which it runs.

use std::time::Instant;

use super::error::DelegateError;
use super::search::Binary;
use crate::cni::Verb;
use crate::cni::{CniArgs, ContainerId, InterfaceName};

/// Everything that one call of a plugin needs: CNI 1.1.0 §2.
#[derive(Clone, Copy, Debug)]
pub struct DelegateCall<'a> {
    /// What it is to do.
    pub verb: Verb,
    /// What is executed.
    pub binary: &'a Binary,
    /// The sandbox; none for GC, STATUS and VERSION.
    pub container_id: Option<&'a ContainerId>,
    /// The path of the sandbox' network namespace; a DEL may be without one.
    pub netns: Option<&'a str>,
    /// The interface; none for GC, STATUS and VERSION.
    pub ifname: Option<&'a InterfaceName>,
    /// Generic arguments.
    pub args: &'a CniArgs,
    /// Where the plugin finds the plugins that it delegates to, IPAM above all.
    pub cni_path: &'a str,
    /// The plugin's configuration.
    pub stdin: &'a str,
    /// When it has to be done; past it the plugin is ended with all its children.
    pub deadline: Instant,
}

/// Something that executes plugins: processes in earnest, a list of answers in tests.
pub trait DelegateExec {
    /// Executes one call and returns what the plugin wrote to its standard output: exactly one
    /// JSON document after an ADD, anything after the others.
    ///
    /// # Errors
    ///
    /// [`DelegateError`], one variant per cause.
    fn exec(&self, call: &DelegateCall<'_>) -> Result<Vec<u8>, DelegateError>;
}
