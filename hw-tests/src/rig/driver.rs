//! Drivers of PCI functions.

use device_info::PciAddress;

use crate::case::Stop;
use crate::rig::{sysfs, until};

/// A function on a driver of the suite's choice; back on its own when dropped.
#[derive(Debug)]
pub(crate) struct Bound {
    function: PciAddress,
}

impl Bound {
    /// Takes the function from whichever driver has it.
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
        // A function without a driver has nothing to be released from.
        let _ = sysfs::write(driver, &self.function.to_string());
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.release();
        // What stays is found by the traces that every case is checked for.
        let _ = sysfs::write(sysfs::function(self.function).join("driver_override"), "\n");
        let _ = sysfs::write("/sys/bus/pci/drivers_probe", &self.function.to_string());
    }
}
