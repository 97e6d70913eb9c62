//! One device that a network got.

use std::fmt;

use device_info::PciAddress;
use serde::Serialize;

/// A device of a pod, as it belongs to one attachment for its whole life: kept in the journal, so
/// that CHECK and DEL mean the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocatedDevice {
    /// The identifier that kubelet allocated: a PCI address, a vDPA device, a subfunction, or
    /// whatever the device plugin made up.
    pub id: String,
    /// The resource that it belongs to.
    pub resource: String,
    /// The driver that it was bound to when it was attached; none where the identifier's form is
    /// the device plugin's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Who says that it is the pod's; none in records of older releases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Who says that a device is the pod's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The pod's manifest, in the embedded cluster.
    Manifest,
    /// kubelet's pod-resources API, and its checkpoint says that it speaks of this very pod.
    PodResources,
    /// kubelet's checkpoint alone.
    Checkpoint,
    /// kubelet's pod-resources API of a claim, and the driver's ResourceSlice; kubelet's
    /// `dra_manager_state` says that the claim is this very pod's.
    Dra,
}

impl Origin {
    /// One word for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Manifest => "manifest",
            Origin::PodResources => "pod-resources",
            Origin::Checkpoint => "checkpoint",
            Origin::Dra => "dra",
        }
    }
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
    /// Its PCI address, where it is a PCI function. Only of these it is certain that nobody shares
    /// them.
    pub fn pci(&self) -> Option<PciAddress> {
        self.id.parse().ok()
    }
}
