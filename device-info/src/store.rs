//! The files with device information.

use std::path::{Path, PathBuf};

use crate::info::{DeviceInfo, WireDeviceInfo};
use crate::quoted::Quoted;
use directory::Directory;
pub use error::{StoreError, UnsafeFile};
pub use name::{CniFileName, DpFileName};

mod directory;
mod error;
mod name;

/// The directories `dp` and `cni`, which contain files of device information (`DEVINFO 1.1.0 §4`).
///
/// A user who can write to these directories could create a link there and so make root read any
/// file. The crate therefore opens each file beneath its directory without following links. It
/// accepts only a regular file of at most 64 KiB that belongs to root or to the current user. A
/// written file appears whole or not at all.
///
/// Two devices may have the same file name: device `c` of resource `a/b` and device `b-c` of
/// resource `a` both have `a-b-c-device.json`. So [`DeviceInfoDir::read_dp`] compares the content
/// of the file with the requested device.
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

/// The directory of device plugins.
const DP: &str = "dp";
/// The directory of CNI plugins.
const CNI: &str = "cni";

impl DeviceInfoDir {
    /// The base directory that the specification requires (`DEVINFO 1.1.0 §4`).
    pub const DEFAULT: &'static str = "/var/run/k8s.cni.cncf.io/devinfo";

    /// Uses the directories `dp` and `cni` below `base`. The path `base` may contain links, because
    /// `/var/run` is a link.
    #[must_use]
    pub fn at(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into() }
    }

    /// Reads the device plugin's file for an allocated device (`DEVINFO 1.1.0 §4.1`). Returns
    /// `None` if the file is missing, which the specification allows.
    ///
    /// # Errors
    ///
    /// [`StoreError`] for an invalid name, for a file that is unsafe, unreadable or incomplete, and
    /// for a file that describes a different device.
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

    /// Writes a device plugin's file (`DEVINFO 1.1.0 §4.1.1`).
    ///
    /// # Errors
    ///
    /// [`StoreError`] for an invalid name, or if the file cannot be written.
    pub fn write_dp(
        &self,
        resource: &str,
        device_id: &str,
        info: &DeviceInfo,
    ) -> Result<(), StoreError> {
        self.write(DP, DpFileName::new(resource, device_id)?.as_str(), info)
    }

    /// Removes a device plugin's file, if it exists.
    ///
    /// # Errors
    ///
    /// [`StoreError`] for an invalid name, or if the file cannot be removed.
    pub fn remove_dp(&self, resource: &str, device_id: &str) -> Result<(), StoreError> {
        self.remove(DP, DpFileName::new(resource, device_id)?.as_str())
    }

    /// Returns the path that plugins receive as `CNIDeviceInfoFile` (`DEVINFO 1.1.0 §5.1.1`).
    #[must_use]
    pub fn cni_path(&self, name: &CniFileName) -> PathBuf {
        self.base.join(CNI).join(name.as_str())
    }

    /// Creates the directory for the plugins' files (`DEVINFO 1.1.0 §4.2.1`).
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the directory cannot be created.
    pub fn prepare_cni(&self) -> Result<(), StoreError> {
        Directory::create(&self.base, CNI).map(drop)
    }

    /// Reads the file that an attachment's plugins wrote (`DEVINFO 1.1.0 §6.1.1`). Returns `None`
    /// if the file is missing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] for a file that is unsafe, unreadable or incomplete.
    pub fn read_cni(&self, name: &CniFileName) -> Result<Option<WireDeviceInfo>, StoreError> {
        self.read(CNI, name.as_str())
    }

    /// Writes an attachment's file (`DEVINFO 1.1.0 §4.2.1`) and replaces an existing one.
    ///
    /// Each attachment has a different name. The caller ensures that only one process at a time
    /// writes the file.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the file cannot be written.
    pub fn write_cni(&self, name: &CniFileName, info: &DeviceInfo) -> Result<(), StoreError> {
        self.write(CNI, name.as_str(), info)
    }

    /// Removes an attachment's file, if it exists (`DEVINFO 1.1.0 §4.2.1`).
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the file cannot be removed.
    pub fn remove_cni(&self, name: &CniFileName) -> Result<(), StoreError> {
        self.remove(CNI, name.as_str())
    }

    /// Returns the file name at the end of a path that [`DeviceInfoDir::cni_path`] returned.
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`] for a path that is not directly in the directory `cni`, and for a name
    /// that starts with a dot.
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
            StoreError::io(&self.base.join(kind).join(name), "written", error.into())
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
