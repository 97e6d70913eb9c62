//! Finds the devices that kubelet allocated to a pod, and assigns them to the pod's networks.
//!
//! ```text
//! jackfield.io/devices in the pod's manifest ─┐
//! kubelet's pod-resources, by the pod's name ─┤
//! kubelet's own record, by the pod's UID ─────┴─▶ Allocation ──▶ assign ──▶ one device per network
//! ```
//!
//! The annotation `jackfield.io/devices` belongs to pods that Jackfield reads from a folder of
//! manifests (`manifestDir`). It lists devices by resource. Jackfield does not ask kubelet about a
//! resource in this list. In a cluster, Jackfield ignores the annotation.
//!
//! kubelet's own record consists of two files: `kubelet_internal_checkpoint` for devices of device
//! plugins, and `dra_manager_state` for devices of claims (DRA). The pod-resources API has no UIDs,
//! so its answer may be about a previous pod of the same name. A device in this answer belongs to
//! the pod only if kubelet's own record lists the device under the pod's UID. While kubelet starts,
//! the API returns empty lists, even for a pod that has devices.
//!
//! One allocation serves all networks of a pod, including the cluster network. ADD pairs devices
//! with networks once, and the journal stores the pairs for later calls. A second assignment could
//! give other pairs, because the pod's annotation or a definition may have changed since the ADD.

mod assign;
mod checkpoint;
mod claims;
mod device;
mod evidence;
mod gather;
mod problem;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use device_info::{PciAddress, natural_order};

pub use assign::{Wish, assign};
pub use checkpoint::Checkpoint;
pub use device::{AllocatedDevice, Origin};
pub use gather::{Sources, gather};
pub use problem::{
    AllocationRemark, AssignError, CheckpointCause, CheckpointError, PodResourcesAnswer,
    UnknownCause,
};

use crate::cluster::ClaimedDevice;

/// A pod's devices by resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocation {
    supplies: BTreeMap<String, Supply>,
    /// The devices of the pod's ResourceClaims. The key is the device's identifier in canonical
    /// spelling.
    claimed: BTreeMap<String, ClaimedDevice>,
    /// Remarks on the origin of the devices.
    pub remarks: Vec<AllocationRemark>,
}

/// What Jackfield found out about a pod's devices of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Supply {
    /// The pod has devices.
    Devices {
        /// The identifiers of the devices, in the order in which the networks get them.
        ids: Vec<String>,
        /// The source of the identifiers.
        origin: Origin,
    },
    /// The resource counts something other than devices, such as bridges or licences. Networks of
    /// this resource get no device.
    NoDevices,
    /// Jackfield does not know the pod's devices. Contains the reason.
    Unknown(Box<UnknownCause>),
}

impl Allocation {
    /// Sets the supply of a resource.
    pub fn set(&mut self, resource: &str, supply: Supply) {
        self.supplies.insert(resource.to_owned(), supply);
    }

    /// Returns the supply of a resource, or `None` if Jackfield did not look up the resource.
    pub fn supply(&self, resource: &str) -> Option<&Supply> {
        self.supplies.get(resource)
    }
}

/// The order in which networks get the devices of one container. PCI addresses come first, compared
/// as numbers, so the domain `ffff` comes before `10000`. All other identifiers follow, in natural
/// order.
fn numeric(left: &str, right: &str) -> Ordering {
    match (left.parse::<PciAddress>(), right.parse::<PciAddress>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => natural_order(left, right),
    }
}

/// Returns the canonical spelling of an identifier. Identifiers of the same device have the same
/// canonical spelling.
fn canonical(id: &str) -> Cow<'_, str> {
    match id.parse::<PciAddress>() {
        Ok(address) => Cow::Owned(address.to_string()),
        Err(_) => Cow::Borrowed(id),
    }
}

/// Whether two identifiers name the same device. Ignores the case of hexadecimal digits in PCI
/// addresses.
fn same(left: &str, right: &str) -> bool {
    left == right || canonical(left) == canonical(right)
}

/// Reads kubelet's record of claims, for [`crate::fuzzing`].
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn claimed(bytes: &[u8]) {
    match claims::Claims::parse(bytes) {
        Ok(claims) => drop(claims.has("u", &crate::kubelet::DynamicDevice::default())),
        Err(cause) => drop(cause.to_string()),
    }
}

#[cfg(test)]
mod tests;
