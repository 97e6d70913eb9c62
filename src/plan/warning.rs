//! Warnings and remarks about a plan. They do not prevent an ADD.

use super::{PlanError, Reason};
use crate::bounded::named;
use crate::cluster::Event;
use crate::cni::InterfaceName;
use crate::cni::json::excerpt;
use crate::npwg::{DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION, ObjectRef, SelectionError};

/// A warning about an annotation of the pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanWarning {
    /// The annotation is invalid, so the pod starts without the networks that the annotation
    /// selects.
    #[error("annotation {key} is ignored: {error}")]
    IgnoredAnnotation {
        /// The annotation's name.
        key: &'static str,
        /// What is wrong with it.
        error: SelectionError,
    },
    /// The selection of a network has unknown keys.
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

/// Returns the subject and verb of a sentence about `keys`. The sentence contains only a few of the
/// keys, since there may be thousands.
fn key_list(keys: &[String]) -> String {
    let named = named(keys.iter().map(|key| format!("{:?}", excerpt(key))));
    match keys {
        [_] => format!("key {named} is"),
        _ => format!("keys {named} are"),
    }
}

/// An effect of the annotation `v1.multus-cni.io/default-network` that users may not expect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanRemark {
    /// The annotation replaces the cluster network.
    #[error(
        "annotation {DEFAULT_NETWORK_ANNOTATION}: {network} replaces the configured cluster network \
         ({cluster})"
    )]
    Replaced {
        /// The definition that the annotation names.
        network: ObjectRef,
        /// The label of the replaced network.
        cluster: String,
    },
    /// The annotation names no namespace, so the definition is looked up in `multusNamespace`.
    #[error(
        "annotation {DEFAULT_NETWORK_ANNOTATION}: {} has no namespace, so it is looked up in \
         multusNamespace {}, not in the pod's namespace",
        .0.name(), .0.namespace()
    )]
    MultusNamespace(ObjectRef),
    /// The annotation names an interface, but only the runtime can name the cluster network's
    /// interface.
    #[error(
        "annotation {DEFAULT_NETWORK_ANNOTATION}: interface {interface} is ignored, since the \
         runtime chose {ifname} for the cluster network"
    )]
    InterfaceIgnored {
        /// The interface that the annotation names.
        interface: InterfaceName,
        /// The interface that the runtime names.
        ifname: InterfaceName,
    },
}

impl PlanWarning {
    /// Returns the warning as an event for the pod.
    pub fn event(&self) -> Event {
        let reason = match self {
            PlanWarning::IgnoredAnnotation { .. } => "InvalidAnnotation",
            PlanWarning::UnknownKeys { .. } => "UnknownKey",
        };
        Event::warning(reason, self.to_string())
    }

    /// Returns the plan error that replaces this warning on a node with `invalidAnnotation: fail`;
    /// `None` if this warning stays a warning on such a node.
    pub fn ignored(&self) -> Option<PlanError> {
        let PlanWarning::IgnoredAnnotation { key, error } = self else {
            return None;
        };
        let error = error.clone();
        let reason = Box::new(Reason::Annotation { key, error });
        Some(PlanError {
            place: None,
            reason,
        })
    }
}
