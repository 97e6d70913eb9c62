//! Character devices below `/dev`.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use crate::sysfs::Sysfs;

/// Where programs find the device nodes, whatever directory they are read from here.
const DEV: &str = "/dev";

impl Sysfs {
    /// Whether both character devices that a DPDK exceptional path needs are there, and the path
    /// of the one that device-info names: `/dev/vhost-net` (`DEVINFO 1.1.0 §3.1.3.2`).
    ///
    /// `None` without `/dev/net/tun`, since vhost-net alone moves no packet.
    #[must_use]
    pub fn vhost_net(&self) -> Option<String> {
        self.character_device("net/tun", None)?;
        self.character_device("vhost-net", None)
    }

    /// The path of a character device as programs know it, when it is there, is one, and has the
    /// numbers (`major:minor`, as sysfs' `dev` shows them) given.
    pub(crate) fn character_device(&self, name: &str, numbers: Option<&str>) -> Option<String> {
        let found = self.device_numbers(name)?;
        let right = numbers.is_none_or(|numbers| numbers == found);
        right.then(|| format!("{DEV}/{name}"))
    }

    /// `major:minor` of a character device; `None` when it is none or not there.
    pub(crate) fn device_numbers(&self, name: &str) -> Option<String> {
        let path: PathBuf = self.dev().join(name);
        crate::sysfs::count(1);
        let node = std::fs::symlink_metadata(path).ok()?;
        let device = node.rdev();
        node.file_type().is_char_device().then(|| {
            format!(
                "{}:{}",
                nix::sys::stat::major(device),
                nix::sys::stat::minor(device)
            )
        })
    }
}
