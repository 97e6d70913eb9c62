//! The files in which device information is passed on.

use std::path::{Path, PathBuf};

use crate::info::{DeviceInfo, WireDeviceInfo};
use crate::quoted::Quoted;
use directory::Directory;
pub use error::StoreError;
pub use name::{CniFileName, DpFileName};

mod directory;
mod error;
mod name;

/// The directories `dp` and `cni` with files of device information (`DEVINFO 1.1.0 §4`).
///
/// Anybody who can write there could otherwise point root at any file, so each file is opened
/// beneath its directory without following links, must be a regular file of root (or of who
/// runs this), and is 64 KiB at most. What is read is held against the device that was asked for, since `a/b-c` and
/// `a-b/c` have the same file name. What is written appears whole or not at all.
///
/// ```
/// use device_info::{CniFileName, DeviceInfo, DeviceInfoDir};
///
/// let directory = tempfile::tempdir()?;
/// let files = DeviceInfoDir::at(directory.path());
/// let name = CniFileName::of_attachment("default", "storage", "4f9cd19e", "net1")?;
/// let info: DeviceInfo = serde_json::from_str(
///     r#"{"type": "pci", "version": "1.1.0", "pci": {"pci-address": "0000:01:10.0"}}"#,
/// )?;
/// files.write_cni(&name, &info)?;
/// assert_eq!(files.read_cni(&name)?, Some(info.into()));
/// files.remove_cni(&name)?;
/// assert_eq!(files.read_cni(&name)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeviceInfoDir {
    base: PathBuf,
}

/// What device plugins write.
const DP: &str = "dp";
/// What is exchanged with CNI plugins.
const CNI: &str = "cni";

impl DeviceInfoDir {
    /// Where the specification has it.
    pub const DEFAULT: &'static str = "/var/run/k8s.cni.cncf.io/devinfo";

    /// The one below a directory. The way to that directory may have links in it: `/var/run` is one.
    #[must_use]
    pub fn at(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    /// What the device plugin wrote of an allocated device (`DEVINFO 1.1.0 §4.1`); `None` when it
    /// wrote nothing, which it may.
    ///
    /// # Errors
    ///
    /// [`StoreError`] for a name that cannot be one, a file that is not safe to read or not
    /// whole, and one of another device.
    pub fn read_dp(
        &self,
        resource: &str,
        device_id: &str,
    ) -> Result<Option<WireDeviceInfo>, StoreError> {
        let name = DpFileName::new(resource, device_id)?;
        let Some(info) = self.read(DP, name.as_str())? else {
            return Ok(None);
        };
        if info.describes(device_id) == Some(false) {
            return Err(StoreError::OtherDevice {
                path: self.shown(DP, name.as_str()),
                asked: Quoted::new(device_id),
            });
        }
        Ok(Some(info))
    }

    /// Writes what a device plugin would (`DEVINFO 1.1.0 §4.1.1`), for those who are one.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the file cannot be made.
    pub fn write_dp(
        &self,
        resource: &str,
        device_id: &str,
        info: &DeviceInfo,
    ) -> Result<(), StoreError> {
        self.write(DP, DpFileName::new(resource, device_id)?.as_str(), info)
    }

    /// Removes such a file; no error when there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the file cannot be removed.
    pub fn remove_dp(&self, resource: &str, device_id: &str) -> Result<(), StoreError> {
        self.remove(DP, DpFileName::new(resource, device_id)?.as_str())
    }

    /// The path that plugins are told as `CNIDeviceInfoFile` (`DEVINFO 1.1.0 §5.1.1`).
    #[must_use]
    pub fn cni_path(&self, name: &CniFileName) -> PathBuf {
        self.base.join(CNI).join(name.as_str())
    }

    /// Makes the directory in which plugins write (`DEVINFO 1.1.0 §4.2.1`).
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be made.
    pub fn prepare_cni(&self) -> Result<(), StoreError> {
        Directory::create(&self.base, CNI).map(drop)
    }

    /// What the plugins of an attachment left (`DEVINFO 1.1.0 §6.1.1`); `None` when nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] for a file that is not safe to read or not whole.
    pub fn read_cni(&self, name: &CniFileName) -> Result<Option<WireDeviceInfo>, StoreError> {
        self.read(CNI, name.as_str())
    }

    /// Writes what the plugins of an attachment find (`DEVINFO 1.1.0 §4.2.1`), in place of what
    /// was there.
    ///
    /// One writer at a time for a name, which is unique for an attachment.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the file cannot be made.
    pub fn write_cni(&self, name: &CniFileName, info: &DeviceInfo) -> Result<(), StoreError> {
        self.write(CNI, name.as_str(), info)
    }

    /// Removes the file of an attachment (`DEVINFO 1.1.0 §4.2.1`: when DELETE is called); no
    /// error when there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the file cannot be removed.
    pub fn remove_cni(&self, name: &CniFileName) -> Result<(), StoreError> {
        self.remove(CNI, name.as_str())
    }

    /// The name within `cni` of a path that a network's definition brought along.
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`] for any path that is not directly in the directory.
    pub fn cni_name(&self, path: &Path) -> Result<CniFileName, StoreError> {
        let name = path
            .strip_prefix(self.base.join(CNI))
            .ok()
            .and_then(Path::to_str)
            .ok_or_else(|| {
                StoreError::name("path of a device-info file", &path.to_string_lossy())
            })?;
        name.parse()
    }

    fn read(&self, kind: &str, name: &str) -> Result<Option<WireDeviceInfo>, StoreError> {
        let Some(directory) = Directory::open(&self.base, kind)? else {
            return Ok(None);
        };
        let Some(bytes) = directory.read(name)? else {
            return Ok(None);
        };
        WireDeviceInfo::from_json(&bytes)
            .map(Some)
            .map_err(|cause| StoreError::Content {
                path: self.shown(kind, name),
                cause,
            })
    }

    fn write(&self, kind: &str, name: &str, info: &DeviceInfo) -> Result<(), StoreError> {
        let bytes = serde_json::to_vec(info).map_err(|error| {
            StoreError::io(&self.base.join(kind).join(name), "written", &error.into())
        })?;
        Directory::create(&self.base, kind)?.write(name, &bytes)
    }

    fn remove(&self, kind: &str, name: &str) -> Result<(), StoreError> {
        match Directory::open(&self.base, kind)? {
            Some(directory) => directory.remove(name),
            None => Ok(()),
        }
    }

    fn shown(&self, kind: &str, name: &str) -> String {
        self.base.join(kind).join(name).display().to_string()
    }
}

#[cfg(test)]
mod tests;
