//! kubelet's own record of devices: `kubelet_internal_checkpoint`.
//!
//! The file is valid even while kubelet restarts and the pod-resources API returns empty lists.
//! kubelet keeps the entries of a deleted pod until it allocates devices again. Each entry has the
//! UID of its pod. A new pod with the same name has a different UID. kubelet replaces the file
//! atomically. Jackfield does not verify the checksum: kubelet computes the checksum over Go's text
//! form of the data, and Jackfield cannot reproduce this form.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::{CheckpointCause, CheckpointError, numeric};
use crate::regular_file;

/// The maximum size of one of kubelet's files, in bytes. The entry of one container takes a few
/// hundred bytes.
const MAX_FILE: u64 = 16 << 20;

/// The devices that kubelet has allocated on this node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    entries: Vec<Entry>,
    /// The resources that device plugins have registered.
    registered: BTreeSet<String>,
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
struct File {
    data: Data,
}

/// At least one of these two keys must have a value other than `null`. Exception: Jackfield accepts
/// `null` for both keys, because kubelet writes both as `null` if no device plugin has ever
/// registered.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Data {
    #[serde(default, deserialize_with = "present")]
    pod_device_entries: Option<Option<Vec<Entry>>>,
    #[serde(default, deserialize_with = "present")]
    registered_devices: Option<Option<BTreeMap<String, Option<Vec<IgnoredAny>>>>>,
}

impl Checkpoint {
    /// Reads the checkpoint of a node.
    ///
    /// # Errors
    /// [`CheckpointError`] with the file and the remedy.
    pub fn read(path: &Path) -> Result<Checkpoint, CheckpointError> {
        read(path, Checkpoint::parse)
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Checkpoint, CheckpointCause> {
        let File { data } = serde_json::from_slice(bytes)?;
        let keys = (&data.pod_device_entries, &data.registered_devices);
        if let (None, None | Some(None)) | (Some(None), None) = keys {
            return Err(CheckpointCause::NoEntries);
        }
        let registered = data.registered_devices.flatten().unwrap_or_default();
        Ok(Checkpoint {
            entries: data.pod_device_entries.flatten().unwrap_or_default(),
            registered: registered.into_keys().collect(),
        })
    }

    /// Maps each resource to the devices of the pod with the UID `pod`. Networks get the devices in
    /// the returned order: container by container, and in numeric order within a container.
    /// Containers that are not in `order` come last.
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
            // Skip a device that is already in the list. kubelet reuses an init container's devices
            // for later containers.
            ids.retain(|id| listed.insert((&entry.resource_name, id)));
            all.extend(ids.into_iter().cloned());
        }
        devices
    }

    /// Returns the UIDs of the pods that have the device `id`.
    pub fn holders(&self, id: &str) -> impl Iterator<Item = &str> {
        let has = move |entry: &&Entry| entry.ids.iter().any(|own| super::same(own, id));
        let holding = self.entries.iter().filter(has);
        holding.map(|entry| entry.pod.as_str())
    }

    /// Whether a device plugin has registered `resource`, or kubelet has allocated devices of
    /// `resource`.
    pub fn is_registered(&self, resource: &str) -> bool {
        self.registered.contains(resource)
            || self.entries.iter().any(|it| it.resource_name == resource)
    }
}

/// Reads and parses one of kubelet's files.
pub(super) fn read<T>(
    path: &Path,
    parse: fn(&[u8]) -> Result<T, CheckpointCause>,
) -> Result<T, CheckpointError> {
    let bytes = regular_file::read(path, MAX_FILE).map_err(CheckpointCause::from);
    let parsed = bytes.and_then(|bytes| parse(&bytes));
    parsed.map_err(|cause| CheckpointError {
        path: path.to_owned(),
        cause,
    })
}

/// Returns `Some` for a key that is present, even if its value is `null`. For a missing key, serde
/// uses the default `None`.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    input: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(input).map(Some)
}

/// Reads the identifiers of devices. kubelet groups the identifiers by NUMA node. Before Kubernetes
/// 1.20, kubelet wrote a single list. `null` means that there are no devices.
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
