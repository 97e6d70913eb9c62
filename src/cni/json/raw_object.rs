//! A JSON object that keeps the text of its values.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{JsonError, check, folded, push_string, read, same_key, unambiguous};

/// The capability in which a runtime passes the pod's annotations.
pub(crate) const POD_ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";

/// A JSON object as a list of its keys, each with the text of its value.
///
/// Jackfield passes the values of a configuration on to delegates byte for byte (CNI 1.1.0 §3
/// "passed through unaltered"). A configuration may contain numbers that a floating-point type does
/// not reproduce, such as `9007199254740993`, `1.10` or `1e400`. A value therefore stays text until
/// Jackfield reads it.
///
/// Lookups ignore the case of keys and treat `null` as absent, like Go's decoder. Most delegates
/// are written in Go. Only [`Self::contains`] distinguishes `null` from a missing key. If a key
/// occurs more than once, the last value applies. [`Self::parse_configuration`] refuses an object
/// with such a key.
///
/// `Deserialize` works with `serde_json` only. The caller must call [`super::check`] on the whole
/// text first.
#[derive(Clone, Debug, Default)]
pub struct RawObject {
    entries: Vec<Entry>,
}

type Entry = (Box<str>, Box<RawValue>);

impl RawObject {
    /// An object without keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads an object from text.
    ///
    /// # Errors
    ///
    /// [`JsonError`] when the text is empty, not UTF-8, not a JSON object, or nests too deeply.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        Ok(serde_json::from_str(check(bytes)?)?)
    }

    /// Reads an object that determines which binaries Jackfield executes. Refuses a key that occurs
    /// more than once, because parsers disagree about its value.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`], and [`JsonError::Ambiguous`].
    pub fn parse_configuration(bytes: &[u8]) -> Result<Self, JsonError> {
        Self::parse_unambiguous(bytes, &[])
    }

    /// Reads the configuration that the runtime passes on stdin. The configuration may contain the
    /// pod's annotations. Names of annotations that differ only in case count as different keys.
    ///
    /// # Errors
    ///
    /// As [`Self::parse_configuration`].
    pub fn parse_stdin(bytes: &[u8]) -> Result<Self, JsonError> {
        Self::parse_unambiguous(bytes, &["runtimeConfig", POD_ANNOTATIONS])
    }

    fn parse_unambiguous(bytes: &[u8], names: &[&str]) -> Result<Self, JsonError> {
        let text = check(bytes)?;
        unambiguous(text, names)?;
        Ok(serde_json::from_str(text)?)
    }

    /// The value of a key; `None` when it is `null` or missing.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.last(key).filter(|value| value.get() != "null")
    }

    /// Whether the object has a key, even if its value is `null`.
    ///
    /// A GC needs this distinction for `cni.dev/valid-attachments`. The value `null` counts as an
    /// empty list. If the key is missing, there is no list, and the GC must not remove anything.
    pub fn contains(&self, key: &str) -> bool {
        self.last(key).is_some()
    }

    fn last(&self, key: &str) -> Option<&RawValue> {
        let mut last_first = self.iter().rev();
        last_first.find_map(|(written, value)| same_key(written, key).then_some(value))
    }

    /// The value of a key as a `T`; `None` when it is `null` or missing.
    ///
    /// # Errors
    ///
    /// [`JsonError::Key`] when the value is not a `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Result<Option<T>, JsonError> {
        self.get(key).map(|value| read(key, value)).transpose()
    }

    /// The value of a key as a `T`; `None` when the value is not a `T`, is `null` or is missing.
    pub fn value_as<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Option<T> {
        self.read(key).ok().flatten()
    }

    /// The value of a key as a string; `None` when it is empty, `null` or missing.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub(crate) fn read_text(&self, key: &str) -> Result<Option<String>, JsonError> {
        Ok(self.read(key)?.filter(|text: &String| !text.is_empty()))
    }

    /// Sets the value of a key. An existing key keeps its position. A new key goes to the end.
    ///
    /// Unlike a lookup, this method is case-sensitive. To replace a key in every spelling, call
    /// [`Self::remove`] first.
    pub fn set(&mut self, key: &str, value: Box<RawValue>) {
        let is_it = |(written, _): &Entry| **written == *key;
        let first = self.entries.iter().position(is_it);
        self.entries.retain(|entry| !is_it(entry));
        let place = first.unwrap_or(self.entries.len());
        self.entries.insert(place, (key.into(), value));
    }

    /// Copies all keys of `over` into this object, with their values. A copied key replaces the
    /// same key in any spelling, at the same position. New keys go to the end. Neither object may
    /// have a key twice.
    pub fn overlay(&mut self, over: &Self) {
        let news = over.entries.iter().enumerate();
        let mut news: HashMap<Cow<'_, str>, (usize, &Entry)> =
            news.map(|new| (folded(&new.1.0), new)).collect();
        for entry in &mut self.entries {
            let new = news.remove(folded(&entry.0).as_ref());
            if let Some((_, new)) = new {
                entry.clone_from(new);
            }
        }
        let mut added: Vec<(usize, &Entry)> = news.into_values().collect();
        added.sort_unstable_by_key(|(place, _)| *place);
        let added = added.into_iter().map(|(_, entry)| entry.clone());
        self.entries.extend(added);
    }

    /// Removes a key in every spelling, and returns whether the object had the key.
    pub fn remove(&mut self, key: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(written, _)| !same_key(written, key));
        self.entries.len() < before
    }

    /// Keys and values in the order of the text, including duplicates and `null`.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &RawValue)> {
        self.entries.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Whether the object has no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of keys, including duplicates.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The approximate size of the text that [`fmt::Display`] writes, in bytes. Does not count
    /// escapes in keys.
    pub(crate) fn size_hint(&self) -> usize {
        let sizes = self
            .iter()
            .map(|(key, value)| key.len() + value.get().len() + 4);
        sizes.sum::<usize>() + 2
    }

    /// Appends the object's text.
    pub(crate) fn push_to(&self, out: &mut String) {
        let mut members = Members::open(out);
        for (key, value) in self.iter() {
            members.push(key, value.get());
        }
        members.close();
    }
}

