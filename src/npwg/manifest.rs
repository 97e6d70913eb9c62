//! An object of the cluster as it is written down.

use serde_json::Value;
use thiserror::Error;

use super::object_ref::{ObjectRef, ObjectRefError};

/// An object as JSON, read leniently: `null` and `""` are absent.
#[derive(Clone, Copy)]
pub(crate) struct Manifest<'a>(pub(crate) &'a Value);

impl<'a> Manifest<'a> {
    /// The object's name; `default` is the namespace that is meant where none is written.
    pub(crate) fn object(self) -> Result<ObjectRef, ManifestError> {
        let name = self.text("/metadata/name")?.ok_or(ManifestError::NoName)?;
        let namespace = self.text("/metadata/namespace")?.unwrap_or("default");
        Ok(ObjectRef::new(namespace, name)?)
    }

    /// Refuses what says of itself that it is something else.
    pub(crate) fn is(self, kind: &'static str, groups: &[&str]) -> Result<(), ManifestError> {
        let group = self
            .text("/apiVersion")?
            .map(|version| version.split('/').next().unwrap_or_default());
        let right_group = group.is_none_or(|group| groups.contains(&group));
        match self.text("/kind")? {
            Some(other) if other != kind || !right_group => Err(ManifestError::Kind {
                expected: kind,
                found: format!("{}/{other}", group.unwrap_or_default()),
            }),
            _ => Ok(()),
        }
    }

    /// The string at a JSON pointer.
    pub(crate) fn text(self, pointer: &str) -> Result<Option<&'a str>, ManifestError> {
        match self.0.pointer(pointer) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(ManifestError::NoString(path(pointer))),
        }
    }

    /// The strings of the list at a JSON pointer.
    pub(crate) fn texts(self, pointer: &str) -> Result<Vec<&'a str>, ManifestError> {
        let no_list = || ManifestError::NoList(path(pointer));
        match self.0.pointer(pointer) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(list)) => list
                .iter()
                .map(|element| element.as_str().ok_or_else(no_list))
                .collect(),
            Some(_) => Err(no_list()),
        }
    }
}

/// A JSON pointer as people write it.
fn path(pointer: &str) -> String {
    pointer
        .trim_start_matches('/')
        .replace('/', ".")
        .replace("~1", "/")
}

/// Why an object cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// It is something else.
    #[error("expected an object of kind {expected}, found {found:?}")]
    Kind {
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// It has no name.
    #[error("metadata.name is missing; every object needs one")]
    NoName,
    /// Its name cannot be one.
    #[error(transparent)]
    Name(#[from] ObjectRefError),
    /// A value is no string.
    #[error("{0} is no string; write its value in quotes")]
    NoString(String),
    /// A value is no list of strings.
    #[error("{0} is no list of strings")]
    NoList(String),
    /// A value is not what it has to be.
    #[error("{key}: {reason}")]
    Value {
        /// Where it stands.
        key: &'static str,
        /// What is wrong.
        reason: String,
    },
}
