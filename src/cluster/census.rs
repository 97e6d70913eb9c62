//! Whom and what there is to be asked about.

use serde::{Deserialize, Serialize};

use super::pod::PodName;
use crate::npwg::ObjectRef;

/// What there is on a node, by name: to be asked about one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Census {
    /// The release of the agent; `None` where somebody else answers.
    pub version: Option<String>,
    /// The node.
    pub node: String,
    /// Whether the agent has had whole lists of both yet: what follows may be less than there is.
    pub listed: bool,
    /// Its pods.
    pub pods: Vec<PodName>,
    /// The cluster's definitions.
    pub definitions: Vec<ObjectRef>,
    /// What is there and cannot be read, a line each.
    pub broken: Vec<String>,
}
