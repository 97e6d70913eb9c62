//! A subfunction.

use crate::pci_address::PciAddress;
use crate::pci_function::PciFunction;
use crate::pci_function::own_netdev;
use crate::sysfs::{Entry, Sysfs};

/// The directory of links to all auxiliary devices.
const DEVICES: &str = "bus/auxiliary/devices";

/// A subfunction of a PCI function. It is a device on the auxiliary bus: `mlx5_core.sf.4`.
///
/// The kernel chooses the number in the name. This number may change when the subfunction is
/// created again. The creator of the subfunction chooses its `sfnum` ([`Subfunction::number`]). A
/// subfunction has no PCI address.
#[derive(Clone, Debug)]
pub struct Subfunction(Entry);

impl Sysfs {
    /// Finds a subfunction by name; `None` if the device is missing or is not a subfunction.
    #[must_use]
    pub fn subfunction(&self, name: &str) -> Option<Subfunction> {
        if !is_subfunction(name) {
            return None;
        }
        Entry::linked(self, DEVICES, name).map(Subfunction)
    }

    /// Returns all subfunctions, in natural order.
    #[must_use]
    pub fn subfunctions(&self) -> Vec<Subfunction> {
        self.names(DEVICES)
            .iter()
            .filter_map(|name| self.subfunction(name))
            .collect()
    }
}

/// Returns whether the name is `<module>.sf.<number>`.
fn is_subfunction(name: &str) -> bool {
    crate::sysfs::path::is_entry_name(name)
        && name
            .rsplit_once(".sf.")
            .is_some_and(|(module, number)| !module.is_empty() && number.parse::<u32>().is_ok())
}

impl Subfunction {
    pub(crate) fn from_entry(entry: Entry) -> Self {
        Self(entry)
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.0
    }

    /// Returns the auxiliary device's name, which device plugins use as the device's ID.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Returns `sfnum`, the number that the subfunction's creator chose.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        self.0.value("sfnum", "subfunction number")
    }

    /// Returns the PCI function that the subfunction is part of: the nearest PCI function above the
    /// subfunction in sysfs.
    #[must_use]
    pub fn parent(&self) -> Option<PciFunction> {
        let (_, entry) = self.0.pci_ancestor()?;
        Some(PciFunction::from_entry(entry))
    }

    /// Returns the address of [`Subfunction::parent`].
    #[must_use]
    pub fn parent_address(&self) -> Option<PciAddress> {
        self.0.pci_ancestor().map(|(address, _)| address)
    }

    /// Returns the bound driver.
    #[must_use]
    pub fn driver(&self) -> Option<String> {
        self.0.link_name("driver")
    }

    /// Returns the network interface in this network namespace.
    #[must_use]
    pub fn netdev(&self) -> Option<String> {
        own_netdev(&self.0)
    }

    /// Returns the RDMA devices in this network namespace.
    #[must_use]
    pub fn rdma_devices(&self) -> Vec<String> {
        self.0.names("infiniband")
    }
}
