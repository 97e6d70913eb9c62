//! Merges Jackfield's entries with entries of other writers.

use std::collections::HashSet;

use super::{ATTACHED, StatusEntry};
use crate::cni::RawObject;
use crate::cni::json::{Members, check, raw};

/// Returns the new value of the status annotation: Jackfield's entries (`ours`), merged with the
/// entries and keys of other writers.
///
/// Other components may write status too (NPWG 1.3 §5.1). For example, a controller that plugs in
/// an interface adds an entry. The merge drops such an entry if one of Jackfield's new entries
/// replaces it. Otherwise the merge keeps the entry and copies its values byte for byte. Other
/// components may also add keys to Jackfield's entries. The merge keeps those keys that contain a
/// period.
///
/// A new entry replaces an existing entry with the same interface. A new entry also replaces an
/// existing entry that has the same name and no interface. A new entry of the default network
/// replaces the existing entry of the default network, because a pod has only one default network.
///
/// An existing entry from Jackfield may describe a network that the pod no longer selects. The
/// status reports only current attachments (NPWG 1.3 §5), so the merge drops Jackfield's existing
/// entries. The merge recognizes these entries by the list that Jackfield wrote under the key
/// `io.jackfield.attached`.
///
/// The merge discards an existing value that is not a list of objects, because that value violates
/// the specification.
pub fn merge_status(existing: Option<&str>, ours: &[StatusEntry]) -> String {
    let existing: Vec<RawObject> = existing
        .and_then(|text| check(text.as_bytes()).ok())
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let subjects: Vec<StatusEntry> = existing.iter().map(subject).collect();
    let earlier: HashSet<String> = existing
        .iter()
        .filter_map(|old| old.value_as::<Vec<String>>(ATTACHED))
        .flatten()
        .collect();
    let mut taken = vec![false; existing.len()];
    let mut out = String::from("[");
    for entry in ours {
        separate(&mut out);
        let mut members = Members::open(&mut out);
        let mut foreign: HashSet<&str> = HashSet::new();
        let own: RawObject = serde_json::from_str(raw(entry).get()).unwrap_or_default();
        for (key, value) in own.iter() {
            members.push(key, value.get());
        }
        for ((old, subject), taken) in existing.iter().zip(&subjects).zip(&mut taken) {
            if !*taken && is_same(subject, entry) {
                *taken = true;
                for (key, value) in old.iter().filter(|(key, _)| key.contains('.')) {
                    if key != ATTACHED && foreign.insert(key) {
                        members.push(key, value.get());
                    }
                }
            }
        }
        members.close();
    }
    for ((old, subject), taken) in existing.iter().zip(subjects).zip(taken) {
        if !taken && !earlier.contains(&subject.mark()) {
            separate(&mut out);
            old.push_to(&mut out);
        }
    }
    out.push(']');
    out
}

/// Returns an entry with only the keys that identify the existing entry `old`.
fn subject(old: &RawObject) -> StatusEntry {
    StatusEntry {
        name: old.value_as("name").unwrap_or_default(),
        interface: old.read_text("interface").ok().flatten(),
        default: old.read("default") == Ok(Some(true)),
        ..StatusEntry::default()
    }
}

fn is_same(subject: &StatusEntry, ours: &StatusEntry) -> bool {
    match &subject.interface {
        _ if ours.default && subject.default => true,
        Some(_) => ours.interface == subject.interface,
        None => ours.name == subject.name,
    }
}

fn separate(out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
}
