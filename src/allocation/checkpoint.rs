//! kubelet's own record of devices: `kubelet_internal_checkpoint`.
//!
//! It is right at any time, even while kubelet restarts and its pod-resources API answers with empty
//! lists. It keeps the entry of a deleted pod until the next allocation, so only the UID of an entry
//! says which pod it belongs to. Jackfield does not verify the checksum: kubelet computes it over
//! Go's text of Go's structures. Kubelet replaces the file in one piece.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::problem::{FormatError, UnknownVersion};
use super::{CheckpointError, numeric};
use crate::regular_file;

/// The largest file, in bytes. A container with devices takes some hundred.
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
        Checkpoint::parse(&bytes).map_err(|error| error.at(path))
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Checkpoint, FormatError> {
        let whole: Value =
            serde_json::from_slice(bytes).map_err(|error| FormatError::Torn(error.into()))?;
        let version =
            |error: serde_json::Error| FormatError::Version(UnknownVersion::Type(error.into()));
        let data = whole
            .get("Data")
            .filter(|data| data.is_object())
            .ok_or(FormatError::Version(UnknownVersion::NoData))?;
        let data = Data::deserialize(data).map_err(version)?;
        let (None, None) = (&data.pod_device_entries, &data.registered_devices) else {
            let registered = data.registered_devices.unwrap_or_default().into_iter();
            return Ok(Checkpoint {
                entries: data.pod_device_entries.unwrap_or_default(),
                registered: registered
                    .map(|(resource, ids)| (resource, ids.unwrap_or_default()))
                    .collect(),
            });
        };
        // kubelet writes null for both if no device plugin has ever registered.
        let is_empty = ["PodDeviceEntries", "RegisteredDevices"].map(|key| {
            let data = whole.pointer(&format!("/Data/{key}"));
            data.is_some_and(Value::is_null)
        });
        if is_empty == [true, true] {
            return Ok(Checkpoint::default());
        }
        Err(FormatError::Version(UnknownVersion::NoEntries))
    }

    /// The devices of a pod by resource, in the order in which its networks get them: by container
    /// as in `order`, and numerically within each.
    pub fn devices_of(&self, pod: &str, order: &[&str]) -> BTreeMap<String, Vec<String>> {
        let places = order.iter().rev().zip((0..order.len()).rev());
        let places: HashMap<&str, usize> = places.map(|(name, at)| (*name, at)).collect();
        let place = |name: &str| places.get(name).copied().unwrap_or(order.len());
        let mut entries: Vec<&Entry> = self.entries.iter().filter(|it| it.pod == pod).collect();
        entries.sort_by_key(|entry| (place(&entry.container_name), &entry.container_name));
        let mut devices: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut listed: HashSet<(&str, &str)> = HashSet::new();
        for entry in entries {
            let mut ids: Vec<&String> = entry.ids.iter().collect();
            ids.sort_by(|left, right| numeric(left, right));
            let all = devices.entry(entry.resource_name.clone()).or_default();
            for id in ids {
                // kubelet hands an init container's devices on to later containers.
                if listed.insert((&entry.resource_name, id)) {
                    all.push(id.clone());
                }
            }
        }
        devices
    }

    /// The UIDs of the pods that have a device.
    pub fn holders(&self, id: &str) -> impl Iterator<Item = &str> {
        let has = move |entry: &&Entry| entry.ids.iter().any(|own| super::same(own, id));
        self.entries
            .iter()
            .filter(has)
            .map(|entry| entry.pod.as_str())
    }

    /// Whether a device plugin has registered a resource. One without a device plugin counts
    /// something other than devices.
    pub fn is_registered(&self, resource: &str) -> bool {
        self.registered.contains_key(resource)
            || self.entries.iter().any(|it| it.resource_name == resource)
    }
}

/// Reads a file of kubelet's.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, CheckpointError> {
    regular_file::read(path, MAX_FILE).map_err(|error| CheckpointError::unreadable(path, error))
}

/// Reads identifiers by NUMA node, or, before Kubernetes 1.20, in one list; `null` for none.
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
