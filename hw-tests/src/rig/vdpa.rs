//! vDPA devices.

use std::path::{Path, PathBuf};

use crate::case::Stop;
use crate::rig::{command, sysfs, until};

/// A device on the vDPA bus, removed when dropped.
#[derive(Debug)]
pub(crate) struct Vdpa {
    name: &'static str,
}

impl Vdpa {
    /// Creates it on a management device: `vdpasim_net`, `vduse`, `pci/0000:03:00.0`.
    pub(crate) fn add(name: &'static str, management: &str) -> Result<Self, Stop> {
        command("vdpa", &["dev", "add", "name", name, "mgmtdev", management])?;
        let device = Self { name };
        until(&format!("vDPA device {name}"), || {
            device.folder().exists().then_some(())
        })?;
        Ok(device)
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its sysfs folder.
    pub(crate) fn folder(&self) -> PathBuf {
        sysfs::vdpa(self.name)
    }

    /// Binds it to `vhost_vdpa` or `virtio_vdpa`, whatever its driver is now.
    pub(crate) fn bind(&self, driver: &str) -> Result<(), Stop> {
        let folder = self.folder();
        self.unbind()?;
        sysfs::write(folder.join("driver_override"), driver)?;
        sysfs::write(format!("/sys/bus/vdpa/drivers/{driver}/bind"), self.name)?;
        Ok(())
    }

    /// Unbinds it from its driver.
    pub(crate) fn unbind(&self) -> Result<(), Stop> {
        let driver = self.folder().join("driver");
        if driver.exists() {
            sysfs::write(driver.join("unbind"), self.name)?;
        }
        Ok(())
    }

    /// Returns the name of its only child with this prefix: `vhost-vdpa-0`, `virtio3`.
    pub(crate) fn child(&self, prefix: &str) -> Result<String, Stop> {
        child(&self.folder(), prefix)
    }
}

/// Waits for an entry of the folder with this prefix.
pub(crate) fn child(folder: &Path, prefix: &str) -> Result<String, Stop> {
    until(&format!("{}/{prefix}*", folder.display()), || {
        sysfs::names(folder)
            .into_iter()
            .find(|name| name.starts_with(prefix))
    })
}

impl Drop for Vdpa {
    fn drop(&mut self) {
        // The check of traces after each case finds what stays.
        let _ = command("vdpa", &["dev", "del", self.name]);
    }
}
