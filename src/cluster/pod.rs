//! A pod: its name, its annotations, and its containers with their requests.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

use crate::bounded;
use crate::npwg::{
    DEFAULT_NETWORK_ANNOTATION, Dialect, NETWORKS_ANNOTATION, NetworksDigest, ObjectRef, Selection,
};

/// The name of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodName {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The pod's UID, if it is known: `K8S_POD_UID` from the runtime, or `metadata.uid`.
    pub uid: Option<String>,
}

impl PodName {
    /// Returns the name of the pod `object`, with this UID.
    pub fn of(object: &ObjectRef, uid: Option<String>) -> PodName {
        PodName {
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            uid,
        }
    }
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The annotations that select networks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodAnnotations {
    /// [`NETWORKS_ANNOTATION`].
    pub networks: Option<String>,
    /// [`DEFAULT_NETWORK_ANNOTATION`].
    pub default_network: Option<String>,
}

impl PodAnnotations {
    /// Looks up the two annotations in `all`, the annotations of a pod. A blank annotation counts
    /// as missing.
    pub fn from_map(all: &BTreeMap<String, String>) -> PodAnnotations {
        let get = |key: &str| {
            all.get(key)
                .filter(|value| !value.trim().is_empty())
                .cloned()
        };
        PodAnnotations {
            networks: get(NETWORKS_ANNOTATION),
            default_network: get(DEFAULT_NETWORK_ANNOTATION),
        }
    }

    /// Returns the digest of [`NETWORKS_ANNOTATION`]. A missing annotation has the digest of an
    /// empty text.
    pub fn digest(&self) -> NetworksDigest {
        NetworksDigest::of(self.networks.as_deref().unwrap_or_default())
    }

    /// Returns the annotations for the plugin's [`Question`](super::Question) to the agent. A
    /// message to the agent has a size limit, and JSON needs up to six bytes for one control
    /// character. So this function replaces each control character with a space. A valid annotation
    /// contains control characters only as white space, so it still selects the same networks.
    pub fn to_ask_about(&self) -> PodAnnotations {
        let spaced = |text: &String| text.replace(|it: char| it < ' ', " ");
        PodAnnotations {
            networks: self.networks.as_ref().map(spaced),
            default_network: self.default_network.as_ref().map(spaced),
        }
    }

    /// Returns the networks that the annotations select. If the annotations replace the cluster
    /// network, the replacement comes first. Skips an invalid annotation, because the plan reports
    /// the error.
    fn selections(
        &self,
        namespace: &str,
        default_namespace: &str,
        dialect: Dialect,
    ) -> impl Iterator<Item = Selection> {
        let replaced = self.default_network.as_ref().and_then(|text| {
            Selection::parse_default_network(text, default_namespace, dialect).ok()
        });
        let selected = self
            .networks
            .as_ref()
            .and_then(|text| Selection::parse_list(text, namespace, dialect).ok());
        replaced.into_iter().chain(selected.into_iter().flatten())
    }

    /// Returns every definition that the annotations name, without duplicates.
    pub fn references(
        &self,
        namespace: &str,
        multus_namespace: &str,
        dialect: Dialect,
    ) -> Vec<ObjectRef> {
        let mut known = HashSet::new();
        self.selections(namespace, multus_namespace, dialect)
            .map(|selection| selection.network)
            .filter(|network| known.insert(network.clone()))
            .collect()
    }

    /// Whether an annotation contains the text `deviceID`, ignoring case. Does not check whether
    /// the text is a key.
    pub fn may_name_devices(&self) -> bool {
        let texts = [&self.networks, &self.default_network];
        let mut texts = texts.into_iter().flatten();
        texts.any(|text| text.to_ascii_lowercase().contains("deviceid"))
    }

