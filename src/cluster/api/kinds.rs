//! The kinds of objects that are listed and watched.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::server::{GROUP, JSON};
use crate::npwg::ObjectRef;

/// Names are listed and watched without the objects' content.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// Stands for the namespace of objects of the cluster as a whole, which are in none.
const NO_NAMESPACE: &str = "cluster";

/// Objects of one kind: all of the cluster, or those of one node.
#[derive(Debug, Clone)]
pub struct Objects {
    /// Their kind.
    pub kind: &'static str,
    version: &'static str,
    path: String,
    pub(super) listed_as: &'static str,
    pub(super) watched_as: &'static str,
}

impl Objects {
    /// The pods that are bound to a node.
    pub fn pods(node: &str) -> Objects {
        Objects::of_node("Pod", "v1", "/api/v1/pods", node)
    }

    /// The ResourceSlices of a node.
    pub fn slices(node: &str) -> Objects {
        let path = "/apis/resource.k8s.io/v1/resourceslices";
        Objects::of_node("ResourceSlice", "resource.k8s.io/v1", path, node)
    }

    /// The definitions of the cluster, without their content.
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

    /// A request for them, with more parameters.
    pub(super) fn path(&self, parameters: &str) -> String {
        format!("{}{parameters}", self.path)
    }
}

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects ({})", self.kind, self.version)
    }
}

/// Which object it is, and of which version: read by itself, whatever else is wrong with it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    metadata: Names,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Names {
    namespace: String,
    name: String,
    resource_version: String,
}

impl Named {
    /// The object's name.
    ///
    /// # Errors
    /// Why there can be no object of that name.
    pub(super) fn object(&self) -> Result<ObjectRef, String> {
        let Names {
            namespace, name, ..
        } = &self.metadata;
        let namespace = match namespace.as_str() {
            "" => NO_NAMESPACE,
            namespace => namespace,
        };
        ObjectRef::new(namespace, name).map_err(|cause| cause.to_string())
    }

    /// The object's version.
    pub(super) fn version(self) -> String {
        self.metadata.resource_version
    }
}
