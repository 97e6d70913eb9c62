//! Our entries among those of others.

use super::{ATTACHED, StatusEntry};
use crate::cni::RawObject;
use crate::cni::json::{Members, check};

/// The annotation's new value: our entries, with what others wrote beside and into them.
///
/// Others may write status too (NPWG 1.3 §5.1): a controller that plugs in an interface adds an
/// entry, another adds keys of its own, with a period in their names, to ours. Both survive, the
/// entries byte for byte. An entry is ours when it is about an interface that one of ours has, or
/// has no interface and the name of one of ours; and since there is one default network, an
/// earlier one is replaced by ours.
///
/// A pod whose sandbox is made anew may select other networks than before: what an earlier ADD
/// told, and named as its own, goes, since a status is made of what was attached (NPWG 1.3 §5).
///
/// A value that is no list of objects was written by nobody who follows the specification, and is
/// replaced.
#[must_use]
pub fn merge_status(existing: Option<&str>, ours: &[StatusEntry]) -> String {
    let existing: Vec<RawObject> = existing
        .and_then(|text| check(text.as_bytes()).ok())
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let earlier: Vec<String> = existing
        .iter()
        .filter_map(|old| old.read::<Vec<String>>(ATTACHED).ok().flatten())
        .flatten()
        .collect();
    let mut taken = vec![false; existing.len()];
    let mut out = String::from("[");
    for entry in ours {
        separate(&mut out);
        let mut members = Members::open(&mut out);
        let mut foreign: Vec<&str> = Vec::new();
        for (key, value) in entry.to_map() {
            members.push(&key, &value.to_string());
        }
        for (old, taken) in existing.iter().zip(&mut taken) {
            if !*taken && is_same(old, entry) {
                *taken = true;
                for (key, value) in old.iter().filter(|(key, _)| key.contains('.')) {
                    if key != ATTACHED && !foreign.contains(&key) {
                        foreign.push(key);
                        members.push(key, value.get());
                    }
                }
            }
        }
        members.close();
    }
    let is_left = |(old, taken): &(&RawObject, bool)| !taken && !earlier.contains(&mark(old));
    for (old, _) in existing.iter().zip(taken).filter(is_left) {
        separate(&mut out);
        old.push_to(&mut out);
    }
    out.push(']');
    out
}

fn mark(old: &RawObject) -> String {
    let entry = StatusEntry {
        name: text(old, "name").unwrap_or_default(),
        interface: text(old, "interface").filter(|name| !name.is_empty()),
        ..StatusEntry::default()
    };
    entry.mark()
}

fn text(old: &RawObject, key: &str) -> Option<String> {
    old.read(key).ok().flatten()
}

fn is_same(old: &RawObject, ours: &StatusEntry) -> bool {
    if ours.default && old.read("default") == Ok(Some(true)) {
        return true;
    }
    match text(old, "interface").filter(|name| !name.is_empty()) {
        Some(interface) => ours.interface.as_deref() == Some(interface.as_str()),
        None => text(old, "name").as_deref() == Some(ours.name.as_str()),
    }
}

fn separate(out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
}
