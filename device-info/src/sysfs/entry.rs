//! The directory of a device in sysfs.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::attribute::{self, AttributeError, Cause};
use super::{Sysfs, path};
use crate::pci_address::PciAddress;
use crate::quoted::Quoted;

/// The maximum number of names to read from a directory. A directory may have an entry for each VF
/// of a PF, and SR-IOV counts these VFs in 16 bits.
const MAX_NAMES: usize = 1 << 16;

/// The directory of a device, and the sysfs that contains the directory.
///
/// Holds a path, not content. If the device vanishes between two reads, the second read finds
/// nothing.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    sysfs: Sysfs,
    path: PathBuf,
}

impl Entry {
    /// Returns the directory that a link such as `bus/pci/devices/0000:01:00.0` points to. `None`
    /// if the link is missing, or if its target is outside sysfs or has a different name.
    pub(crate) fn linked(sysfs: &Sysfs, directory: &str, name: &str) -> Option<Self> {
        let directory = sysfs.root().join(directory);
        let link = directory.join(name);
        let target = sysfs.known(attribute::link(&link))?;
        let path = path::follow(sysfs.root(), &directory, &target)?;
        // A target with a different name than the link is a different device.
        (path.file_name()? == name).then(|| Self::at(sysfs, path))
    }

    pub(crate) fn at(sysfs: &Sysfs, path: PathBuf) -> Self {
        Self {
            sysfs: sysfs.clone(),
            path,
        }
    }

    pub(crate) fn sysfs(&self) -> &Sysfs {
        &self.sysfs
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    pub(crate) fn child(&self, name: &str) -> Self {
        Self::at(&self.sysfs, self.path.join(name))
    }

    /// Returns an attribute as trimmed text.
    pub(crate) fn text(&self, name: impl AsRef<Path>) -> Option<String> {
        self.sysfs.known(attribute::read(&self.path.join(name)))
    }

    /// Reads an attribute for callers that use `io::Result`.
    pub(crate) fn read(&self, name: &Path) -> io::Result<String> {
        attribute::read(&self.path.join(name)).map_err(|error| {
            let kind = if error.is_absence() {
                io::ErrorKind::NotFound
            } else {
                io::ErrorKind::InvalidData
            };
            io::Error::new(kind, error)
        })
    }

    /// Parses an attribute. If the text is invalid, returns `None`, and adds an error to those that
    /// [`Sysfs::take_remarks`] returns. In the error's text, `what` names the value.
    pub(crate) fn value<T: FromStr>(&self, name: &str, what: &'static str) -> Option<T> {
        let text = self.text(name)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(_) => {
                let cause = Cause::Value(Quoted::new(&text), what);
                self.sysfs
                    .remark(AttributeError::new(&self.path.join(name), cause));
                None
            }
        }
    }

    /// Returns the text of a link, without resolving the text to a path.
    pub(crate) fn link_target(&self, name: &str) -> Option<String> {
        let target = self.sysfs.known(attribute::link(&self.path.join(name)))?;
        Some(target.to_str()?.to_owned())
    }

    /// Returns the last name in the target of a link, such as the name of a driver, a group or a
    /// function.
    pub(crate) fn link_name(&self, name: &str) -> Option<String> {
        let target = self.sysfs.known(attribute::link(&self.path.join(name)))?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// Returns the names in a subdirectory, in natural order. Returns no names if the subdirectory
    /// is missing.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        self.sysfs
            .known(attribute::names(&self.path.join(directory), MAX_NAMES))
            .unwrap_or_default()
    }

    /// Reads `attribute` of every entry in this directory, in an unspecified order. Calls `each`
    /// with the name of the entry and the text of the attribute. Skips entries without the
    /// attribute.
    pub(crate) fn text_of_each(&self, attribute: &str, each: &mut dyn FnMut(&str, &str)) {
        let read = attribute::read_each(&self.path, attribute, MAX_NAMES, &mut |name, text| {
            if let Some(text) = self.sysfs.known(text) {
                each(name, text);
            }
        });
        self.sysfs.known(read);
    }

    /// Returns the nearest PCI function at or above this path.
    pub(crate) fn pci_ancestor(&self) -> Option<(PciAddress, Self)> {
        let (address, path) = path::pci_ancestor(self.sysfs.root(), &self.path)?;
        Some((address, Self::at(&self.sysfs, path)))
    }
}

impl Sysfs {
    /// Returns the names in a directory below the root.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        Entry::at(self, self.root().to_path_buf()).names(directory)
    }
}
