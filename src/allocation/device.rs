//! The device of a network.

use std::fmt;

use device_info::PciAddress;
use serde::{Deserialize, Serialize};

/// A device of a pod, which belongs to one attachment for its whole life. The journal keeps it, so that
/// CHECK and DEL act on the same device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// The identifier that kubelet allocated: a PCI address, a vDPA device, a subfunction, or an
    /// identifier of the device plugin's own form.
    pub id: String,
    /// The resource that it belongs to.
    pub resource: String,
    /// The driver that it was bound to when it was attached; `None` for an identifier of the device
    /// plugin's own form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The source that names it as the pod's; `None` in records of older releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// The source that names a device as the pod's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The pod's manifest, in the embedded cluster.
    Manifest,
    /// kubelet's pod-resources API; its checkpoint has the device for this very pod.
    PodResources,
    /// kubelet's checkpoint alone.
    Checkpoint,
    /// kubelet's pod-resources API for a claim, and the driver's ResourceSlice; kubelet's
    /// `dra_manager_state` has the claim for this very pod.
    Dra,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Origin::Manifest => "the manifest's jackfield.io/devices",
            Origin::PodResources => "kubelet's pod-resources",
            Origin::Checkpoint => "kubelet's checkpoint",
            Origin::Dra => "a resource claim (DRA)",
        })
    }
}

impl AllocatedDevice {
    /// Its PCI address, if it is a PCI function. Only PCI functions are certain not to be shared.
    pub fn pci(&self) -> Option<PciAddress> {
        self.id.parse().ok()
    }
}
