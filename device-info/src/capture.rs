//! A machine's hardware as data.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::switch::Switch;

pub use build::CaptureError;

mod build;
mod read;
mod redact;

/// The format that this crate writes and reads.
const FORMAT: u32 = 1;

/// What sysfs, `/dev` and devlink show of a machine's network hardware: as much as this crate
/// reads, and nothing that says whose machine it is.
///
/// MACs, GUIDs, switch identifiers and the interface names made of them are replaced, each by
/// the same substitute wherever it occurs, so that what belonged together still does. Names that
/// people gave (of vDPA devices) stay.
///
/// [`Capture::build`] makes a directory of it that [`Sysfs`](crate::Sysfs) reads like the
/// original: a test fixture.
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
    /// By paths below the root of sysfs.
    sysfs: BTreeMap<String, Node>,
    /// `major:minor` of character devices by their paths below `/dev`.
    #[serde(default)]
    dev: BTreeMap<String, String>,
    /// Switches by the devlink handles of their devices.
    #[serde(default)]
    devlink: BTreeMap<String, Switch>,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Node {
    /// An attribute without the white space around it.
    Text(String),
    /// A symbolic link's target.
    Link(String),
    /// A directory that may be empty.
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
    /// Reads one that was written as JSON.
    ///
    /// # Errors
    ///
    /// [`CaptureError`] for other text and other formats.
    pub fn from_json(text: &str) -> Result<Self, CaptureError> {
        let capture: Self =
            serde_json::from_str(text).map_err(|error| CaptureError::Json(error.to_string()))?;
        if capture.format == FORMAT {
            Ok(capture)
        } else {
            Err(CaptureError::Format(capture.format))
        }
    }

    /// As JSON over several lines, in the order of the paths.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The switch of a device that the capture holds, by its devlink handle.
    #[must_use]
    pub fn switch(&self, handle: impl fmt::Display) -> Option<&Switch> {
        self.devlink.get(&handle.to_string())
    }

    /// The paths below the root of sysfs with what is there, in order, as a person or a
    /// comparison reads it: `path = text`, `path -> target`, `path/`.
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

    /// Takes away what is at a path and below it: a device that vanished, an attribute that a
    /// kernel lacks.
    pub fn remove(&mut self, path: &str) {
        let below = format!("{path}/");
        self.sysfs
            .retain(|other, _| other != path && !other.starts_with(&below));
    }

    /// Drops directories that are said by what is below them: one machine has one capture.
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

    /// Puts another capture's devices beside those of this one.
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
