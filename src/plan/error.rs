//! Why a plan cannot be made.

use std::fmt;

use crate::cni::code;

/// A reason to attach nothing, with the network that it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// The network and its interface, where one is to blame.
    pub place: Option<NetworkPlace>,
    /// What is wrong.
    pub reason: Reason,
}

/// A network of a pod, as messages name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPlace {
    /// `namespace/definition`, or the cluster network's CNI name.
    pub label: String,
    /// The interface, once it is known.
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

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The annotation is invalid.
    #[error("annotation {key}: {cause}")]
    Annotation {
        /// Its name.
        key: &'static str,
        /// What is wrong, and the remedy.
        cause: String,
    },
    /// An interface name is used twice, or is there already.
    #[error("interface name {0}; choose another in the pod's annotation")]
    Interface(String),
    /// `ips` and `ipam-claim-reference` on one network.
    #[error("ips and ipam-claim-reference {0} exclude each other; keep one")]
    TwoAddresses(String),
    /// The definition is not there, or its configuration is wrong.
    #[error("{0}")]
    Network(String),
    /// Nobody declares the capability.
    #[error(
        "{key} was requested and no plugin of {types} declares the capability {capability}; \
         add \"capabilities\": {{\"{capability}\": true}} to the definition or drop the request"
    )]
    Undeclared {
        /// The annotation's key.
        key: &'static str,
        /// The capability.
        capability: &'static str,
        /// The plugins of the chain.
        types: String,
    },
    /// The plan takes longer than the call may.
    #[error(
        "the plan is not ready by the deadline; select fewer or smaller networks, or raise deadlines.add"
    )]
    NoTime,
    /// Too few devices, or none of that name.
    #[error("{0}")]
    Devices(String),
    /// What the device's files say is not so, or they cannot be trusted.
    #[error("{0}")]
    DeviceInfo(String),
    /// Something that only one sandbox of a node may ask for is another's.
    #[error("{0}")]
    Duplicate(String),
    /// Isolation or policy.
    #[error("{0}")]
    Restricted(String),
}

impl PlanError {
    /// The CNI code (`docs/errors.md`).
    pub fn code(&self) -> u32 {
        match self.reason {
            Reason::Annotation { .. }
            | Reason::Interface(_)
            | Reason::TwoAddresses(_)
            | Reason::Duplicate(_) => code::SELECTION,
            Reason::NoTime => code::TRY_AGAIN_LATER,
            Reason::DeviceInfo(_) => code::VERIFICATION,
            Reason::Network(_) => code::NETWORK,
            Reason::Undeclared { .. } => code::CAPABILITY,
            Reason::Devices(_) => code::DEVICES,
            Reason::Restricted(_) => code::RESTRICTED,
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.reason),
            None => write!(f, "{}", self.reason),
        }
    }
}

impl std::error::Error for PlanError {}

impl Reason {
    /// The reason, blamed on the network `label` at `ifname`.
    pub fn at(self, label: &str, ifname: Option<&str>) -> PlanError {
        let place = NetworkPlace {
            label: label.to_owned(),
            ifname: ifname.map(str::to_owned),
        };
        PlanError {
            place: Some(place),
            reason: self,
        }
    }
}
