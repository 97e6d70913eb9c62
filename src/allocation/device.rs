//! One device that a network got.

use device_info::PciAddress;
use serde::{Deserialize, Serialize};

/// A device of a pod, as it belongs to one attachment for its whole life: kept in the journal, so
/// that CHECK and DEL mean the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// The identifier that kubelet allocated: a PCI address, a vDPA device, a subfunction, or
    /// whatever the device plugin made up.
    pub id: String,
    /// The resource that it belongs to.
    pub resource: String,
    /// The driver that it was bound to when it was attached; none where the identifier's form is
    /// the device plugin's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
}

impl AllocatedDevice {
    /// Its PCI address, where it is a PCI function. Only of these it is certain that nobody shares
    /// them.
    pub fn pci(&self) -> Option<PciAddress> {
        self.id.parse().ok()
    }
}
