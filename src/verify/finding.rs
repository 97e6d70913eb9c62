//! Differences between an attachment as intended and as observed.

mod mismatch;

pub use mismatch::{HiddenFunction, Mismatch};
use thiserror::Error;

use crate::cni::InterfaceName;

/// One difference between the attachment as intended and as observed. Its
/// [`Display`](std::fmt::Display) is one line with the interface, the difference and a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("interface {interface}: {mismatch}")]
pub struct Finding {
    /// The interface of the attachment.
    pub interface: InterfaceName,
    /// The difference.
    pub mismatch: Mismatch,
    /// The weight of the difference.
    pub weight: Weight,
}

impl Finding {
    /// A finding about `interface`.
    pub fn new(interface: &InterfaceName, mismatch: Mismatch, weight: Weight) -> Finding {
        Finding {
            interface: interface.clone(),
            mismatch,
            weight,
        }
    }
}

/// How much a finding matters, from the lightest to the heaviest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// The finding is worth an event, but does not prove that the attachment contradicts a request
    /// or a delegate's result.
    Warning,
    /// The attachment contradicts only a delegate's result. For the cluster network, the key
    /// `verifyCluster` decides whether this is an error. For all other networks, the key `verify`
    /// decides.
    Answered,
    /// The attachment contradicts the pod's request, the definition or kubelet's allocation. For
    /// every network, the key `verify` decides whether this is an error.
    Requested,
}

/// The source of an expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Source {
    /// The pod's selection.
    #[error("requested")]
    Requested,
    /// The result of the delegates.
    #[error("returned by the delegate")]
    Answered,
}

impl From<Source> for Weight {
    fn from(source: Source) -> Self {
        match source {
            Source::Requested => Self::Requested,
            Source::Answered => Self::Answered,
        }
    }
}
