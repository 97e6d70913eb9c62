//! The census: which pods a node has, and which definitions the cluster has.

use serde::{Deserialize, Serialize};

use super::pod::PodName;
use super::question::LONGEST_LINE;
use crate::bounded;
use crate::npwg::ObjectRef;

/// The maximum number of pods in a census.
pub const MOST_PODS: usize = 4096;
/// The maximum number of definitions in a census.
pub const MOST_DEFINITIONS: usize = 20_000;

/// The names of a node's pods and of the cluster's definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Census {
    /// The agent's release; `None` if the census does not come from an agent.
    #[serde(deserialize_with = "bounded::optional_text::<_, LONGEST_LINE>")]
    pub version: Option<String>,
    /// The node.
    #[serde(deserialize_with = "bounded::text::<_, LONGEST_LINE>")]
    pub node: String,
    /// Whether the agent has listed all pods and definitions. If not, names may be missing. Only an
    /// agent sets this field, so it means nothing in a census without `version`.
    pub listed: bool,
    /// Why the agent could not list the definitions for this census, in one line.
    pub unreachable: Option<String>,
    /// The node's pods.
    #[serde(deserialize_with = "bounded::list::<_, _, MOST_PODS>")]
    pub pods: Vec<PodName>,
    /// The cluster's definitions.
    #[serde(deserialize_with = "bounded::list::<_, _, MOST_DEFINITIONS>")]
    pub definitions: Vec<ObjectRef>,
    /// The reasons why objects are missing from the lists, each in one line.
    #[serde(deserialize_with = "bounded::texts::<_, 1024, LONGEST_LINE>")]
    pub broken: Vec<String>,
}
