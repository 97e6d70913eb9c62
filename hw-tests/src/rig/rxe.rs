//! Soft RoCE: an RDMA device on any network interface.

use std::path::{Path, PathBuf};

use crate::case::Stop;
use crate::rig::{command, until};

/// An RDMA device, removed when dropped.
#[derive(Debug)]
pub(crate) struct Rxe {
    name: &'static str,
}

impl Rxe {
    pub(crate) fn add(name: &'static str, netdev: &str) -> Result<Self, Stop> {
        command(
            "rdma",
            &["link", "add", name, "type", "rxe", "netdev", netdev],
        )?;
        let device = Self { name };
        until(&format!("RDMA device {name}"), || {
            device.folder().exists().then_some(())
        })?;
        Ok(device)
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its sysfs folder, in a network namespace that sees it.
    pub(crate) fn folder(&self) -> PathBuf {
        Path::new("/sys/class/infiniband").join(self.name)
    }
}

impl Drop for Rxe {
    fn drop(&mut self) {
        // The check of traces after each case finds what stays.
        let _ = command("rdma", &["link", "delete", self.name]);
    }
}
