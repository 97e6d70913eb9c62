//! A PCI function.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use sysfs_class::SysClass;

use crate::pci_address::PciAddress;
use crate::sysfs::{Entry, Sysfs};

pub(crate) use netdevs::{own_netdev, virtio_names};
pub use sriov::Sriov;
pub use vfio::Vfio;

mod netdevs;
mod sriov;
mod vfio;

/// The directory of links to all PCI functions.
const DEVICES: &str = "bus/pci/devices";

/// A PCI function: physical, virtual, or without SR-IOV.
///
/// Every method reads sysfs when it is called. `None` and empty lists mean "missing or not known".
///
/// ```
/// use device_info::{PciAddress, Sysfs};
///
/// let sysfs = Sysfs::host();
/// let address: PciAddress = "0000:01:10.0".parse()?;
/// if let Some(vf) = sysfs.pci_function(address) {
///     println!("{address} is VF {:?} of {:?}, driver {:?}", vf.vf_index(), vf.physfn(), vf.driver());
/// }
/// # Ok::<(), device_info::PciAddressError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PciFunction {
    entry: Entry,
    address: Option<PciAddress>,
}

impl Sysfs {
    /// Finds the function at an address; `None` if there is none.
    #[must_use]
    pub fn pci_function(&self, address: PciAddress) -> Option<PciFunction> {
        Entry::linked(self, DEVICES, &address.to_string()).map(PciFunction::from_entry)
    }

    /// Returns all functions, in the order of their addresses. Takes one system call for each
    /// function, and a few for the list.
    #[must_use]
    pub fn pci_functions(&self) -> Vec<PciFunction> {
        self.pci_addresses()
            .into_iter()
            .filter_map(|address| self.pci_function(address))
            .collect()
    }

    pub(crate) fn pci_addresses(&self) -> Vec<PciAddress> {
        let mut addresses: Vec<PciAddress> = self
            .names(DEVICES)
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect();
        addresses.sort_unstable();
        addresses
    }
}

impl PciFunction {
    pub(crate) fn from_entry(entry: Entry) -> Self {
        let address = entry.name().parse().ok();
        Self { entry, address }
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> PciAddress {
        // `self.address` is `None` only if `SysClass::from_path_unchecked` got an invalid path.
        self.address.unwrap_or_default()
    }

    /// Returns the vendor ID, such as `8086` for Intel.
    #[must_use]
    pub fn vendor(&self) -> Option<u16> {
        self.number("vendor")
    }

    /// Returns the device ID.
    #[must_use]
    pub fn device(&self) -> Option<u16> {
        self.number("device")
    }

    /// Returns the subsystem's vendor ID and device ID.
    #[must_use]
    pub fn subsystem(&self) -> Option<(u16, u16)> {
        Some((
            self.number("subsystem_vendor")?,
            self.number("subsystem_device")?,
        ))
    }

    /// Returns the class in 24 bits: class, subclass, programming interface.
    #[must_use]
    pub fn class(&self) -> Option<u32> {
        self.entry
            .value::<Hex<u32>>("class", "PCI class")
            .map(|hex| hex.0)
    }

    /// Returns whether the function is a network controller: class `0x02`.
    #[must_use]
    pub fn is_network(&self) -> bool {
        self.class().is_some_and(|class| class >> 16 == 0x02)
    }

    /// Returns the bound driver. `None` means unbound, which is not a fault.
    #[must_use]
    pub fn driver(&self) -> Option<String> {
        self.entry.link_name("driver")
    }

    /// Returns the only driver that may bind to the function, if an administrator set one.
    #[must_use]
    pub fn driver_override(&self) -> Option<String> {
        self.trim_file("driver_override")
            .ok()
            .filter(|driver| driver != "(null)")
    }

    /// Returns the nearest NUMA node. `None` on a machine without NUMA, where sysfs shows -1.
    #[must_use]
    pub fn numa_node(&self) -> Option<u32> {
        let node: i64 = self.entry.value("numa_node", "NUMA node")?;
        u32::try_from(node).ok()
    }

    /// Returns the names of the function's RDMA devices, usually one. With exclusive RDMA
    /// namespaces, an RDMA device that is in another network namespace is missing from the list.
    #[must_use]
    pub fn rdma_devices(&self) -> Vec<String> {
        self.entry.names("infiniband")
    }

    fn number(&self, name: &str) -> Option<u16> {
        self.entry
            .value::<Hex<u16>>(name, "PCI number")
            .map(|hex| hex.0)
    }
}

impl fmt::Display for PciFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address().fmt(f)
    }
}

/// A hexadecimal number. The prefix `0x` is optional, because the number in the sysfs file
/// `sriov_vf_device` has no prefix.
pub(crate) struct Hex<T>(pub(crate) T);

macro_rules! hex {
    ($number:ty) => {
        impl FromStr for Hex<$number> {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                <$number>::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).map(Self)
            }
        }
    };
}
hex!(u16);
hex!(u32);
