//! Our entries among those of others.

use std::collections::HashSet;

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
    let subjects: Vec<Subject> = existing.iter().map(Subject::of).collect();
    let earlier: HashSet<String> = existing
        .iter()
        .filter_map(|old| old.read::<Vec<String>>(ATTACHED).ok().flatten())
        .flatten()
        .collect();
    let mut taken = vec![false; existing.len()];
    let mut out = String::from("[");
    for entry in ours {
        separate(&mut out);
        let mut members = Members::open(&mut out);
        let mut foreign: HashSet<&str> = HashSet::new();
        for (key, value) in entry.to_map() {
            members.push(&key, &value.to_string());
        }
        for ((old, subject), taken) in existing.iter().zip(&subjects).zip(&mut taken) {
            if !*taken && subject.is_of(entry) {
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

/// What an entry is about, read once.
struct Subject {
    name: Option<String>,
    interface: Option<String>,
    is_default: bool,
}

impl Subject {
    fn of(old: &RawObject) -> Self {
        let text = |key: &str| old.read::<String>(key).ok().flatten();
        Self {
            name: text("name"),
            interface: text("interface").filter(|name| !name.is_empty()),
            is_default: old.read("default") == Ok(Some(true)),
        }
    }

    /// As an entry of ours is marked.
    fn mark(self) -> String {
        let entry = StatusEntry {
            name: self.name.unwrap_or_default(),
            interface: self.interface,
            ..StatusEntry::default()
        };
        entry.mark()
    }

    fn is_of(&self, ours: &StatusEntry) -> bool {
        if ours.default && self.is_default {
            return true;
        }
        match &self.interface {
            Some(interface) => ours.interface.as_ref() == Some(interface),
            None => self.name.as_deref() == Some(ours.name.as_str()),
        }
    }
}

fn separate(out: &mut String) {
    if out.len() > 1 {
        out.push(',');
    }
}
