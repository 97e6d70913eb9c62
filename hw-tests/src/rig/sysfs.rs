//! Reads and writes sysfs as plain files, without the crate under test, so that the two can be
//! compared.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use device_info::PciAddress;

/// Returns the folder of a PCI function.
pub(crate) fn function(address: PciAddress) -> PathBuf {
    Path::new("/sys/bus/pci/devices").join(address.to_string())
}

/// Returns the folder of a vDPA device.
pub(crate) fn vdpa(name: &str) -> PathBuf {
    Path::new("/sys/bus/vdpa/devices").join(name)
}

/// Writes one value.
pub(crate) fn write(file: impl AsRef<Path>, value: &str) -> Result<(), SysfsError> {
    let file = file.as_ref();
    fs::write(file, value).map_err(|source| SysfsError {
        file: file.to_owned(),
        source,
        writing: Some(value.to_owned()),
    })
}

/// Reads one value, without the line feed.
pub(crate) fn read(file: impl AsRef<Path>) -> Result<String, SysfsError> {
    let file = file.as_ref();
    fs::read_to_string(file)
        .map(|text| text.trim_end().to_owned())
        .map_err(|source| SysfsError {
            file: file.to_owned(),
            source,
            writing: None,
        })
}

/// Returns the names in a folder, sorted; none if it is missing.
pub(crate) fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Returns the last part of a link's target; `None` if the link is missing.
pub(crate) fn link(file: impl AsRef<Path>) -> Option<String> {
    let target = fs::read_link(file).ok()?;
    target.file_name()?.to_str().map(str::to_owned)
}

/// A sysfs file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be {}: {source}", file.display(), match writing { Some(value) => format!("written '{value}'"), None => "read".to_owned() })]
pub(crate) struct SysfsError {
    file: PathBuf,
    writing: Option<String>,
    source: io::Error,
}
