//! The seam to the cluster: what a pod is to get, and where the outcome is told.
//!
//! One [`Question`], one [`Answer`] with everything that the plan needs: the pod, every definition
//! that its annotations and the administrator name, the claims they refer to. One
//! [`Publication`] afterwards. Who answers is the node configuration's choice: a folder of
//! manifests ([`Folder`]), the agent behind its socket ([`Agent`]), or the API server itself
//! ([`Api`]).

pub mod agent;
pub mod api;
pub mod catalog;
pub mod conf_dir;
mod devices;
mod error;
pub mod figures;
pub mod folder;
pub mod frame;
pub mod identity;
mod manifests;
pub mod owed_writes;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

pub use agent::{AGENT_WAIT, Agent};
pub use api::{Api, ApiError};
pub use catalog::{Catalog, Network, administrators_definitions};
pub use conf_dir::{ConfDirError, OnDisk};
pub use error::ClusterError;
pub use figures::{Figures, Phase};
pub use folder::Folder;
pub use owed_writes::{OwedSurvey, OwedWrite, OwedWrites};

use crate::kubelet::PodDevices;
use crate::npwg::{
    DEFAULT_NETWORK_ANNOTATION, Definition, Dialect, IpamClaim, NETWORKS_ANNOTATION, ObjectRef,
    Selection, StatusEntry,
};

/// A pod as the runtime names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `K8S_POD_UID`, where the runtime gives it.
    pub uid: Option<String>,
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The annotations that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodAnnotations {
    /// [`NETWORKS_ANNOTATION`].
    pub networks: Option<String>,
    /// [`DEFAULT_NETWORK_ANNOTATION`].
    pub default_network: Option<String>,
}

impl PodAnnotations {
    /// Picks the annotations out of all that a pod has.
    pub fn from_map(all: &BTreeMap<String, String>) -> PodAnnotations {
        let get = |key: &str| {
            all.get(key)
                .filter(|value| !value.trim().is_empty())
                .cloned()
        };
        PodAnnotations {
            networks: get(NETWORKS_ANNOTATION),
            default_network: get(DEFAULT_NETWORK_ANNOTATION),
        }
    }

    /// Every definition that the annotations name. What is no valid annotation names none: the
    /// plan says so later.
    pub fn references(
        &self,
        namespace: &str,
        multus_namespace: &str,
        dialect: Dialect,
    ) -> Vec<ObjectRef> {
        let replaced = self.default_network.as_ref().and_then(|text| {
            Selection::parse_default_network(text, multus_namespace, dialect).ok()
        });
        let selected = self
            .networks
            .as_ref()
            .and_then(|text| Selection::parse_list(text, namespace, dialect).ok());
        let mut references = Vec::new();
        for selection in replaced.into_iter().chain(selected.into_iter().flatten()) {
            if !references.contains(&selection.network) {
                references.push(selection.network);
            }
        }
        references
    }

    /// Whether they may have the key `deviceID` anywhere.
    pub fn may_name_devices(&self) -> bool {
        let texts = [&self.networks, &self.default_network];
        let mut texts = texts.into_iter().flatten();
        texts.any(|text| text.to_ascii_lowercase().contains("deviceid"))
    }

    /// Every claim that the annotations name, by its name in the pod's namespace.
    pub fn claims(&self, namespace: &str, dialect: Dialect) -> Vec<String> {
        let Some(text) = &self.networks else {
            return Vec::new();
        };
        let selections = Selection::parse_list(text, namespace, dialect).unwrap_or_default();
        selections
            .into_iter()
            .filter_map(|selection| selection.ipam_claim)
            .collect()
    }
}

/// What the plugin asks, once per ADD; the default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Question {
    /// The pod, where the runtime names one.
    pub pod: Option<PodName>,
    /// Its annotations, where the runtime hands them over.
    pub annotations: Option<PodAnnotations>,
    /// Whether kubelet says, by the annotations that the runtime hands over, that it is a static
    /// pod: it may run before the API server has its mirror, and while there is no API server.
    pub is_static: bool,
    /// Definitions that the administrator's configuration names.
    pub networks: Vec<ObjectRef>,
    /// Where a bare name in [`DEFAULT_NETWORK_ANNOTATION`] is looked up.
    pub multus_namespace: String,
    /// How annotations are read.
    pub dialect: Dialect,
    /// Where kubelet is to be asked for the pod's devices (`podResourcesSocket`), should one of
    /// its networks use any; `None` when they do not matter.
    pub kubelet: Option<PathBuf>,
    /// How long to wait for somebody who answers: an agent may just be starting.
    #[serde(skip)]
    pub patience: Duration,
}