    /// Returns the name of every IPAMClaim in the annotations. The IPAMClaims of a pod are in the
    /// pod's namespace.
    pub fn claims(&self, namespace: &str, dialect: Dialect) -> Vec<String> {
        let mut known = HashSet::new();
        // The second argument affects only the names of networks, which are not used here.
        self.selections(namespace, namespace, dialect)
            .filter_map(|selection| selection.ipam_claim)
            .filter(|claim| known.insert(claim.clone()))
            .collect()
    }
}

/// A pod in an [`Answer`](super::Answer) of the cluster to the plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// The UID that kubelet uses: `K8S_POD_UID` if the runtime passes it, otherwise `metadata.uid`.
    /// The two differ for a static pod, because `metadata.uid` belongs to the pod's mirror pod. A
    /// pod from a folder of manifests always has its `metadata.uid` here.
    #[serde(deserialize_with = "bounded::optional_text::<_, LONGEST_NAME>")]
    pub uid: Option<String>,
    /// The annotations that select networks.
    pub annotations: PodAnnotations,
    /// The pod's devices by resource name, from the annotation `jackfield.io/devices`. Only a
    /// folder of manifests sets this field, as a substitute for kubelet's allocation. The plugin
    /// does not read this field from an agent's answer.
    #[serde(skip_deserializing)]
    pub devices: BTreeMap<String, Vec<String>>,
    /// The containers that request extended resources, init containers first.
    #[serde(deserialize_with = "containers")]
    pub containers: Vec<Container>,
    /// Whether the pod has ResourceClaims (DRA), for devices of any kind.
    pub has_claims: bool,
}

/// How many requests for devices and how many containers a pod may have in an answer. A request is
/// for one resource in one container. If a pod exceeds a limit, the agent drops the requests that
/// the pod's networks do not need. If the pod still exceeds a limit, the agent refuses the
/// question. The plugin does not rely on the agent: it drops any excess when it reads an answer.
pub(super) const MOST_REQUESTS: usize = 256;
pub(super) const MOST_CONTAINERS: usize = 256;
/// The longest name of a container or a resource, and the longest UID of a pod, in bytes.
const LONGEST_NAME: usize = 253;

fn containers<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Container>, D::Error> {
    let mut left = MOST_REQUESTS;
    bounded::first::<_, _, MOST_CONTAINERS>(input, |container: &mut Container| {
        while container.requests.len() > left {
            container.requests.pop_last();
        }
        left -= container.requests.len();
    })
}

/// A container to which kubelet may have allocated devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The container's name. Kubelet's checkpoint lists the container's devices under this name.
    #[serde(deserialize_with = "bounded::text::<_, LONGEST_NAME>")]
    pub name: String,
    /// How many devices the container requests, by resource name.
    #[serde(deserialize_with = "bounded::counts::<_, MOST_REQUESTS, LONGEST_NAME>")]
    pub requests: BTreeMap<String, u64>,
    /// Whether the container runs to completion before the next container starts. If so, kubelet
    /// reuses the container's devices for later containers. False for a sidecar.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_first: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_requests_of_all_containers_share_one_limit() {
        let requests: BTreeMap<String, u64> = (0..200).map(|it| (format!("{it:03}"), 1)).collect();
        let container = serde_json::json!({"name": "c".repeat(300), "requests": requests});
        let pod = serde_json::json!({"uid": "u".repeat(300), "containers": vec![container; 300],
            "devices": {"r": ["0000:01:10.0"]}});
        let pod: Pod = serde_json::from_str(&pod.to_string()).unwrap();
        assert_eq!(pod.uid.map(|uid| uid.len()), Some(253));
        assert_eq!(pod.containers.len(), 256);
        assert_eq!(pod.containers[0].name.len(), 253);
        let requests = pod.containers.iter().map(|it| it.requests.len());
        assert_eq!(requests.sum::<usize>(), 256);
        assert!(pod.devices.is_empty());
    }

    #[test]
    fn claims_are_found_in_both_annotations() {
        let annotations = PodAnnotations {
            networks: Some(r#"[{"name":"a","ipam-claim-reference":"one"},{"name":"b"}]"#.into()),
            default_network: Some(r#"[{"name":"dn","ipam-claim-reference":"two"}]"#.into()),
        };
        let claims = annotations.claims("demo", Dialect::V1_3);
        assert_eq!(claims, ["two", "one"]);
    }
}
