//! netdevsim, the kernel's simulated switch: devlink ports, VFs and representors without hardware.

use crate::case::Stop;
use crate::rig::{command, sysfs, until};

/// A netdevsim device, removed when dropped.
#[derive(Debug)]
pub(crate) struct Netdevsim {
    id: u32,
}

impl Netdevsim {
    /// Creates device `netdevsimID` with this many physical ports.
    pub(crate) fn add(id: u32, ports: usize) -> Result<Self, Stop> {
        sysfs::write("/sys/bus/netdevsim/new_device", &format!("{id} {ports} 4"))?;
        let device = Self { id };
        until(
            &format!("{}: {ports} network interfaces", device.name()),
            || (device.netdevs().len() == ports).then_some(()),
        )?;
        Ok(device)
    }

    /// Returns its name on the netdevsim bus.
    pub(crate) fn name(&self) -> String {
        format!("netdevsim{}", self.id)
    }

    /// Returns its devlink handle.
    pub(crate) fn handle(&self) -> String {
        format!("netdevsim/{}", self.name())
    }

    /// Returns its network interfaces: ports and representors.
    pub(crate) fn netdevs(&self) -> Vec<String> {
        sysfs::names(self.folder("net"))
    }

    /// Creates VFs. In switchdev mode each has a representor.
    pub(crate) fn make_vfs(&self, count: usize) -> Result<(), Stop> {
        sysfs::write(self.folder("sriov_numvfs"), &count.to_string())?;
        Ok(())
    }

    /// Sets the eswitch mode: `legacy` or `switchdev`.
    pub(crate) fn set_mode(&self, mode: &str) -> Result<(), Stop> {
        command(
            "devlink",
            &["dev", "eswitch", "set", &self.handle(), "mode", mode],
        )?;
        Ok(())
    }

    fn folder(&self, part: &str) -> String {
        format!("/sys/bus/netdevsim/devices/{}/{part}", self.name())
    }
}

impl Drop for Netdevsim {
    fn drop(&mut self) {
        // The check of traces after each case finds what stays.
        let _ = sysfs::write("/sys/bus/netdevsim/del_device", &self.id.to_string());
    }
}
