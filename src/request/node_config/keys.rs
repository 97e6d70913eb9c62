//! Reads the keys of an object in the node configuration. The case of a key does not matter. An
//! invalid value is an error.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{NodeConfigError, ValueError};
use crate::cni::json::{excerpt, folded};
use crate::cni::{InvalidValue, RawObject};

/// An object of the configuration. Remembers which keys the caller has read. All other keys of the
/// object count as unknown.
pub(in crate::request) struct Keys<'a> {
    object: &'a RawObject,
    /// The path of the object; empty for the configuration itself.
    path: String,
    known: RefCell<Vec<&'a str>>,
    /// One line for each unknown key of nested objects.
    warnings: RefCell<Vec<String>>,
}

impl<'a> Keys<'a> {
    /// Returns the keys of `object`, which is at `path` in the configuration.
    pub(in crate::request) fn of(object: &'a RawObject, path: String) -> Keys<'a> {
        Keys {
            object,
            path,
            known: RefCell::default(),
            warnings: RefCell::default(),
        }
    }

    pub(in crate::request) fn read<T: DeserializeOwned>(
        &self,
        key: &'a str,
    ) -> Result<Option<T>, NodeConfigError> {
        self.read_value(key, self.object.get(key).unwrap_or(RawValue::NULL))
    }

    fn read_value<T: DeserializeOwned>(
        &self,
        key: &'a str,
        raw: &RawValue,
    ) -> Result<Option<T>, NodeConfigError> {
        self.known.borrow_mut().push(key);
        serde_json::from_str(raw.get()).map_err(|error| {
            let cause = InvalidValue::Parser(error.into());
            self.invalid(key, raw.get(), ValueError::Type(cause))
        })
    }

    /// Returns the string value of a key. An empty string counts as absent, as in Go programs.
    pub(super) fn text(&self, key: &'a str) -> Result<Option<String>, NodeConfigError> {
        Ok(self.read::<String>(key)?.filter(|text| !text.is_empty()))
    }

    pub(super) fn optional_path(&self, key: &'a str) -> Result<Option<PathBuf>, NodeConfigError> {
        match self.text(key)? {
            Some(text) if !text.starts_with('/') || text.contains('\0') => {
                Err(self.invalid(key, &text, ValueError::RelativePath))
            }
            text => Ok(text.map(PathBuf::from)),
        }
    }

    pub(super) fn path(&self, key: &'a str, default: &str) -> Result<PathBuf, NodeConfigError> {
        let path = self.optional_path(key)?;
        Ok(path.unwrap_or_else(|| PathBuf::from(default)))
    }

    pub(in crate::request) fn choice<T: Copy>(
        &self,
        key: &'a str,
        choices: &[(&'static str, T)],
        default: T,
    ) -> Result<T, NodeConfigError> {
        let Some(text) = self.text(key)? else {
            return Ok(default);
        };
        let is_choice = |(name, _): &&(&'static str, T)| name.eq_ignore_ascii_case(&text);
        let choice = choices.iter().find(is_choice).map(|(_, choice)| *choice);
        choice.ok_or_else(|| {
            let names = choices.iter().map(|(name, _)| *name).collect();
            self.invalid(key, &text, ValueError::Choice(names))
        })
    }

    /// Reads the object under a key. A missing object counts as an object without keys.
    pub(in crate::request) fn inside<T>(
        &self,
        key: &'a str,
        read: impl FnOnce(&Keys<'_>) -> Result<T, NodeConfigError>,
    ) -> Result<T, NodeConfigError> {
        self.inside_value(key, self.object.get(key).unwrap_or(RawValue::NULL), read)
    }

    /// Reads the object `raw`, which is the value of `key`. Unlike [`Self::inside`], does not
    /// search for the key.
    pub(in crate::request) fn inside_value<T>(
        &self,
        key: &'a str,
        raw: &RawValue,
        read: impl FnOnce(&Keys<'_>) -> Result<T, NodeConfigError>,
    ) -> Result<T, NodeConfigError> {
        let object: RawObject = self.read_value(key, raw)?.unwrap_or_default();
        let keys = Keys::of(&object, self.path_of(key));
        let value = read(&keys)?;
        let unknown = keys.unknown().map(|unknown| {
            let path = &keys.path;
            format!("unknown key {unknown:?} in {path} of the node configuration; it is ignored")
        });
        let mut warnings = self.warnings.borrow_mut();
        warnings.extend(unknown);
        warnings.append(&mut keys.warnings.borrow_mut());
        Ok(value)
    }

    /// Returns the keys in their original spelling, with their values.
    pub(in crate::request) fn written(&self) -> impl Iterator<Item = (&'a str, &'a RawValue)> {
        self.object.iter()
    }

    /// Returns the keys that the caller has not read.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &'a str> {
        let known: HashSet<_> = self.known.borrow().iter().copied().map(folded).collect();
        let keys = self.written().map(|(key, _)| key);
        keys.filter(move |key| !known.contains(&folded(key)))
    }

    /// Returns the keys that the caller has read, and the warnings about nested objects.
    pub(super) fn into_known(self) -> (Vec<&'a str>, Vec<String>) {
        (self.known.into_inner(), self.warnings.into_inner())
    }

    /// Returns the error for an invalid value.
    pub(in crate::request) fn invalid(
        &self,
        key: &str,
        value: &str,
        cause: ValueError,
    ) -> NodeConfigError {
        NodeConfigError::Value {
            key: self.path_of(key),
            value: excerpt(value).into_owned(),
            cause: Box::new(cause),
        }
    }

    fn path_of(&self, key: &str) -> String {
        match &*self.path {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }
}
