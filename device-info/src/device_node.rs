//! Character devices below `/dev`.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::PathBuf;

use crate::sysfs::Sysfs;

/// The directory in which programs find device nodes. The crate may read them from a different
/// directory, where the host's `/dev` is mounted.
const DEV: &str = "/dev";

impl Sysfs {
    /// Returns the path `/dev/vhost-net`. Through this device, a DPDK program exchanges packets
    /// with the kernel. The key `vhost-net` of device information contains the path
    /// (`DEVINFO 1.1.0 §3.1.3.2`).
    ///
    /// Returns `None` if `/dev/vhost-net` or `/dev/net/tun` is missing. Without `/dev/net/tun`,
    /// vhost-net moves no packets.
    #[must_use]
    pub fn vhost_net(&self) -> Option<String> {
        self.character_device("net/tun", None)?;
        self.character_device("vhost-net", None)
    }

    /// Returns the path at which programs open a character device, if the device node exists.
    /// If `numbers` is given (`major:minor`, as in the attribute `dev` in sysfs), returns `None`
    /// for a node with other numbers.
    pub(crate) fn character_device(&self, name: &str, numbers: Option<&str>) -> Option<String> {
        let found = self.device_numbers(name)?;
        let right = numbers.is_none_or(|numbers| numbers == found);
        right.then(|| format!("{DEV}/{name}"))
    }

    /// Returns `major:minor` of a character device; `None` if the file is missing or is not a
    /// character device.
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
