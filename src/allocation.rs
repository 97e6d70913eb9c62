//! kubelet's devices: which of them a pod has, and which of those each of its networks gets.
//!
//! ```text
//! jackfield.io/devices (embedded cluster) ────┐
//! kubelet's pod-resources, by the pod's name ─┤
//! kubelet's own record, by the pod's UID ─────┴─▶ Allocation ──▶ assign ──▶ one device per network
//! ```
//!
//! A device counts as the pod's when kubelet's own record has it under the pod's UID. The API knows
//! no UIDs, so its answer may be about a previous pod of the same name. It answers with empty lists
//! while kubelet starts.
//!
//! One allocation serves all networks of a pod, including the cluster network. ADD pairs devices and
//! networks once, and the journal keeps the pairs: kubelet lists devices in an order that changes from
//! call to call.

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

/// A pod's devices by resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allocation {
    supplies: BTreeMap<String, Supply>,
    /// What surprises people about the origin of the devices.
    pub remarks: Vec<AllocationRemark>,
}

/// What is known of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Supply {
    /// The pod has devices.
    Devices {
        /// Their identifiers, in the order in which its networks get them.
        ids: Vec<String>,
        /// The source that names them.
        origin: Origin,
    },
    /// It counts something other than devices (a bridge, a licence): its networks get none.
    NoDevices,
    /// Its devices are unknown for this reason.
    Unknown(Box<UnknownCause>),
}

impl Allocation {
    /// Sets what is known of a resource.
    pub fn set(&mut self, resource: &str, supply: Supply) {
        self.supplies.insert(resource.to_owned(), supply);
    }

    /// What is known of a resource.
    pub fn supply(&self, resource: &str) -> Option<&Supply> {
        self.supplies.get(resource)
    }
}

/// The order in which networks get devices. It compares PCI addresses as numbers, so that
/// `0000:01:02.0` comes before `0000:01:10.0` and the domain `ffff` before `10000`, and other
/// identifiers in natural order.
fn numeric(left: &str, right: &str) -> Ordering {
    match (left.parse::<PciAddress>(), right.parse::<PciAddress>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => natural_order(left, right),
    }
}

/// An identifier in the one spelling in which identifiers of the same device are equal texts.
fn canonical(id: &str) -> Cow<'_, str> {
    match id.parse::<PciAddress>() {
        Ok(address) => Cow::Owned(address.to_string()),
        Err(_) => Cow::Borrowed(id),
    }
}

/// Whether two identifiers name the same device: PCI addresses may have upper-case digits.
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
