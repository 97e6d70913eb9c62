//! PCI functions that are bound to VFIO drivers.

use serde::Serialize;

use super::PciFunction;
use crate::pci_address::PciAddress;

/// The character devices of a function that is bound to a VFIO driver.
///
/// The number of the IOMMU group may change at a reboot, so do not store the number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Vfio {
    /// The number of the IOMMU group.
    pub group: u32,
    /// `true` in VFIO's no-IOMMU mode. In this mode, the process that uses the device can write to
    /// all memory of the machine.
    pub noiommu: bool,
    /// The group's character device, if it exists. An example is `/dev/vfio/11`, or
    /// `/dev/vfio/noiommu-0` in no-IOMMU mode.
    pub path: Option<String>,
    /// The function's iommufd character device, if the kernel has one: `/dev/vfio/devices/vfio0`.
    pub device_path: Option<String>,
}

impl PciFunction {
    /// Returns the number of the IOMMU group.
    #[must_use]
    pub fn iommu_group(&self) -> Option<u32> {
        self.entry.link_name("iommu_group")?.parse().ok()
    }

    /// Returns all functions of the IOMMU group, including this one. A pod or a virtual machine can
    /// get these functions only together.
    #[must_use]
    pub fn iommu_group_members(&self) -> Vec<PciAddress> {
        let Some(group) = self.iommu_group() else {
            return Vec::new();
        };
        self.entry
            .sysfs()
            .names(&format!("kernel/iommu_groups/{group}/devices"))
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect()
    }

    /// Returns the character devices, if the function is bound to a VFIO driver: `vfio-pci`, or a
    /// vendor's driver such as `mlx5_vfio_pci`.
    #[must_use]
    pub fn vfio(&self) -> Option<Vfio> {
        self.vfio_under(&self.driver()?)
    }

    pub(crate) fn vfio_under(&self, driver: &str) -> Option<Vfio> {
        if !driver.contains("vfio") {
            return None;
        }
        let group = self.iommu_group()?;
        let sysfs = self.entry.sysfs();
        let name = self.entry.text("iommu_group/name");
        let noiommu = name.as_deref() == Some("vfio-noiommu");
        let node = if noiommu {
            format!("vfio/noiommu-{group}")
        } else {
            format!("vfio/{group}")
        };
        let device_path = self
            .entry
            .names("vfio-dev")
            .first()
            .and_then(|name| sysfs.character_device(&format!("vfio/devices/{name}"), None));
        Some(Vfio {
            group,
            noiommu,
            path: sysfs.character_device(&node, None),
            device_path,
        })
    }
}
