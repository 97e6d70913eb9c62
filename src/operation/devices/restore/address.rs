//! Restores a hardware address despite the restrictions of drivers.
//!
//! A driver's return code for a change is not reliable, so Jackfield reads the address of the
//! interface after the change. For example, igb may acknowledge a change and keep another address,
//! or refuse the address that the interface already has.
//!
//! The administrator's address of a VF is the address that is set for the VF on its physical
//! function. A driver may restrict the address of the VF's interface in two ways:
//!
//! - It refuses every address while an administrator's address is set and the VF is not trusted.
//! - It keeps a copy of the administrator's address, and refuses every address except that copy.
//!
//! There are three workarounds:
//!
//! - trust the VF while setting the address;
//! - clear the administrator's address, and then set the address;
//! - set the administrator's address to the wanted address, and toggle the interface. The toggle
//!   makes igb renew its copy, and set the interface's address to that copy.
//!
//! The last two workarounds change the administrator's address. After the repairs, the caller
//! compares the device with its earlier state again, and then restores the administrator's address.

use device_info::MacAddr;

use super::Restoring;
use crate::baseline::DeviceState;
use crate::kernel::{DeviceLinks, KernelError, Link, LinkChange, VfSetting};

/// An interface, the address that it must get, and the VF behind it.
struct Place<'l> {
    links: &'l mut dyn DeviceLinks,
    link: Link,
    address: &'l [u8],
    /// The index of the physical function's interface, and the number of the VF.
    function: Option<(u32, u32)>,
}

impl Restoring<'_> {
    /// Restores the address of an interface.
    ///
    /// # Errors
    /// - If the kernel does not answer.
    /// - If the driver refuses the address, and if no workaround helps.
    ///
    /// If the driver acknowledges the address but keeps another, and if no workaround helps,
    /// returns `Ok`. The caller finds the wrong address when it compares the device again.
    pub(super) fn give_address(
        &self,
        before: &DeviceState,
        link: Link,
        address: &[u8],
        links: &mut dyn DeviceLinks,
    ) -> Result<(), KernelError> {
        let vf = before.function.as_ref();
        let function = match before.physical.zip(vf) {
            Some((physical, vf)) => {
                let pf = self.hardware.interface_of(physical, links)?;
                pf.map(|pf| (pf.index, vf.index))
            }
            None => None,
        };
        let mut place = Place {
            links,
            link,
            address,
            function,
        };
        let refused = place.set();
        if place.is_right()? {
            return Ok(());
        }
        // A driver that refuses one workaround may accept the next.
        if let Some(trust) = vf.and_then(|vf| vf.trust)
            && place.trusted(trust).is_ok()
            && place.is_right()?
        {
            return Ok(());
        }
        if vf.is_some_and(|vf| vf.mac.is_some()) {
            for way in [Place::without_administrators, Place::by_administrator] {
                if way(&mut place).is_ok() && place.is_right()? {
                    return Ok(());
                }
            }
        }
        refused
    }
}

impl Place<'_> {
    fn set(&mut self) -> Result<(), KernelError> {
        let change = LinkChange::Address(self.address.to_vec());
        self.links.change_link(self.link.index, &change)
    }

    fn is_right(&mut self) -> Result<bool, KernelError> {
        let now = self.links.device_link_at(self.link.index)?;
        Ok(now.is_some_and(|link| link.address == self.address))
    }

    fn on_physical(&mut self, setting: VfSetting) -> Result<(), KernelError> {
        match self.function {
            Some((pf, vf)) => self.links.set_virtual_function(pf, vf, setting),
            None => Ok(()),
        }
    }

    fn trusted(&mut self, afterwards: bool) -> Result<(), KernelError> {
        self.on_physical(VfSetting::Trust(true))?;
        let set = self.set();
        self.on_physical(VfSetting::Trust(afterwards))?;
        set
    }

    fn without_administrators(&mut self) -> Result<(), KernelError> {
        self.on_physical(VfSetting::Mac(MacAddr::from([0; 6])))?;
        self.set()
    }

    fn by_administrator(&mut self) -> Result<(), KernelError> {
        let Ok(octets) = <[u8; 6]>::try_from(self.address) else {
            return Ok(());
        };
        self.on_physical(VfSetting::Mac(octets.into()))?;
        let (index, is_up) = (self.link.index, self.link.up);
        let [first, second] = if is_up {
            [LinkChange::Down, LinkChange::Up]
        } else {
            [LinkChange::Up, LinkChange::Down]
        };
        let turned = self.links.change_link(index, &first);
        self.links.change_link(index, &second)?;
        turned
    }
}
