//! A vDPA device.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::pci_address::PciAddress;
use crate::pci_function::virtio_names;
use crate::quoted::Quoted;
use crate::sysfs::{Entry, Sysfs};

/// The directory of links to all vDPA devices.
const DEVICES: &str = "bus/vdpa/devices";

/// Who uses a vDPA device (`DEVINFO 1.1.0 §3.1.4.2`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VdpaDriver {
    /// A program, through `/dev/vhost-vdpa-N` (the kernel's driver `vhost_vdpa`).
    Vhost,
    /// This kernel, as a virtio device (`virtio_vdpa`).
    Virtio,
}

/// A device on the vDPA bus. Its name is free text.
#[derive(Clone, Debug)]
pub struct VdpaDevice(Entry);

impl Sysfs {
    /// Finds a vDPA device by name; `None` if it is missing.
    #[must_use]
    pub fn vdpa_device(&self, name: &str) -> Option<VdpaDevice> {
        if !crate::sysfs::path::is_entry_name(name) {
            return None;
        }
        Entry::linked(self, DEVICES, name).map(VdpaDevice)
    }

    /// Returns all vDPA devices, in natural order.
    #[must_use]
    pub fn vdpa_devices(&self) -> Vec<VdpaDevice> {
        self.names(DEVICES)
            .iter()
            .filter_map(|name| self.vdpa_device(name))
            .collect()
    }

    /// Returns the vDPA devices directly below `parent`. The directory of `parent` contains the
    /// directory of each of these devices, under the device's name on the vDPA bus. So this method
    /// reads a device's link on the bus only if `parent` has an entry of the same name. The number
    /// of system calls does not depend on the vDPA devices of other parents.
    pub(crate) fn vdpa_devices_below(&self, parent: &Entry) -> Vec<VdpaDevice> {
        let on_bus = self.names(DEVICES);
        if on_bus.is_empty() {
            return Vec::new();
        }
        let below = parent.names("");
        on_bus
            .iter()
            .filter(|name| below.contains(name))
            .filter_map(|name| self.vdpa_device(name))
            .filter(|device| device.0.path().parent() == Some(parent.path()))
            .collect()
    }
}

impl VdpaDevice {
    pub(crate) fn from_entry(entry: Entry) -> Self {
        Self(entry)
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.0
    }

    /// Returns the name on the bus. The specification calls this name `parent-device` (`DEVINFO
    /// 1.1.0 §3.1.4.1`).
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Returns who uses the device; `None` if the device is unbound, or bound to a driver that the
    /// specification does not define.
    #[must_use]
    pub fn driver(&self) -> Option<VdpaDriver> {
        match self.0.link_name("driver")?.as_str() {
            "vhost_vdpa" => Some(VdpaDriver::Vhost),
            "virtio_vdpa" => Some(VdpaDriver::Virtio),
            _ => None,
        }
    }

    /// Returns the PCI function behind the device; `None` for a software device (VDUSE or the
    /// kernel's `vdpa_sim`).
    #[must_use]
    pub fn pci_address(&self) -> Option<PciAddress> {
        self.0.pci_ancestor().map(|(address, _)| address)
    }

    /// Returns the name of the virtio device that `virtio_vdpa` created for this vDPA device. An
    /// example is `virtio3`.
    ///
    /// For a software device, the virtio device is in the vDPA device's directory. For a vDPA
    /// device of a PCI function, the virtio device is in the function's directory. Returns `None`
    /// if the function's directory has several virtio devices, or if another vDPA device of the
    /// function uses `virtio_vdpa`. In these cases, the directory does not show which virtio device
    /// belongs to this vDPA device.
    #[must_use]
    pub fn virtio_device(&self) -> Option<String> {
        (self.driver()? == VdpaDriver::Virtio).then_some(())?;
        if let Some(own) = only(virtio_names(&self.0)) {
            return Some(own);
        }
        let (_, function) = self.0.pci_ancestor()?;
        let beside = only(virtio_names(&function))?;
        // Another vDPA device of the function could be the owner of this virtio device.
        let rivals = self.0.sysfs().vdpa_devices_below(&function);
        let alone = rivals
            .iter()
            .all(|rival| rival.name() == self.name() || rival.driver() != Some(VdpaDriver::Virtio));
        alone.then_some(beside)
    }

    /// Returns the path of the device (`DEVINFO 1.1.0 §3.1.4.3`), such as `/dev/vhost-vdpa-0` for
    /// `vhost` and `/sys/bus/virtio/devices/virtio3` for `virtio`. For `vhost`, returns `None` if
    /// the device node in `/dev` is missing, or does not have the major and minor number that sysfs
    /// shows.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        match self.driver()? {
            VdpaDriver::Virtio => self
                .virtio_device()
                .map(|name| format!("/sys/bus/virtio/devices/{name}")),
            VdpaDriver::Vhost => {
                let mut names = self.0.names("");
                names.retain(|name| {
                    name.strip_prefix("vhost-vdpa-")
                        .is_some_and(|number| number.parse::<u32>().is_ok())
                });
                let name = only(names)?;
                let numbers = self.0.text(format!("{name}/dev"))?;
                self.0.sysfs().character_device(&name, Some(&numbers))
            }
        }
    }

    /// Returns the name of the device's network interface. Only a device that is bound to
    /// `virtio_vdpa` can have one. Returns `None` if the interface is in a network namespace other
    /// than the namespace of sysfs.
    #[must_use]
    pub fn netdev(&self) -> Option<String> {
        let virtio = self.virtio_device()?;
        let entry = Entry::linked(self.0.sysfs(), "bus/virtio/devices", &virtio)?;
        only(entry.names("net"))
    }
}

fn only(names: Vec<String>) -> Option<String> {
    <[String; 1]>::try_from(names).ok().map(|[name]| name)
}

impl fmt::Display for VdpaDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vhost => "vhost",
            Self::Virtio => "virtio",
        })
    }
}

impl FromStr for VdpaDriver {
    type Err = VdpaDriverError;

    fn from_str(text: &str) -> Result<Self, VdpaDriverError> {
        match text {
            "vhost" => Ok(Self::Vhost),
            "virtio" => Ok(Self::Virtio),
            _ => Err(VdpaDriverError(Quoted::new(text))),
        }
    }
}

/// A text that is not a vDPA driver of the specification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a vDPA driver; write vhost or virtio")]
pub struct VdpaDriverError(Quoted);
