//! Physical and virtual functions.

use serde::Serialize;

use super::{Hex, PciFunction};
use crate::pci_address::PciAddress;

/// What a physical function says of its virtual ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sriov {
    /// How many virtual functions it could have.
    pub total_vfs: u32,
    /// How many it has now; `None` when that could not be read, which is not zero.
    pub num_vfs: Option<u32>,
    /// The device number of its virtual functions.
    pub vf_device: Option<u16>,
    /// How many MSI-X vectors it can spread over them. `None` where the driver has no such pool;
    /// E810 shows a negative number as 4294967033 then, which no function has.
    pub vf_total_msix: Option<u32>,
}

/// The most MSI-X vectors that a pool can have: 2,048 for each of 65,535 functions.
const MAX_MSIX: u32 = 2048 * 65_535;

impl PciFunction {
    /// What it says of its virtual functions; `None` for a function that is not physical.
    ///
    /// That it *could* have virtual functions says nothing on whether it has some. Reading the
    /// number can wait for a driver that is making virtual functions: call this where that does
    /// no harm.
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

    /// How many virtual functions it could have: the part of [`PciFunction::sriov`] that never
    /// waits for a driver.
    #[must_use]
    pub fn total_vfs(&self) -> Option<u32> {
        self.entry.value("sriov_totalvfs", "number of VFs")
    }

    pub(crate) fn vf_device(&self) -> Option<u16> {
        self.entry
            .value::<Hex<u16>>("sriov_vf_device", "PCI number")
            .map(|hex| hex.0)
    }

    /// The physical function that it is a virtual function of. `None` for any other function, and
    /// for a virtual function that was passed into this virtual machine.
    #[must_use]
    pub fn physfn(&self) -> Option<PciAddress> {
        let physical = self.entry.link_name("physfn")?.parse().ok()?;
        (physical != self.address()).then_some(physical)
    }

    /// Likewise, as a function.
    #[must_use]
    pub fn physical_function(&self) -> Option<Self> {
        self.entry.sysfs().pci_function(self.physfn()?)
    }

    /// Its virtual functions by their numbers, in numeric order.
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

    /// Its number among the virtual functions of its physical one.
    ///
    /// The number is computed from the physical function's offset and stride and then proven by
    /// one link: six system calls, however many virtual functions there are. Only where that
    /// proof fails are all links looked at. Names are compared whole.
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

    /// SR-IOV 1.1 §2.1.2: VF n has the routing ID of the PF, plus offset, plus n times stride.
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

/// Bus, device and function in 16 bits.
fn routing_id(address: PciAddress) -> u32 {
    u32::from(address.bus()) << 8 | u32::from(address.device()) << 3 | u32::from(address.function())
}
