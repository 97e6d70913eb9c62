//! The node's devices. ADD, CHECK and DEL use this module to find devices in sysfs, to read their
//! state and their device-info files, and to find the device of an interface.

mod at_home;
mod identity;
mod info_file;
mod safety;
mod segment;
mod state;
mod uplink;

pub use info_file::InfoFileError;
pub(in crate::operation) use safety::Claimant;
pub use state::FunctionError;
pub(in crate::operation) use state::States;
pub(in crate::operation) use uplink::HostLinks;

use device_info::{Device, Facts, PciAddress, Sysfs, VdpaDevice, VdpaDriver};

use super::problem::{DeviceProblem, GroupMember};
use crate::allocation::AllocatedDevice;
use crate::plan::{Attachment, Reason};
use crate::request::NodeConfig;
use crate::verify::Mismatch;

/// The node's devices.
pub(in crate::operation) struct Hardware<'a> {
    config: &'a NodeConfig,
    sysfs: Sysfs,
}

impl<'a> Hardware<'a> {
    /// Opens the devices below `sysfsRoot`. If `sysfsRoot` has a sibling directory `dev`, looks up
    /// device nodes there instead of in `/dev`, because `sysfsRoot` may belong to a file tree that
    /// is mounted elsewhere.
    pub(in crate::operation) fn of(config: &'a NodeConfig) -> Hardware<'a> {
        let beside = config.sysfs_root.parent().map(|parent| parent.join("dev"));
        let beside = beside.filter(|dev| dev.is_dir());
        let dev = beside.unwrap_or_else(|| "/dev".into());
        Hardware {
            config,
            sysfs: Sysfs::at(&config.sysfs_root, dev),
        }
    }

    /// Checks an attachment's device before any delegate runs: the device must exist and have the
    /// right driver, and the device plugin's device-info must not contradict the hardware. Stores
    /// the driver in the attachment.
    pub(in crate::operation) fn inspect(&self, attachment: &mut Attachment) -> Result<(), Reason> {
        let Some(device) = &mut attachment.device else {
            return Ok(());
        };
        let sysfs = || self.config.sysfs_root.clone();
        let Some(found) = self.sysfs.device(&device.id) else {
            if device.pci().is_none() {
                // The identifier is not a PCI address, and sysfs has no entry to check. Only the
                // device plugin knows what the identifier means.
                return self.check_device_plugin(device);
            }
            return Err(DeviceProblem::Missing(device.clone(), sysfs()).into());
        };
        let Some(driver) = driver(&found) else {
            return Err(DeviceProblem::Unbound(device.clone(), sysfs()).into());
        };
        if let Device::Pci(function) = &found
            && let Some(wanted) = function.driver_override()
            && wanted != driver
        {
            return Err(DeviceProblem::OtherDriver {
                device: device.clone(),
                driver,
                wanted,
                sysfs: sysfs(),
            }
            .into());
        }
        device.driver = Some(driver);
        self.check_device_plugin(device)
    }

    /// Whether the function at `address` is a virtual function.
    pub(in crate::operation) fn is_virtual_function(&self, address: PciAddress) -> bool {
        let function = self.sysfs.pci_function(address);
        function.is_some_and(|function| function.physfn().is_some())
    }

    fn is_in_user_space(&self, device: &AllocatedDevice) -> bool {
        match self.sysfs.device(&device.id) {
            Some(Device::Vdpa(vdpa)) => vdpa.driver() == Some(VdpaDriver::Vhost),
            Some(Device::Pci(function)) => {
                let driver = function.driver();
                let is_vhost = || {
                    let facts = Facts::read(&self.sysfs, &device.id, &mut |_| None);
                    let vdpa = facts.and_then(|facts| facts.vdpa);
                    vdpa.is_some_and(|vdpa| vdpa.driver == Some(VdpaDriver::Vhost))
                };
                driver.is_some_and(|driver| drives_user_space(&driver)) || is_vhost()
            }
            Some(Device::Subfunction(_)) | None => false,
        }
    }

    /// Returns a mismatch if the device is missing, or has a different driver than
    /// [`inspect`](Self::inspect) found before the delegates ran. Also returns a mismatch if the
    /// device is meant for a user-space program, but has no device node that the program can open.
    pub(in crate::operation) fn mismatch(&self, attachment: &Attachment) -> Option<Mismatch> {
        let device = attachment.device.as_ref()?;
        let expected = device.driver.as_ref()?;
        let current = self.sysfs.device(&device.id);
        let found = current.as_ref().and_then(driver);
        if found.as_ref() != Some(expected) {
            return Some(Mismatch::Driver {
                device: device.id.clone(),
                expected: expected.clone(),
                found,
            });
        }
        let is_closed = current.is_some_and(|current| !self.can_be_opened(&current));
        is_closed.then(|| Mismatch::NoCharacterDevice {
            device: device.id.clone(),
            driver: expected.clone(),
        })
    }

    /// Whether a user-space program can open the device through a device node. Always true for a
    /// device that is not meant for such a program.
    fn can_be_opened(&self, device: &Device) -> bool {
        let is_vhost = |vdpa: &VdpaDevice| vdpa.driver() == Some(VdpaDriver::Vhost);
        let opens = |vdpa: &VdpaDevice| !is_vhost(vdpa) || vdpa.path().is_some();
        match device {
            Device::Pci(function) => {
                let vfio = function.vfio();
                let is_open = vfio.is_none_or(|vfio| vfio.path.or(vfio.device_path).is_some());
                let (vdpa, own) = (self.sysfs.vdpa_devices(), Some(function.address()));
                let mut own = vdpa.iter().filter(|vdpa| vdpa.pci_address() == own);
                is_open && own.all(opens)
            }
            Device::Vdpa(vdpa) => opens(vdpa),
            Device::Subfunction(_) => true,
        }
    }
}

/// Returns the driver that a device is bound to.
fn driver(device: &Device) -> Option<String> {
    match device {
        Device::Pci(function) => function.driver(),
        Device::Vdpa(vdpa) => vdpa.driver().map(|driver| driver.to_string()),
        Device::Subfunction(subfunction) => subfunction.driver(),
    }
}

/// Whether a driver creates network interfaces. Two kinds of drivers create none: drivers that let
/// a user-space program control the device, and stub drivers such as `pci-stub`.
pub(in crate::operation) fn creates_interfaces(driver: &str) -> bool {
    !drives_user_space(driver) && !driver.contains("stub")
}

fn drives_user_space(driver: &str) -> bool {
    driver.contains("vfio") || driver.contains("uio")
}

#[cfg(test)]
pub(in crate::operation) mod tests;
