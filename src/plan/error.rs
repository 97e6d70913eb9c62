//! Why a plan cannot be carried out.

use std::fmt;

use super::Reason;

/// A reason why a plan cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", prefix(.place.as_ref()))]
pub struct PlanError {
    /// The network with the problem; `None` if the reason concerns the whole pod.
    pub place: Option<NetworkPlace>,
    /// What is wrong.
    pub reason: Box<Reason>,
}

/// The name of a pod's network in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPlace {
    /// `namespace/definition`, or the name of a network without a definition.
    pub label: String,
    /// The interface; `None` if the message is about a network and not about an attachment.
    pub ifname: Option<String>,
}

impl fmt::Display for NetworkPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "network {}", self.label)?;
        match &self.ifname {
            Some(ifname) => write!(f, " ({ifname})"),
            None => Ok(()),
        }
    }
}

impl PlanError {
    /// The CNI code (`docs/errors.md`).
    pub fn code(&self) -> u32 {
        self.reason.code()
    }
}

fn prefix(place: Option<&NetworkPlace>) -> String {
    place.map_or_else(String::new, |place| format!("{place}: "))
}

impl Reason {
    /// The plan error for this reason, at the network `label` and the interface `ifname`.
    pub fn at(self, label: &str, ifname: Option<&str>) -> PlanError {
        let place = NetworkPlace {
            label: label.to_owned(),
            ifname: ifname.map(str::to_owned),
        };
        PlanError {
            place: Some(place),
            reason: Box::new(self),
        }
    }
}
