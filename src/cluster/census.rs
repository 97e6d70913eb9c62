//! Whom and what there is to be asked about.

use serde::{Deserialize, Serialize};

use super::pod::PodName;
use super::question::LONGEST_LINE;
use crate::bounded;
use crate::npwg::ObjectRef;

/// How many pods a census names.
pub const MOST_PODS: usize = 4096;

/// What there is on a node, by name: to be asked about one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Census {
    /// The release of the agent; `None` where somebody else answers.
    #[serde(deserialize_with = "bounded::optional_text::<_, LONGEST_LINE>")]
    pub version: Option<String>,
    /// The node.
    #[serde(deserialize_with = "bounded::text::<_, LONGEST_LINE>")]
    pub node: String,
    /// Whether the agent has had whole lists of both yet: what follows may be less than there is.
    pub listed: bool,
    /// Why the API server did not answer the agent just now, in one line.
    pub unreachable: Option<String>,
    /// Its pods.
    #[serde(deserialize_with = "bounded::list::<_, _, MOST_PODS>")]
    pub pods: Vec<PodName>,
    /// The cluster's definitions.
    #[serde(deserialize_with = "bounded::list::<_, _, 20000>")]
    pub definitions: Vec<ObjectRef>,
    /// What is there and cannot be read, a line each.
    #[serde(deserialize_with = "bounded::texts::<_, 1024, LONGEST_LINE>")]
    pub broken: Vec<String>,
}
