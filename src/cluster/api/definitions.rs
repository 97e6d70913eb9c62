//! Reads NetworkAttachmentDefinitions (definitions) from the API server: a single definition up to
//! a size limit, or the names of all definitions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::kinds::Objects;
use super::pages::Item;
use super::server::{GROUP, JSON};
use super::{ApiError, ApiServer};
use crate::cluster::Census;
use crate::cluster::lookup::{LookupError, Place};
use crate::npwg::{Definition, ObjectRef, RESOURCE_NAME_ANNOTATION};

/// The largest definition that Jackfield reads, in bytes of the API server's answer. etcd stores
/// objects of up to 1.5 MiB, and escaping makes JSON within JSON longer.
pub const LARGEST_DEFINITION: usize = 4 << 20;
/// [`Unread::of`] decodes and checks only configurations whose JSON has fewer bytes than this.
const SHORT: usize = 64 << 10;

/// The keys that Jackfield reads in the API server's JSON of a definition.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wire<'a> {
    api_version: Value,
    kind: Value,
    metadata: Metadata,
    #[serde(borrow)]
    spec: Option<Spec<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: Value,
    namespace: Value,
    resource_version: String,
    annotations: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec<'a> {
    #[serde(borrow)]
    config: Option<&'a RawValue>,
}

impl<'a> Wire<'a> {
    /// Splits the object into three parts: the object without its configuration, the configuration,
    /// and the resource version.
    fn into_parts(self) -> (Value, Option<&'a RawValue>, String) {
        let resource = self
            .metadata
            .annotations
            .and_then(|mut annotations| annotations.remove(RESOURCE_NAME_ANNOTATION));
        let object = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": {
                "name": self.metadata.name,
                "namespace": self.metadata.namespace,
                "annotations": {RESOURCE_NAME_ANNOTATION: resource},
            },
        });
        let config = self.spec.and_then(|spec| spec.config);
        (object, config, self.metadata.resource_version)
    }
}

/// Returns the definition in an answer of the API server, and its resource version.
///
/// # Errors
/// When the answer is not valid JSON or the definition is invalid.
pub fn read(text: &[u8]) -> Result<(Definition, String), LookupError> {
    let (object, config, version) = serde_json::from_slice::<Wire<'_>>(text)?.into_parts();
    let config = serde_json::from_str(config.map_or("null", RawValue::get))?;
    Ok((Definition::from_parts(&object, config)?, version))
}

/// A definition that borrows its configuration, still encoded, from the API server's answer. A copy
/// could need much memory, because a configuration may be long.
#[derive(Debug, Serialize)]
pub struct Unread<'a> {
    /// The object's name.
    pub object: ObjectRef,
    /// `spec.config`, a JSON string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<&'a RawValue>,
    /// The resource whose devices the network uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
}

impl<'a> Unread<'a> {
    /// Returns the definition in an answer of the API server.
    ///
    /// # Errors
    /// When the answer is not valid JSON or the definition is invalid.
    pub fn of(text: &'a [u8]) -> Result<Unread<'a>, LookupError> {
        let (object, config, _) = serde_json::from_slice::<Wire<'_>>(text)?.into_parts();
        let short = config.filter(|config| config.get().len() < SHORT);
        // A short configuration is decoded and checked. A long configuration is not decoded, but it
        // must be a string. `false` stands for an invalid configuration, and `from_parts` refuses
        // it.
        let value = match (short, config) {
            (Some(short), _) => serde_json::from_str(short.get()).unwrap_or(Value::Bool(false)),
            (None, Some(long)) if !long.get().starts_with('"') => Value::Bool(false),
            _ => Value::Null,
        };
        let is_read = short.is_some();
        let definition = Definition::from_parts(&object, value)?;
        Ok(Unread {
            object: definition.object,
            config: config.filter(|_| !is_read || definition.config.is_some()),
            resource_name: definition.resource_name,
        })
    }
}

impl ApiServer {
    /// Reads the text of a definition, up to `most` bytes. [`read`] and [`Unread::of`] parse the
    /// text.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn definition_text(
        &self,
        object: &ObjectRef,
        most: usize,
    ) -> Result<Vec<u8>, LookupError> {
        let (namespace, name) = (object.namespace(), object.name());
        let path = format!(
            "/apis/{GROUP}/v1/namespaces/{namespace}/network-attachment-definitions/{name}"
        );
        self.get(&path, JSON, most)
            .await
            .map_err(|error| match error.code() {
                _ if error.is_long_answer() => LookupError::TooLong(object.clone(), most),
                Some(404) => {
                    let kind = "NetworkAttachmentDefinition";
                    LookupError::Missing(kind, object.to_string(), Place::ApiServer)
                }
                _ => error.into(),
            })
    }

