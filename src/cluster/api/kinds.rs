//! The kinds of objects that Jackfield lists and watches.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::server::{GROUP, JSON};
use crate::npwg::{ObjectRef, ObjectRefError};

/// The media types of objects without their content.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
pub(super) const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// The namespace in the [`ObjectRef`] of a cluster-scoped object, such as a ResourceSlice.
const NO_NAMESPACE: &str = "cluster";

/// Objects of one kind: all objects in the cluster, or only the objects of one node.
#[derive(Debug, Clone)]
pub struct Objects {
    /// The kind of the objects.
    pub kind: &'static str,
    version: &'static str,
    path: String,
    pub(super) listed_as: &'static str,
    pub(super) watched_as: &'static str,
}

impl Objects {
    /// Selects the pods that are bound to a node.
    pub fn pods(node: &str) -> Objects {
        Objects::of_node("Pod", "v1", "/api/v1/pods", node)
    }

    /// Selects the ResourceSlices of a node.
    pub fn slices(node: &str) -> Objects {
        let path = "/apis/resource.k8s.io/v1/resourceslices";
        Objects::of_node("ResourceSlice", "resource.k8s.io/v1", path, node)
    }

    /// Selects the cluster's NetworkAttachmentDefinitions, without their content.
    pub fn definitions() -> Objects {
        Objects {
            kind: "NetworkAttachmentDefinition",
            version: "k8s.cni.cncf.io/v1",
            path: format!("/apis/{GROUP}/v1/network-attachment-definitions?"),
            listed_as: METADATA_LIST,
            watched_as: METADATA,
        }
    }

    fn of_node(kind: &'static str, version: &'static str, path: &str, node: &str) -> Objects {
        let node = utf8_percent_encode(node, NON_ALPHANUMERIC);
        Objects {
            kind,
            version,
            path: format!("{path}?fieldSelector=spec.nodeName%3D{node}&"),
            listed_as: JSON,
            watched_as: JSON,
        }
    }

    /// Returns the path of a request for the objects, with these query parameters.
    pub(super) fn path(&self, parameters: &str) -> String {
        format!("{}{parameters}", self.path)
    }
}

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects ({})", self.kind, self.version)
    }
}

/// Why the name of an object cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum ObjectNameError {
    /// The object's metadata is not JSON of the expected shape.
    Json(#[from] serde_json::Error),
    /// No object can have this name.
    Name(#[from] ObjectRefError),
}

/// The name and the resource version of an object. Both can be read even if the rest of the object
/// is invalid.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ObjectHead {
    metadata: HeadMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct HeadMetadata {
    namespace: String,
    name: String,
    resource_version: String,
}

impl ObjectHead {
    /// Returns the object's name.
    ///
    /// # Errors
    /// When no object can have that name.
    pub(super) fn object(&self) -> Result<ObjectRef, ObjectRefError> {
        let namespace = match self.metadata.namespace.as_str() {
            "" => NO_NAMESPACE,
            namespace => namespace,
        };
        ObjectRef::new(namespace, &self.metadata.name)
    }

    /// Returns the object's resource version.
    pub(super) fn version(self) -> String {
        self.metadata.resource_version
    }
}
