//! The name of an object in the cluster.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cni::json::excerpt;

/// A namespaced object: `namespace/name`.
///
/// The namespace is a DNS-1123 label. The name consists of DNS-1123 labels, separated by periods
/// (NPWG 1.3 §3.3). The specification recommends at most 63 characters for each label of the name.
/// This type limits only the whole name, to 253 characters, as Kubernetes does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ObjectRef {
    namespace: Box<str>,
    name: Box<str>,
}

impl ObjectRef {
    /// Returns the object with this namespace and name.
    ///
    /// # Errors
    ///
    /// [`ObjectRefError`] if the namespace or the name is not valid.
    pub fn new(namespace: &str, name: &str) -> Result<Self, ObjectRefError> {
        if !is_label(namespace) {
            return Err(ObjectRefError::new("the namespace of an object", namespace));
        }
        if !is_subdomain(name) {
            return Err(ObjectRefError::new("the name of an object", name));
        }
        Ok(Self {
            namespace: namespace.into(),
            name: name.into(),
        })
    }

    /// Reads `namespace/name`, or `name` in the given namespace (NPWG 1.3 §4.1.1).
    ///
    /// # Errors
    ///
    /// [`ObjectRefError`] when a part is not a valid name.
    pub fn with_default_namespace(text: &str, namespace: &str) -> Result<Self, ObjectRefError> {
        let (namespace, name) = text.split_once('/').unwrap_or((namespace, text));
        Self::new(namespace, name)
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name within the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for ObjectRef {
    type Err = ObjectRefError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || ObjectRefError::new("the namespace and name of an object", text);
        let (namespace, name) = text.split_once('/').ok_or_else(invalid)?;
        Self::new(namespace, name)
    }
}

impl TryFrom<String> for ObjectRef {
    type Error = ObjectRefError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ObjectRef> for String {
    fn from(object: ObjectRef) -> Self {
        object.to_string()
    }
}

/// Whether a text is a DNS-1123 label of at most 63 characters, as a namespace must be.
pub(crate) fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_unit(text)
}

/// Whether a text can be the name of a custom object: DNS-1123 labels separated by periods, at most
/// 253 characters in total.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_unit)
}

fn is_unit(text: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let has_valid_ends = !text.starts_with('-') && !text.ends_with('-');
    !text.is_empty() && has_valid_ends && text.bytes().all(is_valid)
}

/// A text that cannot name an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{value:?} cannot be {part}; use lower-case letters, digits and '-' ('.' only in a name); to \
     give a namespace, write namespace/name; in a JSON annotation, use the key \"namespace\" \
     instead"
)]
pub struct ObjectRefError {
    part: &'static str,
    value: String,
}

impl ObjectRefError {
    fn new(part: &'static str, value: &str) -> Self {
        Self {
            part,
            value: excerpt(value).into_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // clause: NPWG-1.3 §3.3 names: a name consists of DNS-1123 labels
    #[test]
    fn names_follow_dns_1123() {
        let label = "a".repeat(63);
        let table = [
            ("ns/name", true),
            ("0/1", true),
            ("a-b/c-d", true),
            ("ns/vm-a.tenantred.pod16367aacb67", true),
            (&*format!("{label}/{label}"), true),
            (&*format!("ns/{label}x"), true),
            (&*format!("{label}x/name"), false),
            (&*format!("ns/{}", "a.".repeat(126) + "aa"), false),
            ("name", false),
            ("/name", false),
            ("ns/", false),
            ("/", false),
            ("", false),
            ("a/b/c", false),
            ("Ns/name", false),
            ("ns/Name", false),
            ("ns/na_me", false),
            ("ns/-name", false),
            ("ns/name-", false),
            ("ns/.name", false),
            ("ns/a..b", false),
            ("n.s/name", false),
            ("ns/näme", false),
            (" ns/name", false),
            ("ns/na me", false),
            ("ns/name\n", false),
        ];
        for (text, valid) in table {
            let object = text.parse::<ObjectRef>();
            assert_eq!(object.is_ok(), valid, "{text:?}");
            if let Ok(object) = object {
                assert_eq!(object.to_string(), text);
            }
        }
    }

    // clause: NPWG-1.3 §4.1.1: a reference without a namespace means the pod's namespace
    #[test]
    fn a_bare_name_is_in_the_namespace_of_the_pod() {
        let object = |text| ObjectRef::with_default_namespace(text, "pods").unwrap();
        assert_eq!(object("net-a").to_string(), "pods/net-a");
        assert_eq!(object("other/net-c").to_string(), "other/net-c");
        assert!(ObjectRef::with_default_namespace("/net-c", "pods").is_err());
        assert!(ObjectRef::with_default_namespace("net-c", "").is_err());
    }

    #[test]
    fn an_error_quotes_the_invalid_name_and_contains_the_remedy() {
        assert_eq!(
            "ns/Net".parse::<ObjectRef>().unwrap_err().to_string(),
            "\"Net\" cannot be the name of an object; use lower-case letters, digits and '-' \
             ('.' only in a name); to give a namespace, write namespace/name; in a JSON \
             annotation, use the key \"namespace\" instead"
        );
    }

    proptest! {
        #[test]
        fn an_accepted_name_reads_back(text in "[a-z0-9./-]{0,20}|\\PC{0,10}") {
            if let Ok(object) = text.parse::<ObjectRef>() {
                prop_assert_eq!(object.to_string(), text);
                let json = serde_json::to_string(&object).unwrap();
                prop_assert_eq!(serde_json::from_str::<ObjectRef>(&json).unwrap(), object);
            }
        }
    }
}
