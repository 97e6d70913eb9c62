//! kubelet's own record of devices: `kubelet_internal_checkpoint`.
//!
//! It is right at any time, also while kubelet restarts and its pod-resources API answers with
//! empty lists. It keeps the entry of a deleted pod until the next allocation, so only a pod's UID
//! says whose an entry is. Its checksum is that of Go's text of Go's structures, which nobody else
//! can make; kubelet replaces the file in one piece.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::numeric;
use crate::regular_file;

/// The most that is read: some hundred bytes a container with devices.
const MAX_FILE: u64 = 16 << 20;

/// What kubelet has allocated on this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    entries: Vec<Entry>,
    registered: BTreeMap<String, Vec<String>>,
}

/// The devices of one resource in one container.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    #[serde(rename = "PodUID")]
    pod: String,
    container_name: String,
    resource_name: String,
    #[serde(rename = "DeviceIDs", default, deserialize_with = "of_all_nodes")]
    ids: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    pod_device_entries: Option<Vec<Entry>>,
    registered_devices: Option<BTreeMap<String, Option<Vec<String>>>>,
}

impl Checkpoint {
    /// Reads the checkpoint of a node.
    ///
    /// # Errors
    /// [`CheckpointError`] with the file and what to do.
    pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
        let bytes = read(path)?;
        Checkpoint::parse(&bytes).map_err(|problem| problem.at(path))
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Checkpoint, Problem> {
        let whole: Value =
            serde_json::from_slice(bytes).map_err(|cause| Problem::Torn(cause.to_string()))?;
        let data = whole
            .get("Data")
            .filter(|data| data.is_object())
            .ok_or_else(|| Problem::Version("it has no object Data".to_owned()))?;
        let data = Data::deserialize(data).map_err(|cause| Problem::Version(cause.to_string()))?;
        let (None, None) = (&data.pod_device_entries, &data.registered_devices) else {
            let registered = data.registered_devices.unwrap_or_default().into_iter();
            return Ok(Checkpoint {
                entries: data.pod_device_entries.unwrap_or_default(),
                registered: registered
                    .map(|(resource, ids)| (resource, ids.unwrap_or_default()))
                    .collect(),
            });
        };
        // kubelet writes null for both where no device plugin has ever registered.
        let is_empty = ["PodDeviceEntries", "RegisteredDevices"].map(|key| {
            let data = whole.pointer(&format!("/Data/{key}"));
            data.is_some_and(Value::is_null)
        });
        if is_empty == [true, true] {
            return Ok(Checkpoint::default());
        }
        let cause = "its Data has neither PodDeviceEntries nor RegisteredDevices";
        Err(Problem::Version(cause.to_owned()))
    }

    /// The devices of a pod, resource by resource, in the order in which its networks get them:
    /// containers as `order` names them, numerically within each.
    pub fn devices_of(&self, pod: &str, order: &[&str]) -> BTreeMap<String, Vec<String>> {
        let places = order.iter().rev().zip((0..order.len()).rev());
        let places: HashMap<&str, usize> = places.map(|(name, at)| (*name, at)).collect();
        let place = |name: &str| places.get(name).copied().unwrap_or(order.len());
        let mut entries: Vec<&Entry> = self.entries.iter().filter(|it| it.pod == pod).collect();
        entries.sort_by_key(|entry| (place(&entry.container_name), &entry.container_name));
        let mut devices: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut known: HashSet<(&str, &str)> = HashSet::new();
        for entry in entries {
            let mut ids: Vec<&String> = entry.ids.iter().collect();
            ids.sort_by(|left, right| numeric(left, right));
            let all = devices.entry(entry.resource_name.clone()).or_default();
            for id in ids {
                // What an init container had, a later container has again.
                if known.insert((&entry.resource_name, id)) {
                    all.push(id.clone());
                }
            }
        }
        devices
    }

    /// The pods that a device is allocated to, by their UIDs.
    pub fn holders(&self, id: &str) -> impl Iterator<Item = &str> {
        let has = move |entry: &&Entry| entry.ids.iter().any(|own| super::same(own, id));
        self.entries
            .iter()
            .filter(has)
            .map(|entry| entry.pod.as_str())
    }

    /// Whether a device plugin has registered a resource. One that nobody registers counts
    /// something else than devices.
    pub fn is_registered(&self, resource: &str) -> bool {
        self.registered.contains_key(resource)
            || self.entries.iter().any(|it| it.resource_name == resource)
    }
}

/// Reads a file of kubelet's.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CheckpointError> {
    let shown = || path.display().to_string();
    regular_file::read(path, MAX_FILE).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => CheckpointError::Missing { path: shown() },
        _ => CheckpointError::Io {
            path: shown(),
            cause: cause.to_string(),
        },
    })
}

/// Identifiers by NUMA node, or, before Kubernetes 1.20, in one list; `null` where there are none.
fn of_all_nodes<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Ids {
        ByNode(BTreeMap<String, Option<Vec<String>>>),
        List(Vec<String>),
    }
    Ok(match Option::<Ids>::deserialize(input)? {
        None => Vec::new(),
        Some(Ids::List(ids)) => ids,
        Some(Ids::ByNode(nodes)) => nodes.into_values().flatten().flatten().collect(),
    })
}

/// What is wrong with a checkpoint's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Torn(String),
    Version(String),
}

impl Problem {
    /// The error about the file `path`.
    pub(super) fn at(self, path: &Path) -> CheckpointError {
        let path = path.display().to_string();
        match self {
            Problem::Torn(cause) => CheckpointError::Torn { path, cause },
            Problem::Version(cause) => CheckpointError::Version { path, cause },
        }
    }
}

/// Why kubelet's checkpoint cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// There is none.
    #[error(
        "kubelet's checkpoint {path} is not there; start kubelet, correct kubeletCheckpoint, or name the devices in a manifest's jackfield.io/devices"
    )]
    Missing {
        /// The file.
        path: String,
    },
    /// It cannot be read.
    #[error("kubelet's checkpoint {path} cannot be read: {cause}; correct kubeletCheckpoint")]
    Io {
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// It is no whole JSON document.
    #[error("kubelet's checkpoint {path} is torn: {cause}; restart kubelet, which writes it anew")]
    Torn {
        /// The file.
        path: String,
        /// Where.
        cause: String,
    },
    /// It is of a version that is not known here.
    #[error(
        "kubelet's checkpoint {path} is of an unknown version: {cause}; \
         use a version of Jackfield that knows this kubelet"
    )]
    Version {
        /// The file.
        path: String,
        /// What is not as expected.
        cause: String,
    },
}
