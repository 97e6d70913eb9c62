//! The definition of a network.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::manifest::{Manifest, ManifestError};
use super::object_ref::ObjectRef;

/// The parts of a NetworkAttachmentDefinition that an attachment needs (NPWG 1.3 §3.2).
///
/// This type keeps the configuration as text, so that an invalid configuration fails only the
/// attachments that use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The object's name.
    pub object: ObjectRef,
    /// `spec.config`. If this key is absent or blank, Jackfield searches the node's disk for a CNI
    /// configuration whose `name` is the object's name (NPWG 1.3 §3.4.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The resource whose devices the network uses, from the annotation
    /// [`RESOURCE_NAME_ANNOTATION`](super::RESOURCE_NAME_ANNOTATION).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
}

impl Definition {
    /// Reads a definition. An object without a namespace is in `default`.
    ///
    /// # Errors
    ///
    /// [`ManifestError`] when the object is of another kind or has no valid name, or when a value
    /// such as `spec.config` or the resource name is not a string.
    pub fn from_json(object: &Value) -> Result<Self, ManifestError> {
        let config = object.pointer("/spec/config").cloned();
        Self::from_parts(object, config.unwrap_or_default())
    }

    /// Reads a definition whose `spec.config` is in `config` and whose other keys are in `object`.
    /// Ignores `spec.config` in `object`, so a caller can omit a large configuration from `object`.
    ///
    /// # Errors
    ///
    /// As [`Definition::from_json`].
    pub fn from_parts(object: &Value, config: Value) -> Result<Self, ManifestError> {
        let manifest = Manifest(object);
        manifest.is("NetworkAttachmentDefinition", &["k8s.cni.cncf.io"])?;
        let resource = manifest.text("/metadata/annotations/k8s.v1.cni.cncf.io~1resourceName")?;
        Ok(Self {
            object: manifest.object()?,
            config: match config {
                Value::Null => None,
                // White space counts as an absent configuration.
                Value::String(text) => Some(text).filter(|text| !text.trim().is_empty()),
                _ => return Err(ManifestError::NotString("spec.config".to_owned())),
            },
            resource_name: resource.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // clause: NPWG-1.3 §3.2 object: spec.config is optional and holds the CNI configuration
    #[test]
    fn the_configuration_of_a_definition_is_optional() {
        let full = Definition::from_json(&json!({
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {
                "name": "sriov-a", "namespace": "telco", "uid": "u",
                "annotations": {"k8s.v1.cni.cncf.io/resourceName": "intel.com/sriov", "x": 1},
            },
            "spec": {"config": "{\"type\":\"sriov\"}", "more": true},
        }));
        assert_eq!(
            full,
            Ok(Definition {
                object: "telco/sriov-a".parse().unwrap(),
                config: Some(r#"{"type":"sriov"}"#.to_owned()),
                resource_name: Some("intel.com/sriov".to_owned()),
            })
        );
        for bare in [
            json!({"metadata": {"name": "a"}}),
            json!({"metadata": {"name": "a", "namespace": null, "annotations": null}, "spec": null}),
            json!({"metadata": {"name": "a", "namespace": ""}, "spec": {"config": ""}}),
            json!({"metadata": {"name": "a"}, "spec": {"config": " \n"}}),
        ] {
            let definition = Definition::from_json(&bare).unwrap();
            assert_eq!(definition.object.to_string(), "default/a");
            assert_eq!(definition.config, None);
            assert_eq!(definition.resource_name, None);
        }
    }

    #[test]
    fn each_invalid_object_has_its_own_error() {
        let kind = |found: &str| ManifestError::Kind {
            expected: "NetworkAttachmentDefinition",
            found: found.to_owned(),
        };
        let table = [
            (json!({}), ManifestError::NoName),
            (json!(null), ManifestError::NoName),
            (
                json!({"kind": "Pod", "metadata": {"name": "a"}}),
                kind("/Pod"),
            ),
            (
                json!({"apiVersion": "example.com/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "a"}}),
                kind("example.com/NetworkAttachmentDefinition"),
            ),
            (
                json!({"metadata": {"name": "A"}}),
                ObjectRef::new("default", "A").unwrap_err().into(),
            ),
            (
                json!({"metadata": {"name": 7}}),
                ManifestError::NotString("metadata.name".to_owned()),
            ),
            (
                json!({"metadata": {"name": "a"}, "spec": {"config": {"type": "x"}}}),
                ManifestError::NotString("spec.config".to_owned()),
            ),
            (
                json!({"metadata": {"name": "a", "annotations": {"k8s.v1.cni.cncf.io/resourceName": 1}}}),
                ManifestError::NotString(
                    "metadata.annotations.k8s.v1.cni.cncf.io/resourceName".to_owned(),
                ),
            ),
        ];
        for (object, expected) in table {
            assert_eq!(Definition::from_json(&object), Err(expected), "{object}");
        }
    }
}