/// A definition or a claim as it was looked up: there, or why not.
pub type Found<T> = Result<T, String>;

/// What the cluster knows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The pod.
    pub pod: Option<Pod>,
    /// Every definition that was named, in no order.
    pub definitions: Vec<(ObjectRef, Found<Definition>)>,
    /// Every claim that was named, by its name.
    pub claims: Vec<(String, Found<IpamClaim>)>,
    /// What kubelet says of the pod's devices; `None` where it was not asked, since no network
    /// uses any.
    pub kubelet: Option<PodDevices>,
}

impl Answer {
    /// The definition of that name.
    pub fn definition(&self, object: &ObjectRef) -> Option<&Found<Definition>> {
        self.definitions
            .iter()
            .find(|(name, _)| name == object)
            .map(|(_, found)| found)
    }

    /// The claim of that name.
    pub fn claim(&self, name: &str) -> Option<&Found<IpamClaim>> {
        self.claims
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, found)| found)
    }
}

/// What is known of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// `metadata.uid`.
    pub uid: Option<String>,
    /// The annotations that matter.
    pub annotations: PodAnnotations,
    /// The devices that kubelet gave it, by resource name, where the cluster knows them itself
    /// (`jackfield.io/devices` of a manifest).
    pub devices: BTreeMap<String, Vec<String>>,
    /// Its containers that request extended resources, in their order.
    #[serde(default)]
    pub containers: Vec<Container>,
    /// Whether it has resource claims (DRA), whatever they are for.
    pub has_claims: bool,
}

/// A container that devices may have been allocated to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Its name, by which kubelet keeps its devices.
    pub name: String,
    /// How many devices it asks for, by the resource's name.
    pub requests: BTreeMap<String, u64>,
    /// Whether it runs to completion before the others start: kubelet hands its devices on to
    /// them. A side-car does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_first: bool,
}

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

/// What became of an ADD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Publication {
    /// The pod.
    pub pod: PodName,
    /// Its network-status; `None` leaves it as it is.
    pub status: Option<Vec<StatusEntry>>,
    /// Events about it.
    #[serde(default)]
    pub events: Vec<Event>,
}

/// An event about a pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Normal or Warning.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// The reason, in one word.
    pub reason: String,
    /// What happened, in one line.
    pub message: String,
}

impl Event {
    /// Something that somebody should look at.
    pub fn warning(reason: &str, message: impl Into<String>) -> Event {
        Event {
            kind: EventKind::Warning,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// Something that went as it should.
    pub fn normal(reason: &str, message: impl Into<String>) -> Event {
        Event {
            kind: EventKind::Normal,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }
}

/// How grave an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// As it should be.
    Normal,
    /// Not as it should be.
    Warning,
}

/// What knows the pods and is told of them.
pub trait Cluster {
    /// Answers a question.
    ///
    /// # Errors
    /// When the cluster cannot be asked or does not know the pod: code 107, or 11 when a later
    /// try may do.
    fn ask(&self, question: &Question) -> Result<Answer, ClusterError>;

    /// Whether a question would be answered now, by `until` (CNI 1.1.0 §2 STATUS).
    ///
    /// # Errors
    /// As [`Cluster::ask`].
    fn ready(&self, _until: Instant) -> Result<(), ClusterError> {
        self.ask(&Question::default()).map(drop)
    }

    /// The pods of a node and all definitions, by name: for whoever looks at a whole node.
    ///
    /// # Errors
    /// As [`Cluster::ask`].
    fn census(&self, node: &str) -> Result<Census, ClusterError>;

    /// Tells what became of an ADD.
    ///
    /// # Errors
    /// When it can neither be told nor be kept for later.
    fn publish(&self, publication: &Publication) -> Result<(), ClusterError>;

    /// Takes away what a process that was ended while it published for the pod left half made.
    fn sweep(&self, pod: &PodName) {
        let _ = pod;
    }

    /// A call is over and its answer given: whoever counts is told what it took. Nobody is waited
    /// for, and what cannot be told is not.
    fn over(&self, figures: Figures) {
        let _ = figures;
    }
}
