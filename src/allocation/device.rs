//! The device of an attachment.

use std::fmt;

use device_info::PciAddress;
use serde::{Deserialize, Serialize};

use crate::cluster::ClaimedDevice;

/// The device of one attachment of a pod. The journal stores it, so that CHECK and DEL act on the
/// device that the ADD attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocatedDevice {
    /// The identifier that kubelet allocated: a PCI address, a vDPA device, a subfunction, or an
    /// identifier in the device plugin's own format.
    pub id: String,
    /// The resource that the device belongs to.
    pub resource: String,
    /// The driver that the device was bound to at the ADD; `None` if `id` is in the device plugin's
    /// own format, because Jackfield cannot find the device by such an identifier.
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
    /// kubelet's pod-resources API, if kubelet's checkpoint lists no further devices of the same
    /// resource for the pod.
    PodResources,
    /// kubelet's checkpoint, if the pod-resources API omits at least one of the pod's devices of
    /// the same resource.
    Checkpoint,
    /// kubelet's pod-resources API for a claim, and the driver's ResourceSlice. kubelet's
    /// `dra_manager_state` lists the claim for this pod.
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
