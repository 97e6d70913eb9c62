//! Rebinds a VF to its driver. A driver reads the GUID of a VF from the physical function only when
//! it probes the VF. So only a rebind makes the driver use a new GUID.

use std::fs;
use std::io;
use std::time::Duration;

use super::{PAUSE, Restoring};
use crate::baseline::{DeviceState, Repair, compare};
use crate::clock;
use crate::kernel::{DeviceLinks, KernelError, NetlinkError};

/// How long a driver may take to recreate the interface.
const MADE_WITHIN: Duration = Duration::from_secs(5);

impl Restoring<'_> {
    /// Rebinds a VF to `driver` and waits at most [`MADE_WITHIN`] for the VF's interface. A missing
    /// interface is not an error here, because the caller reads the device again and compares it
    /// with `before`.
    ///
    /// # Errors
    /// If the driver refuses the VF, if the kernel does not answer, or if the GUID of the
    /// interface still differs from the GUID in `before`.
    pub(super) fn rebind(
        &self,
        before: &DeviceState,
        driver: &str,
        links: &mut dyn DeviceLinks,
    ) -> Result<(), KernelError> {
        let refused = |source: io::Error| {
            NetlinkError::from(source).about(format!("rebinding the VF to driver {driver}"))
        };
        let folder = self.hardware.driver(driver);
        let address = before.device.to_string();
        match fs::write(folder.join("unbind"), &address) {
            // The VF is already unbound, for example because an earlier rebind was
            // interrupted between unbind and bind.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => {}
            unbound => unbound.map_err(refused)?,
        }
        fs::write(folder.join("bind"), &address).map_err(refused)?;
        let until = self.context.deadline.min(clock::now() + MADE_WITHIN);
        loop {
            let states = self.hardware.states(&[before.device], links)?;
            let is = states.devices.first();
            let is_made = is.is_some_and(|is| is.netdev.is_some());
            if is_made || clock::now() >= until {
                let comparison = is.map(|is| compare(before, is)).unwrap_or_default();
                let mut repairs = comparison.repairs.iter();
                return match repairs.find(|it| matches!(it, Repair::Rebind { .. })) {
                    Some(_) => Err(refused(io::Error::other("the GUID is still wrong"))),
                    None => Ok(()),
                };
            }
            clock::sleep(PAUSE);
        }
    }
}