/// Compares the text of the values and the order of the keys, so `1.0` differs from `1.00`.
impl PartialEq for RawObject {
    fn eq(&self, other: &Self) -> bool {
        let ours = self.iter().map(|(key, value)| (key, value.get()));
        ours.eq(other.iter().map(|(key, value)| (key, value.get())))
    }
}

impl Eq for RawObject {}

/// Writes no white space between the members. Writes the text of each value unchanged.
impl fmt::Display for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::with_capacity(self.size_hint());
        self.push_to(&mut out);
        f.write_str(&out)
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl FromIterator<Entry> for RawObject {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let entries = entries.into_iter().collect();
        Self { entries }
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = RawObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                std::iter::from_fn(|| map.next_entry().transpose()).collect()
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// Appends an object to a string, one member at a time.
pub(crate) struct Members<'a> {
    out: &'a mut String,
    first: bool,
}

impl<'a> Members<'a> {
    pub(crate) fn open(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, first: true }
    }

    /// Writes a member whose value is JSON.
    pub(crate) fn push(&mut self, key: &str, value: &str) {
        self.key(key).push_str(value);
    }

    /// Writes a member whose value is a string.
    pub(crate) fn push_text(&mut self, key: &str, text: &str) {
        push_string(self.key(key), text);
    }

    /// Writes the key of a member. The caller appends the value to the returned string.
    pub(crate) fn key(&mut self, key: &str) -> &mut String {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        push_string(self.out, key);
        self.out.push(':');
        self.out
    }

    pub(crate) fn close(self) {
        self.out.push('}');
    }
}
