//! Physical and virtual functions.

use serde::Serialize;

use super::{Hex, PciFunction};
use crate::pci_address::PciAddress;

/// The SR-IOV capability of a physical function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sriov {
    /// The maximum number of virtual functions.
    pub total_vfs: u32,
    /// The current number of virtual functions. `None` means that the crate could not read the
    /// number, not that it is zero.
    pub num_vfs: Option<u32>,
    /// The device ID of the virtual functions.
    pub vf_device: Option<u16>,
    /// The number of MSI-X vectors that the function can distribute among its virtual functions.
    /// `None` if the driver has no pool of vectors. Without a pool, the driver of E810 shows
    /// 4294967033 (a negative number, printed as unsigned). The crate turns such an impossible
    /// number into `None`.
    pub vf_total_msix: Option<u32>,
}

/// The maximum size of an MSI-X pool: 2,048 vectors for each of 65,535 functions.
const MAX_MSIX: u32 = 2048 * 65_535;

impl PciFunction {
    /// Returns the SR-IOV capability; `None` for a function without it.
    ///
    /// A function with the capability may currently have no virtual functions. While a driver
    /// creates virtual functions, the kernel blocks every reader of their number. So call this
    /// method only where blocking does no harm.
    #[must_use]
    pub fn sriov(&self) -> Option<Sriov> {
        Some(Sriov {
            total_vfs: self.total_vfs()?,
            num_vfs: self.entry.value("sriov_numvfs", "number of VFs"),
            vf_device: self.vf_device(),
            vf_total_msix: self
                .entry
                .value("sriov_vf_total_msix", "number of vectors")
                .filter(|vectors| *vectors <= MAX_MSIX),
        })
    }

    /// Returns the maximum number of virtual functions. Unlike [`PciFunction::sriov`], never blocks
    /// while a driver creates virtual functions.
    #[must_use]
    pub fn total_vfs(&self) -> Option<u32> {
        self.entry.value("sriov_totalvfs", "number of VFs")
    }

    pub(crate) fn vf_device(&self) -> Option<u16> {
        self.entry
            .value::<Hex<u16>>("sriov_vf_device", "PCI number")
            .map(|hex| hex.0)
    }

    /// Returns the address of the physical function that this virtual function belongs to. Returns
    /// `None` if this function is not a virtual function. Also returns `None` in a virtual machine
    /// that has the virtual function without its physical function.
    #[must_use]
    pub fn physfn(&self) -> Option<PciAddress> {
        let physical = self.entry.link_name("physfn")?.parse().ok()?;
        (physical != self.address()).then_some(physical)
    }

    /// As [`PciFunction::physfn`], but returns the function instead of its address.
    #[must_use]
    pub fn physical_function(&self) -> Option<Self> {
        self.entry.sysfs().pci_function(self.physfn()?)
    }

    /// Returns the virtual functions with their numbers, in numeric order.
    #[must_use]
    pub fn vfs(&self) -> Vec<(u32, PciAddress)> {
        self.entry
            .names("")
            .iter()
            .filter_map(|name| {
                let index = name.strip_prefix("virtfn")?.parse().ok()?;
                let address = self.entry.link_name(name)?.parse().ok()?;
                (address != self.address()).then_some((index, address))
            })
            .collect()
    }

    /// Returns the VF number.
    ///
    /// Computes the number from the physical function's offset and stride, and confirms it by
    /// reading one link. This takes nine system calls, whatever the number of virtual functions. If
    /// the link does not confirm the number, reads all links.
    #[must_use]
    pub fn vf_index(&self) -> Option<u32> {
        let physical = self.physical_function()?;
        let own = self.address();
        let is_own = |index: u32| {
            physical
                .entry
                .link_name(&format!("virtfn{index}"))
                .and_then(|name| name.parse().ok())
                == Some(own)
        };
        match self
            .computed_index(&physical)
            .filter(|index| is_own(*index))
        {
            Some(index) => Some(index),
            None => physical
                .vfs()
                .into_iter()
                .find_map(|(index, address)| (address == own).then_some(index)),
        }
    }

    /// Computes the index of this VF from its routing ID (SR-IOV 1.1 §2.1.2): the routing ID of VF
    /// n is the routing ID of the PF, plus the offset, plus n times the stride.
    fn computed_index(&self, physical: &Self) -> Option<u32> {
        let offset: u32 = physical.entry.value("sriov_offset", "VF offset")?;
        let stride: u32 = physical.entry.value("sriov_stride", "VF stride")?;
        let first = routing_id(physical.address()).checked_add(offset)?;
        let distance = routing_id(self.address()).checked_sub(first)?;
        if stride == 0 {
            return (distance == 0).then_some(0);
        }
        (distance.checked_rem(stride)? == 0)
            .then(|| distance.checked_div(stride))
            .flatten()
    }
}

/// Returns the routing ID of a function: bus, device and function in 16 bits.
fn routing_id(address: PciAddress) -> u32 {
    u32::from(address.bus()) << 8 | u32::from(address.device()) << 3 | u32::from(address.function())
}
