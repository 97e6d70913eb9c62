//! Safe file names.

use std::fmt;
use std::str::FromStr;

use super::StoreError;
use crate::sysfs::path::is_entry_name;

/// The maximum length of a file name on Linux, in bytes.
const MAX: usize = 255;

/// The name of a device plugin's file: `<resourceName>-<deviceID>-device.json`
/// (`DEVINFO 1.1.0 §4.1`). In the resource name and in the device ID, `-` replaces each `/`. A
/// device ID may contain `/`, because kubelet lets a device plugin choose any ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpFileName(String);

impl DpFileName {
    /// Makes the name for a resource and a device.
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`] if a part is empty, starts with a dot or has control characters.
    pub fn new(resource: &str, device_id: &str) -> Result<Self, StoreError> {
        let resource = resource.replace('/', "-");
        part("resource name", &resource)?;
        let device_id = device_id.replace('/', "-");
        part("device ID", &device_id)?;
        Ok(Self(bounded(
            &resource,
            '-',
            &format!("{device_id}-device.json"),
        )))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of an attachment's file, unique for each attachment (`DEVINFO 1.1.0 §4.2`):
/// `<namespace>-<network>-<containerID>_<interface>`, the form that Multus also uses.
///
/// If that name is longer than 255 bytes, a hash replaces `<namespace>-<network>`. Container ID and
/// interface stay, and together they are unique. If the name is still too long, a hash replaces the
/// whole name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CniFileName(String);

impl CniFileName {
    /// Makes the name for an attachment.
    ///
    /// # Errors
    ///
    /// [`StoreError::Name`] for a part that is empty, starts with a dot, or has `/` or control
    /// characters.
    pub fn of_attachment(
        namespace: &str,
        network: &str,
        container_id: &str,
        interface: &str,
    ) -> Result<Self, StoreError> {
        part("namespace", namespace)?;
        part("network", network)?;
        part("container ID", container_id)?;
        part("interface", interface)?;
        let (head, tail) = (
            format!("{namespace}-{network}"),
            format!("{container_id}_{interface}"),
        );
        Ok(Self(bounded(&head, '-', &tail)))
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CniFileName {
    type Err = StoreError;

    fn from_str(name: &str) -> Result<Self, StoreError> {
        // A name with a leading dot belongs to a temporary file of the store.
        if is_entry_name(name) && !name.starts_with('.') {
            Ok(Self(name.to_owned()))
        } else {
            Err(StoreError::name("name of a device-info file", name))
        }
    }
}

impl fmt::Display for CniFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn part(what: &'static str, value: &str) -> Result<(), StoreError> {
    let odd = |character: char| character == '/' || character.is_control();
    if value.is_empty() || value.starts_with('.') || value.contains(odd) {
        Err(StoreError::name(what, value))
    } else {
        Ok(())
    }
}

fn bounded(head: &str, between: char, tail: &str) -> String {
    let whole = format!("{head}{between}{tail}");
    if whole.len() <= MAX {
        return whole;
    }
    let short = format!("{}{between}{tail}", hash(head));
    if short.len() <= MAX {
        short
    } else {
        hash(&whole)
    }
}

/// Computes an FNV-1a hash of 128 bits. Every version of this crate computes the same hash.
pub(super) fn hash(text: &str) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = text.bytes().fold(OFFSET, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    format!("{hash:032x}")
}
