//! The device of an attachment.

use std::fmt;

use device_info::PciAddress;
use serde::{Deserialize, Serialize};

use crate::cluster::ClaimedDevice;

/// The device of one attachment of a pod. The journal stores it, so that CHECK and DEL act on the
/// device that the ADD attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// A PCI address, the name of a vDPA device or of a subfunction, or an identifier in the device
    /// plugin's own format.
    pub id: String,
    /// The resource of the device. If a claimed device has no resource, this is the name of its DRA
    /// driver.
    pub resource: String,
    /// The device's driver at the ADD; `None` if `id` is in the device plugin's own format, because
    /// Jackfield cannot find such a device in sysfs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The source that lists the device for the pod. Records of older releases have `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The name of the device in the pod's ResourceClaim; `None` if the device belongs to no
    /// ResourceClaim. Records of older releases have `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimedDevice>,
}

/// The source that lists a device for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The pod's manifest, if a folder of manifests takes the place of the cluster.
    Manifest,
    /// kubelet's pod-resources API, which lists all of the pod's devices of this resource.
    PodResources,
    /// kubelet's checkpoint, because the pod-resources API does not list all of the pod's devices
    /// of this resource.
    Checkpoint,
    /// A claim of the pod. kubelet's pod-resources API names the device, and kubelet's
    /// `dra_manager_state` lists the device for this claim. The device's [`AllocatedDevice::id`]
    /// comes from the driver's ResourceSlice.
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
    /// Returns the PCI address of the device; `None` if `id` is not a PCI address. Jackfield does
    /// not reserve a device without a PCI address.
    pub fn pci(&self) -> Option<PciAddress> {
        self.id.parse().ok()
    }
}
