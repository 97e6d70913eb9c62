//! The node's devices, as ADD, CHECK and DEL use them: which devices exist, what their files
//! report, and which device an interface belongs to.

mod at_home;
mod identity;
mod info_file;
mod safety;
mod segment;
mod state;
mod uplink;

use std::path::PathBuf;

pub use info_file::InfoFileError;
pub(in crate::operation) use safety::Claimant;
pub use state::FunctionError;
pub(in crate::operation) use state::States;
pub(in crate::operation) use uplink::HostLinks;

use device_info::{Device, Facts, PciAddress, Sysfs, VdpaDriver};

use super::problem::{DeviceProblem, GroupMember};
use crate::allocation::AllocatedDevice;
use crate::plan::{Attachment, Reason};
use crate::request::NodeConfig;
use crate::verify::{Finding, Mismatch, Weight};

/// The node's devices.
pub(in crate::operation) struct Hardware<'a> {
    config: &'a NodeConfig,
    sysfs: Sysfs,
}

impl<'a> Hardware<'a> {
    /// The devices below `sysfsRoot`. Device nodes come from the directory `dev` beside it if there
    /// is one, since `sysfsRoot` may be the mounted tree of another system.
    pub(in crate::operation) fn of(config: &'a NodeConfig) -> Hardware<'a> {
        let beside = config.sysfs_root.parent().map(|parent| parent.join("dev"));
        let dev = beside
            .filter(|dev| dev.is_dir())
            .unwrap_or_else(|| PathBuf::from("/dev"));
        Hardware {
            config,
            sysfs: Sysfs::at(&config.sysfs_root, dev),
        }
    }

    /// Checks before any delegate runs that an attachment's device can be used, and records the
    /// driver that it is bound to.
    pub(in crate::operation) fn inspect(&self, attachment: &mut Attachment) -> Result<(), Reason> {
        let Some(device) = &mut attachment.device else {
            return Ok(());
        };
        let id = &device.id;
        let sysfs = || self.config.sysfs_root.clone();
        let Some(found) = self.sysfs.device(id) else {
            if device.pci().is_none() {
                // Only the device plugin understands an identifier in a form of its own.
                let device = device.clone();
                return self.of_device_plugin(&device).map(drop);
            }
            return Err(DeviceProblem::Missing {
                device: device.clone(),
                sysfs: sysfs(),
            }
            .into());
        };
        let (driver, wanted) = match &found {
            Device::Pci(function) => (function.driver(), function.driver_override()),
            Device::Vdpa(vdpa) => (vdpa.driver().map(|driver| driver.to_string()), None),
            Device::Subfunction(subfunction) => (subfunction.driver(), None),
        };
        let Some(driver) = driver else {
            return Err(DeviceProblem::Unbound {
                device: device.clone(),
                sysfs: sysfs(),
            }
            .into());
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != driver) {
            return Err(DeviceProblem::OtherDriver {
                device: device.clone(),
                driver,
                wanted,
                sysfs: sysfs(),
            }
            .into());
        }
        device.driver = Some(driver);
        let device = device.clone();
        self.of_device_plugin(&device).map(drop)
    }

    /// Whether `address` is a virtual function.
    pub(in crate::operation) fn is_virtual_function(&self, address: PciAddress) -> bool {
        let function = self.sysfs.pci_function(address);
        function.is_some_and(|function| function.physfn().is_some())
    }

    fn is_in_user_space(&self, device: &AllocatedDevice) -> bool {
        match self.sysfs.device(&device.id) {
            Some(Device::Vdpa(vdpa)) => vdpa.driver() == Some(VdpaDriver::Vhost),
            Some(Device::Pci(function)) => {
                let facts = || Facts::read(&self.sysfs, &device.id, &mut |_| None);
                let is_vhost = || {
                    let vdpa = facts().and_then(|facts| facts.vdpa);
                    vdpa.is_some_and(|vdpa| vdpa.driver == Some(VdpaDriver::Vhost))
                };
                function
                    .driver()
                    .is_some_and(|driver| drives_user_space(&driver))
                    || is_vhost()
            }
            Some(Device::Subfunction(_)) | None => false,
        }
    }

    /// The findings on the device itself: whether it is still bound to the same driver, and whether
    /// a program can open it if one drives it.
    pub(in crate::operation) fn findings(&self, attachment: &Attachment) -> Vec<Finding> {
        let Some(device) = &attachment.device else {
            return Vec::new();
        };
        let Some(expected) = &device.driver else {
            return Vec::new();
        };
        let id = device.id.clone();
        let (found, can_be_opened) = match self.sysfs.device(&id) {
            None => (None, true),
            Some(Device::Pci(function)) => {
                let vfio = function.vfio();
                let opened = |vfio: device_info::Vfio| vfio.path.or(vfio.device_path).is_some();
                let by_vfio = vfio.is_none_or(opened);
                (
                    function.driver(),
                    by_vfio && self.vhost_can_be_opened(function.address()),
                )
            }
            Some(Device::Vdpa(vdpa)) => {
                let driver = vdpa.driver();
                let opened = driver != Some(VdpaDriver::Vhost) || vdpa.path().is_some();
                (driver.map(|driver| driver.to_string()), opened)
            }
            Some(Device::Subfunction(subfunction)) => (subfunction.driver(), true),
        };
        let mismatch = if found.as_ref() != Some(expected) {
            Mismatch::Driver {
                device: id,
                expected: expected.clone(),
                found,
            }
        } else if !can_be_opened {
            Mismatch::NoCharacterDevice {
                device: id,
                driver: expected.clone(),
            }
        } else {
            return Vec::new();
        };
        vec![Finding {
            interface: attachment.ifname.clone(),
            mismatch,
            weight: Weight::Requested,
        }]
    }

    /// Whether programs can open the vhost-vdpa devices of a function.
    fn vhost_can_be_opened(&self, address: PciAddress) -> bool {
        let devices = self.sysfs.vdpa_devices();
        let mut own = devices
            .iter()
            .filter(|it| it.pci_address() == Some(address));
        own.all(|it| it.driver() != Some(VdpaDriver::Vhost) || it.path().is_some())
    }

    /// The device that the interface of an attachment has to be. `None` if the identifier is in a
    /// form of the device plugin, which cannot be compared.
    pub(in crate::operation) fn expected<'d>(&self, attachment: &'d Attachment) -> Option<&'d str> {
        let device = attachment.device.as_ref()?;
        device.driver.as_ref().map(|_| device.id.as_str())
    }
}

pub(in crate::operation) fn drives_user_space(driver: &str) -> bool {
    driver.contains("vfio") || driver.contains("uio")
}

#[cfg(test)]
pub(in crate::operation) mod tests;
