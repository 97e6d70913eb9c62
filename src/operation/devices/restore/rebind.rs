//! A function is taken from its driver and given back to it, which then asks the physical function
//! what the function is to be: for a GUID there is no other way.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::{PAUSE, Restoring};
use crate::baseline::{DeviceState, Repair, compare};
use crate::kernel::{DeviceLinks, KernelError};

/// How long a driver may take to make the interface again.
const MADE_WITHIN: Duration = Duration::from_secs(5);

impl Restoring<'_> {
    /// Binds a function to `driver` anew, and waits for its interface.
    ///
    /// # Errors
    /// When the driver does not take it, or its interface is still another one than it was.
    pub(super) fn rebind(
        &self,
        before: &DeviceState,
        driver: &str,
        links: &mut dyn DeviceLinks,
    ) -> Result<(), KernelError> {
        let refused = |source: io::Error| KernelError::Refused {
            action: format!("binding it to driver {driver} anew"),
            source,
            explanation: None,
        };
        let folder = self.hardware.driver(driver);
        let address = before.device.to_string();
        match fs::write(folder.join("unbind"), &address) {
            // It is bound to none: what did this before was ended between the two.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => {}
            unbound => unbound.map_err(refused)?,
        }
        fs::write(folder.join("bind"), &address).map_err(refused)?;
        let until = self.context.deadline.min(Instant::now() + MADE_WITHIN);
        loop {
            let states = self.hardware.states(&[before.device], links)?;
            let is = states.devices.first();
            let is_made = is.is_some_and(|is| is.netdev.is_some());
            if is_made || Instant::now() >= until {
                let comparison = is.map(|is| compare(before, is)).unwrap_or_default();
                let mut repairs = comparison.repairs.iter();
                return match repairs.find(|it| matches!(it, Repair::Rebind { .. })) {
                    Some(_) => Err(refused(io::Error::other("it has another GUID still"))),
                    None => Ok(()),
                };
            }
            std::thread::sleep(PAUSE);
        }
    }
}
