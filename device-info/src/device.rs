//! Finds a device by the identifier that kubelet allocated.

use crate::pci_address::PciAddress;
use crate::pci_function::PciFunction;
use crate::subfunction::Subfunction;
use crate::sysfs::{Entry, Sysfs};
use crate::vdpa::VdpaDevice;

/// The device behind an identifier of a device plugin.
#[derive(Clone, Debug)]
pub enum Device {
    /// A PCI function: `0000:01:10.0`.
    Pci(PciFunction),
    /// A vDPA device: its name on the vDPA bus.
    Vdpa(VdpaDevice),
    /// A subfunction: `mlx5_core.sf.4`.
    Subfunction(Subfunction),
}

impl Sysfs {
    /// Finds the device of an identifier. A device plugin may choose any text as an identifier.
    /// Returns `None` if the text has none of the forms that [`Device`] lists, or if the device is
    /// missing.
    #[must_use]
    pub fn device(&self, id: &str) -> Option<Device> {
        if let Ok(address) = id.parse() {
            return self.pci_function(address).map(Device::Pci);
        }
        self.subfunction(id)
            .map(Device::Subfunction)
            .or_else(|| self.vdpa_device(id).map(Device::Vdpa))
    }

    /// Finds the names of the device behind an interface. `bus` and `name` identify the interface's
    /// parent, as netlink reports it (`IFLA_PARENT_DEV_BUS_NAME`, `IFLA_PARENT_DEV_NAME`).
    ///
    /// The parent of a virtio interface is `virtioN`, and the parent of a subfunction's interface
    /// is `mlx5_core.sf.N`. From the parent, this method finds the PCI function and, for a virtio
    /// interface, the vDPA device.
    #[must_use]
    pub fn identity(&self, bus: &str, name: &str) -> DeviceNames {
        use crate::sysfs::path::is_entry_name;
        if bus == "pci" {
            return DeviceNames {
                pci: name.parse().ok(),
                ..DeviceNames::default()
            };
        }
        if !is_entry_name(bus) || !is_entry_name(name) {
            return DeviceNames::default();
        }
        let Some(entry) = Entry::linked(self, &format!("bus/{bus}/devices"), name) else {
            return DeviceNames::default();
        };
        let pci = entry.pci_ancestor().map(|(address, _)| address);
        DeviceNames {
            pci,
            vdpa: (bus == "virtio")
                .then(|| self.vdpa_of_virtio(&entry))
                .flatten(),
            auxiliary: (bus == "auxiliary").then(|| name.to_owned()),
        }
    }

    /// Finds the vDPA device of a virtio device. In sysfs, the vDPA device is the parent directory
    /// of the virtio device, or both devices are below the same directory.
    fn vdpa_of_virtio(&self, virtio: &Entry) -> Option<String> {
        let parent = virtio.path().parent()?;
        let name = parent.file_name()?.to_str()?;
        if let Some(own) = self
            .vdpa_device(name)
            .filter(|device| device.entry().path() == parent)
        {
            return Some(own.name().to_owned());
        }
        self.vdpa_devices_below(&Entry::at(self, parent.to_path_buf()))
            .into_iter()
            .find(|device| device.virtio_device().as_deref() == Some(virtio.name()))
            .map(|device| device.name().to_owned())
    }
}

/// The names of an interface's device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceNames {
    /// The nearest PCI function; `None` for a software device.
    pub pci: Option<PciAddress>,
    /// The vDPA device.
    pub vdpa: Option<String>,
    /// The auxiliary device.
    pub auxiliary: Option<String>,
}

impl DeviceNames {
    /// Returns whether the interface belongs to the device that `id` identifies.
    ///
    /// The interface of a subfunction does not belong to the subfunction's parent PCI function.
    /// Returns `None` if the names of the interface's device are not enough to decide, for example
    /// if a device plugin uses its own form of identifier.
    #[must_use]
    pub fn is(&self, id: &str) -> Option<bool> {
        if let Ok(address) = id.parse::<PciAddress>() {
            return match (&self.auxiliary, self.pci) {
                (Some(_), _) => Some(false),
                (None, Some(pci)) => Some(pci == address),
                (None, None) => None,
            };
        }
        let names = [self.vdpa.as_deref(), self.auxiliary.as_deref()];
        if names.contains(&Some(id)) {
            return Some(true);
        }
        // If `id` contains `.sf.`, `id` identifies a subfunction. For this subfunction's interface,
        // `auxiliary` is `id`, so the check above has returned `true`. Any other interface whose
        // device has a known name belongs to another device.
        let known = self.auxiliary.is_some() || self.pci.is_some() || self.vdpa.is_some();
        (known && id.contains(".sf.")).then_some(false)
    }
}
