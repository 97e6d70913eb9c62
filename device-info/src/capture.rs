//! A machine's hardware as data.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::switch::Switch;

pub use build::CaptureError;

mod build;
mod read;
mod redact;

/// The format version that this crate reads and writes.
const FORMAT: u32 = 1;

/// The network hardware of a machine as sysfs, `/dev` and devlink show it. Contains everything that
/// this crate reads, except the values that identify the machine.
///
/// In a capture, substitutes replace MACs, GUIDs, GIDs and switch IDs. Within one capture, equal
/// values have equal substitutes. A substitute also replaces a MAC or GUID inside a name, such as
/// the interface name `enx001122334455`. All other names stay, even names that a person chose, such
/// as the names of vDPA devices.
///
/// [`Capture::build`] writes the capture to a directory, and returns a [`Sysfs`](crate::Sysfs) that
/// reads this directory. A test can read the directory in place of the original machine.
///
/// ```
/// use device_info::{Capture, Sysfs};
///
/// let here = Capture::read(&Sysfs::host(), None);
/// let again = Capture::from_json(&here.to_json())?;
/// assert_eq!(here, again);
/// # Ok::<(), device_info::CaptureError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    format: u32,
    /// Nodes by path below the root of sysfs.
    sysfs: BTreeMap<String, Node>,
    /// `major:minor` of character devices by path below `/dev`.
    #[serde(default)]
    dev: BTreeMap<String, String>,
    /// Switches by devlink handle of their device.
    #[serde(default)]
    devlink: BTreeMap<String, Switch>,
}

/// A file, link or directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Node {
    /// An attribute's text, trimmed.
    Text(String),
    /// A symbolic link with its target.
    Link(String),
    /// A directory, which may be empty.
    Directory,
}

impl Default for Capture {
    fn default() -> Self {
        Self {
            format: FORMAT,
            sysfs: BTreeMap::new(),
            dev: BTreeMap::new(),
            devlink: BTreeMap::new(),
        }
    }
}

impl Capture {
    /// Reads a capture from JSON.
    ///
    /// # Errors
    ///
    /// [`CaptureError`] for invalid JSON and for unknown format versions.
    pub fn from_json(text: &str) -> Result<Self, CaptureError> {
        let capture: Self = serde_json::from_str(text).map_err(CaptureError::Json)?;
        if capture.format == FORMAT {
            Ok(capture)
        } else {
            Err(CaptureError::Format(capture.format))
        }
    }

    /// Returns the capture as JSON over several lines, sorted by path.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Returns the captured switch of the device with this devlink handle.
    #[must_use]
    pub fn switch(&self, handle: impl fmt::Display) -> Option<&Switch> {
        self.devlink.get(&handle.to_string())
    }

    /// Returns the nodes below the root of sysfs by path, one line each: `path = text`, `path ->
    /// target`, `path/`. The character devices follow, as `/dev/path = major:minor`.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let sysfs = self.sysfs.iter().map(|(path, node)| match node {
            Node::Text(text) => format!("{path} = {text}"),
            Node::Link(target) => format!("{path} -> {target}"),
            Node::Directory => format!("{path}/"),
        });
        let dev = self
            .dev
            .iter()
            .map(|(path, numbers)| format!("/dev/{path} = {numbers}"));
        sysfs.chain(dev)
    }

    /// Removes `path` and everything below it, as if a device had vanished or the kernel lacked an
    /// attribute. `path` is relative to the root of sysfs.
    pub fn remove(&mut self, path: &str) {
        let below = format!("{path}/");
        self.sysfs
            .retain(|other, _| other != path && !other.starts_with(&below));
    }

    /// Drops every directory that contains another node, because that node's path implies the
    /// directory. [`Capture::read`] and the fixtures both call this function, so a capture and a
    /// fixture of the same machine have the same paths.
    pub(crate) fn without_obvious_directories(mut self) -> Self {
        let obvious: Vec<String> = self
            .sysfs
            .iter()
            .filter(|(_, node)| **node == Node::Directory)
            .map(|(path, _)| format!("{path}/"))
            .filter(|below| {
                let next = self.sysfs.range(below.clone()..).next();
                next.is_some_and(|(other, _)| other.starts_with(below.as_str()))
            })
            .collect();
        for below in obvious {
            self.sysfs.remove(below.trim_end_matches('/'));
        }
        self
    }

    /// Adds the devices of `other` to this capture.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.sysfs.extend(other.sysfs);
        self.dev.extend(other.dev);
        self.devlink.extend(other.devlink);
        self
    }
}

#[cfg(any(test, feature = "fixtures"))]
impl Capture {
    pub(crate) fn put_text(&mut self, path: &str, text: &str) {
        self.sysfs
            .insert(path.to_owned(), Node::Text(text.to_owned()));
    }

    pub(crate) fn put_link(&mut self, path: &str, target: &str) {
        self.sysfs
            .insert(path.to_owned(), Node::Link(target.to_owned()));
    }

    pub(crate) fn put_directory(&mut self, path: &str) {
        self.sysfs.insert(path.to_owned(), Node::Directory);
    }

    pub(crate) fn put_device_node(&mut self, path: &str, numbers: &str) {
        self.dev.insert(path.to_owned(), numbers.to_owned());
    }

    pub(crate) fn put_switch(&mut self, handle: &str, switch: Switch) {
        self.devlink.insert(handle.to_owned(), switch);
    }
}

#[cfg(test)]
mod tests;
