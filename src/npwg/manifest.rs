//! A Kubernetes object as JSON.

use serde_json::Value;
use thiserror::Error;

use super::object_ref::{ObjectRef, ObjectRefError};
use super::requested_ip::RequestedIpError;

/// An object as JSON. A key with the value `null` counts as absent. Where a string is expected, an
/// empty string also counts as absent.
#[derive(Clone, Copy)]
pub(crate) struct Manifest<'a>(pub(crate) &'a Value);

impl<'a> Manifest<'a> {
    /// Returns the object's namespace and name. An object without a namespace is in `default`.
    pub(crate) fn object(self) -> Result<ObjectRef, ManifestError> {
        let name = self.text("/metadata/name")?.ok_or(ManifestError::NoName)?;
        let namespace = self.text("/metadata/namespace")?.unwrap_or("default");
        Ok(ObjectRef::new(namespace, name)?)
    }

    /// Refuses an object of another kind, or of an API group that is not in `groups`. A missing
    /// `apiVersion` fits every group. Always accepts an object without `kind`.
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

    /// Returns the string at a JSON pointer; `None` for an absent or empty string.
    pub(crate) fn text(self, pointer: &str) -> Result<Option<&'a str>, ManifestError> {
        match self.0.pointer(pointer) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(ManifestError::NotString(path(pointer))),
        }
    }

    /// Returns the strings of the list at a JSON pointer. An absent list counts as empty.
    pub(crate) fn texts(self, pointer: &str) -> Result<Vec<&'a str>, ManifestError> {
        let not_list = || ManifestError::NotList(path(pointer));
        match self.0.pointer(pointer) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(list)) => list
                .iter()
                .map(|element| element.as_str().ok_or_else(not_list))
                .collect(),
            Some(_) => Err(not_list()),
        }
    }
}

/// Writes a JSON pointer as a path with periods.
fn path(pointer: &str) -> String {
    pointer
        .trim_start_matches('/')
        .replace('/', ".")
        .replace("~1", "/")
}

/// Why an object cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// The object is of another kind or of another API group.
    #[error("expected an object of kind {expected}, found {found:?}")]
    Kind {
        /// The expected kind.
        expected: &'static str,
        /// The object's group and kind.
        found: String,
    },
    /// The object has no name.
    #[error("metadata.name is missing; every object needs one")]
    NoName,
    /// The object's name is invalid.
    #[error(transparent)]
    Name(#[from] ObjectRefError),
    /// The value at a path is not a string.
    #[error("{0} is not a string; write its value in quotes")]
    NotString(String),
    /// The value at a path is not a list of strings.
    #[error("{0} is not a list of strings")]
    NotList(String),
    /// An address of an IPAMClaim is invalid.
    #[error("status.ips: {0}")]
    Ip(#[from] RequestedIpError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_says_what_is_wrong() {
        let ip = "x".parse::<super::super::RequestedIp>().unwrap_err();
        let table = [
            (
                ManifestError::Kind {
                    expected: "IPAMClaim",
                    found: "x/Pod".to_owned(),
                },
                "expected an object of kind IPAMClaim, found \"x/Pod\"".to_owned(),
            ),
            (
                ManifestError::NoName,
                "metadata.name is missing; every object needs one".to_owned(),
            ),
            (
                ManifestError::NotString("spec.config".to_owned()),
                "spec.config is not a string; write its value in quotes".to_owned(),
            ),
            (
                ManifestError::NotList("status.ips".to_owned()),
                "status.ips is not a list of strings".to_owned(),
            ),
            (ManifestError::Ip(ip.clone()), format!("status.ips: {ip}")),
        ];
        for (error, expected) in table {
            assert_eq!(error.to_string(), expected);
        }
    }
}