    /// Adds the names of the cluster's definitions to `census`, the list of pods and definitions.
    /// If the cluster has more than `most` definitions, `census` gets only `most` names, and a line
    /// that says so. Does not read the content of the definitions.
    ///
    /// # Errors
    /// [`ApiError`].
    pub async fn add_definitions(&self, census: &mut Census, most: usize) -> Result<(), ApiError> {
        let mut is_cut = false;
        let take = |item: Item<'_>| {
            match item.object() {
                _ if census.definitions.len() == most => is_cut = true,
                Ok(object) => census.definitions.push(object),
                Err(error) => {
                    let problem = format!("NetworkAttachmentDefinition {error}");
                    census.broken.push(problem);
                }
            }
            !is_cut
        };
        match self.list(&Objects::definitions(), take).await {
            // A cluster that does not serve the kind has no definitions.
            Err(error) if !error.is_not_served() => return Err(error),
            _ => {}
        }
        if is_cut {
            census.broken.push(format!(
                "the cluster has more than {most} definitions; the rest is not examined"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npwg::ManifestError;

    fn is_not_a_string(error: &LookupError) -> bool {
        matches!(error, LookupError::Invalid(ManifestError::NotString(key)) if key == "spec.config")
    }

    #[test]
    fn only_the_keys_required_for_attaching_are_read() {
        let object = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": "a", "namespace": "telco", "resourceVersion": "7",
                "annotations": {"k8s.v1.cni.cncf.io/resourceName": "intel.com/sriov", "x": "y"},
                "managedFields": [{"manager": "kubectl"}]},
            "spec": {"config": "{}"},
        });
        let (definition, version) = read(object.to_string().as_bytes()).unwrap();
        assert_eq!(version, "7");
        assert_eq!(
            definition,
            Definition::from_json(&object).unwrap(),
            "the same as from a manifest"
        );
    }

    #[test]
    fn a_definition_may_have_nulls_in_place_of_annotations_and_spec() {
        let object = json!({"metadata": {"name": "a", "annotations": null}, "spec": null});
        let (definition, _) = read(object.to_string().as_bytes()).unwrap();
        assert_eq!(definition.config, None);
    }

    #[test]
    fn an_unread_definition_equals_the_decoded_definition() {
        let long = "x".repeat(2 * SHORT);
        for spec in [
            json!({"config": long}),
            json!({"config": "{\"a\": \"\u{e9}\\n\"}"}),
            json!({"config": " \n"}),
            json!({"config": null}),
            json!({}),
            json!(null),
        ] {
            let object = json!({
                "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                "metadata": {"name": "a", "namespace": "telco",
                    "annotations": {"k8s.v1.cni.cncf.io/resourceName": "intel.com/sriov"}},
                "spec": spec,
            });
            let text = object.to_string();
            let unread = serde_json::to_string(&Unread::of(text.as_bytes()).unwrap()).unwrap();
            let read: Definition = serde_json::from_str(&unread).unwrap();
            assert_eq!(read, Definition::from_json(&object).unwrap(), "{spec}");
        }
        for spec in [json!({"config": {"type": "x"}}), json!({"config": [long]})] {
            let object = json!({"metadata": {"name": "a"}, "spec": spec});
            let text = object.to_string();
            let error = Unread::of(text.as_bytes()).unwrap_err();
            assert!(is_not_a_string(&error), "{error}");
        }
    }

    #[test]
    fn a_configuration_that_is_not_a_string_is_an_error() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"config": {"type": "x"}}});
        let error = read(object.to_string().as_bytes()).unwrap_err();
        assert!(is_not_a_string(&error), "{error}");
    }
}
