//! What people should know of a plan although it can be carried out.

use super::{PlanError, Reason};
use crate::bounded::named;
use crate::cluster::Event;
use crate::cni::InterfaceName;
use crate::cni::json::excerpt;
use crate::npwg::{DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION, ObjectRef, SelectionError};

/// What the pod's owner should know of a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanWarning {
    /// The annotation is invalid: the pod starts without the networks that it selects.
    #[error("annotation {key} is ignored: {error}")]
    IgnoredAnnotation {
        /// The annotation's name.
        key: &'static str,
        /// What is wrong with it.
        error: SelectionError,
    },
    /// A network's selection has keys that Jackfield does not know.
    #[error(
        "annotation {NETWORKS_ANNOTATION}: network {network}: {} unknown and ignored",
        key_list(keys)
    )]
    UnknownKeys {
        /// The network.
        network: ObjectRef,
        /// The keys.
        keys: Vec<String>,
    },
}

/// The subject of a sentence on `keys`, of which there may be thousands.
fn key_list(keys: &[String]) -> String {
    let named = named(keys.iter().map(|key| format!("{:?}", excerpt(key))));
    match keys {
        [_] => format!("key {named} is"),
        _ => format!("keys {named} are"),
    }
}

/// What surprises people about a replaced cluster network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanRemark {
    /// The annotation replaces the cluster network.
    #[error(
        "annotation {DEFAULT_NETWORK_ANNOTATION}: {network} is attached instead of clusterNetwork \
         {cluster}"
    )]
    Replaced {
        /// The definition that the annotation names.
        network: ObjectRef,
        /// The label of the replaced network.
        cluster: String,
    },
    /// The annotation names no namespace, so the definition is that of `multusNamespace`.
    #[error(
        "annotation {DEFAULT_NETWORK_ANNOTATION}: {} has no namespace, so it is looked up in \
         multusNamespace {}, not in the pod's",
        .0.name(), .0.namespace()
    )]
    MultusNamespace(ObjectRef),
    /// The annotation names an interface, which only the runtime can name.
    #[error(
        "annotation {DEFAULT_NETWORK_ANNOTATION}: interface {interface} is ignored, since the \
         runtime names this one: {ifname}"
    )]
    InterfaceIgnored {
        /// The annotation's interface.
        interface: InterfaceName,
        /// The runtime's.
        ifname: InterfaceName,
    },
}

impl PlanWarning {
    /// The event for the pod's owner.
    pub fn event(&self) -> Event {
        let reason = match self {
            PlanWarning::IgnoredAnnotation { .. } => "InvalidAnnotation",
            PlanWarning::UnknownKeys { .. } => "UnknownKey",
        };
        Event::warning(reason, self.to_string())
    }

    /// The reason that a node with `invalidAnnotation: fail` has against the pod.
    pub fn ignored(&self) -> Option<PlanError> {
        match self {
            PlanWarning::IgnoredAnnotation { key, error } => Some(PlanError {
                place: None,
                reason: Box::new(Reason::Annotation {
                    key,
                    error: error.clone(),
                }),
            }),
            PlanWarning::UnknownKeys { .. } => None,
        }
    }
}
