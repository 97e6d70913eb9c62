//! What people should know of a plan although it can be carried out.

use super::{PlanError, Reason};
use crate::cluster::Event;
use crate::diagnostic;
use crate::npwg::{ObjectRef, SelectionError};

/// What the pod's owner should know of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanWarning {
    /// The annotation is invalid: the pod starts without the networks that it selects.
    IgnoredAnnotation {
        /// The annotation's name.
        key: &'static str,
        /// What is wrong with it.
        error: SelectionError,
    },
    /// A network's selection has keys that Jackfield does not know.
    UnknownKeys {
        /// The network.
        network: ObjectRef,
        /// The first of the keys, each cut if it is long.
        keys: Vec<String>,
        /// How many more there are.
        others: usize,
    },
}

/// What surprises people about a replaced cluster network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanRemark {
    /// The annotation replaces the cluster network.
    Replaced {
        /// The definition that the annotation names.
        network: ObjectRef,
        /// The label of the replaced network.
        cluster: String,
    },
    /// The annotation names no namespace, so the definition is that of `multusNamespace`.
    MultusNamespace(ObjectRef),
    /// The annotation names an interface, which only the runtime can name.
    InterfaceIgnored {
        /// The annotation's interface.
        interface: String,
        /// The runtime's.
        ifname: String,
    },
}

impl PlanWarning {
    /// The event for the pod's owner.
    pub fn event(&self) -> Event {
        let reason = match self {
            PlanWarning::IgnoredAnnotation { .. } => "InvalidAnnotation",
            PlanWarning::UnknownKeys { .. } => "UnknownKey",
        };
        Event::warning(reason, diagnostic::line(self))
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
