//! A directory of sysfs: a device.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::attribute::{self, AttributeError, Cause};
use super::{Sysfs, path};
use crate::pci_address::PciAddress;
use crate::quoted::Quoted;

/// How many names of one directory are looked at: four times the VFs that a PF can have.
const MAX_NAMES: usize = 1 << 16;

/// A device's directory and the sysfs that it is in.
///
/// Holds a path rather than what was read: a device can vanish between any two reads, which
/// makes the second one an absence, never a mixture of two devices.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    sysfs: Sysfs,
    path: PathBuf,
}

impl Entry {
    /// The entry that a link like `bus/pci/devices/0000:01:00.0` stands for; `None` when there is
    /// none. Where sysfs has directories instead (`class/infiniband` of old kernels), those.
    pub(crate) fn linked(sysfs: &Sysfs, directory: &str, name: &str) -> Option<Self> {
        let directory = sysfs.root().join(directory);
        let link = directory.join(name);
        let target = sysfs.known(attribute::link(&link))?;
        let path = path::follow(sysfs.root(), &directory, &target)?;
        // A device keeps its name along the link: anything else is another device.
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

    /// The last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    pub(crate) fn child(&self, name: &str) -> Self {
        Self::at(&self.sysfs, self.path.join(name))
    }

    /// An attribute as text, without the white space around it.
    pub(crate) fn text(&self, name: impl AsRef<Path>) -> Option<String> {
        self.sysfs.known(attribute::read(&self.path.join(name)))
    }

    /// An attribute for those who speak `io::Result`.
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

    /// An attribute as a value; `what` names the kind of value for the remark on one that is not.
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

    /// The target of a link as it is written.
    pub(crate) fn link_target(&self, name: &str) -> Option<String> {
        let target = self.sysfs.known(attribute::link(&self.path.join(name)))?;
        Some(target.to_str()?.to_owned())
    }

    /// The last name in the target of a link: a driver's, a group's, a function's.
    pub(crate) fn link_name(&self, name: &str) -> Option<String> {
        let target = self.sysfs.known(attribute::link(&self.path.join(name)))?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    /// The names in a directory below, in natural order; none when it is not there.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        self.sysfs
            .known(attribute::names(&self.path.join(directory), MAX_NAMES))
            .unwrap_or_default()
    }

    /// Hands over the attribute of this name of everything in this directory, in no order, with
    /// the name of what has it; those that have none are left out.
    pub(crate) fn text_of_each(&self, attribute: &str, told: &mut dyn FnMut(&str, &str)) {
        let read = attribute::read_each(&self.path, attribute, MAX_NAMES, &mut |name, text| {
            if let Some(text) = self.sysfs.known(text) {
                told(name, text);
            }
        });
        self.sysfs.known(read);
    }

    /// The nearest PCI function at or above.
    pub(crate) fn pci_ancestor(&self) -> Option<(PciAddress, Self)> {
        let (address, path) = path::pci_ancestor(self.sysfs.root(), &self.path)?;
        Some((address, Self::at(&self.sysfs, path)))
    }
}

impl Sysfs {
    /// The names in a directory below the root.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        Entry::at(self, self.root().to_path_buf()).names(directory)
    }
}
