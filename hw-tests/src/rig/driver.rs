//! Drivers of PCI functions.

use device_info::PciAddress;

use crate::case::Stop;
use crate::rig::{sysfs, until};

/// A function on a driver that the suite chose; back on its own driver when dropped.
#[derive(Debug)]
pub(crate) struct DriverBinding {
    function: PciAddress,
}

impl DriverBinding {
    /// Moves the function from its driver to this one.
    pub(crate) fn to(function: PciAddress, driver: &str) -> Result<Self, Stop> {
        let folder = sysfs::function(function);
        let bound = Self { function };
        bound.release();
        sysfs::write(folder.join("driver_override"), driver)?;
        sysfs::write("/sys/bus/pci/drivers_probe", &function.to_string())?;
        until(&format!("{function}: driver {driver}"), || {
            (sysfs::link(folder.join("driver"))? == driver).then_some(())
        })?;
        Ok(bound)
    }

    /// Leaves the function without a driver.
    pub(crate) fn to_none(function: PciAddress) -> Result<Self, Stop> {
        let bound = Self { function };
        bound.release();
        until(&format!("{function}: no driver"), || {
            sysfs::link(sysfs::function(function).join("driver"))
                .is_none()
                .then_some(())
        })?;
        Ok(bound)
    }

    fn release(&self) {
        let driver = sysfs::function(self.function).join("driver/unbind");
        // A function without a driver needs no release.
        let _ = sysfs::write(driver, &self.function.to_string());
    }
}

impl Drop for DriverBinding {
    fn drop(&mut self) {
        self.release();
        // The check of traces after each case finds what stays.
        let _ = sysfs::write(sysfs::function(self.function).join("driver_override"), "\n");
        let _ = sysfs::write("/sys/bus/pci/drivers_probe", &self.function.to_string());
    }
}
