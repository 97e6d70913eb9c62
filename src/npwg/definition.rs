//! How to attach a pod to a network.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::manifest::{Manifest, ManifestError};
use super::object_ref::ObjectRef;

/// A NetworkAttachmentDefinition, as far as attaching goes: NPWG 1.3 §3.2.
///
/// Its configuration is not read here: a broken one is the fault of that one attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The object's name.
    pub object: ObjectRef,
    /// `spec.config`; where it is absent, a file of that name on the node (NPWG 1.3 §3.4.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The resource whose devices the network uses: the annotation
    /// [`RESOURCE_NAME_ANNOTATION`](super::RESOURCE_NAME_ANNOTATION).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
}

impl Definition {
    /// Takes what matters from the object. One without a namespace is in `default`.
    ///
    /// # Errors
    ///
    /// [`ManifestError`] when it is another kind of object, has no possible name, or
    /// `spec.config` is no string.
    pub fn from_json(object: &Value) -> Result<Self, ManifestError> {
        let config = object.pointer("/spec/config").cloned();
        Self::from_parts(object, config.unwrap_or_default())
    }

    /// The same of an object whose `spec.config` was taken out of it: it may be large, and is not
    /// copied.
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
                // The API server takes one of white space alone for none, too.
                Value::String(text) => Some(text).filter(|text| !text.trim().is_empty()),
                _ => return Err(ManifestError::NoString("spec.config".to_owned())),
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
    fn a_definition_has_a_configuration_or_none() {
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
    fn what_is_no_definition_is_named() {
        let table = [
            (json!({}), "metadata.name is missing"),
            (json!(null), "metadata.name is missing"),
            (
                json!({"kind": "Pod", "metadata": {"name": "a"}}),
                "found \"/Pod\"",
            ),
            (
                json!({"apiVersion": "example.com/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "a"}}),
                "expected an object of kind NetworkAttachmentDefinition",
            ),
            (
                json!({"metadata": {"name": "A"}}),
                "\"A\" cannot be the name",
            ),
            (
                json!({"metadata": {"name": 7}}),
                "metadata.name is no string",
            ),
            (
                json!({"metadata": {"name": "a"}, "spec": {"config": {"type": "x"}}}),
                "spec.config is no string",
            ),
            (
                json!({"metadata": {"name": "a", "annotations": {"k8s.v1.cni.cncf.io/resourceName": 1}}}),
                "metadata.annotations.k8s.v1.cni.cncf.io/resourceName is no string",
            ),
        ];
        for (object, expected) in table {
            let error = Definition::from_json(&object).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
