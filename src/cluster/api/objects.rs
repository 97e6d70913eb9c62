//! Reads pods in JSON, from the API server or from a manifest. Keeps only the few fields that
//! Jackfield uses.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::cluster::identity::Identity;
use crate::cluster::{Container, Pod, PodAnnotations};
use crate::npwg::STATUS_ANNOTATION;

/// The size limit for a pod in a cache of many pods, in bytes of memory ([`PodView::length`]). The
/// cache keeps a larger pod without its annotations, status and containers.
const KEPT_TEXT: usize = 16 << 10;
/// The memory that a container needs in addition to its name, in bytes. Even a container with one
/// request needs this much, because its map of requests allocates room for several.
const CONTAINER: usize = 512;
/// The memory that a request needs in addition to the name of its resource, in bytes.
const REQUEST: usize = 64;

/// A pod as JSON, with the fields of [`PodView`]. Other fields are skipped and need not be
/// valid.
#[derive(Debug, Clone, Default, Deserialize)]
struct PodObject {
    #[serde(default)]
    metadata: PodMetadata,
    spec: Option<PodSpec>,
    status: Option<PodStatus>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct PodMetadata {
    uid: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct PodStatus {
    phase: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<String>,
    containers: Option<Vec<ContainerSpec>>,
    init_containers: Option<Vec<ContainerSpec>>,
    resource_claims: Option<Vec<IgnoredAny>>,
    host_network: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerSpec {
    #[serde(default)]
    name: String,
    restart_policy: Option<String>,
    resources: Option<Resources>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Resources {
    requests: Option<BTreeMap<String, Value>>,
    /// The limits of extended resources equal the requests. Jackfield reads the limits too, because
    /// a manifest may omit the requests.
    limits: Option<BTreeMap<String, Value>>,
}

/// The fields of a pod that Jackfield uses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "PodObject")]
pub struct PodView {
    /// The pod's UID. For a mirror pod, also the UID of its static pod.
    pub identity: Identity,
    /// The node that the pod is bound to.
    pub node: Option<String>,
    /// The annotations that select networks.
    pub annotations: PodAnnotations,
    /// The current network-status, with the entries of Jackfield and of other components.
    pub status: Option<String>,
    /// Whether the pod has annotations. If not, the patch of the network-status has to create
    /// `metadata.annotations`.
    pub has_annotations: bool,
    /// The containers that request extended resources, init containers first.
    pub containers: Vec<Container>,
    /// Whether the pod has resource claims (DRA).
    pub has_claims: bool,
    /// Whether the pod uses the host's network or has ended. No runtime attaches such a pod.
    pub is_unattached: bool,
    /// Whether annotations, status and containers are missing, because the pod is too large for the
    /// cache.
    pub is_partial: bool,
}

impl From<PodObject> for PodView {
    fn from(object: PodObject) -> PodView {
        let annotations = object.metadata.annotations.unwrap_or_default();
        let spec = object.spec.unwrap_or_default();
        let phase = object.status.and_then(|status| status.phase);
        let has_ended = matches!(phase.as_deref(), Some("Succeeded" | "Failed"));
        let init = spec.init_containers.into_iter().flatten();
        let init = init.map(|spec| container(spec, true));
        let main = spec.containers.into_iter().flatten();
        let main = main.map(|spec| container(spec, false));
        PodView {
            identity: Identity::new(&object.metadata.uid.unwrap_or_default(), &annotations),
            node: spec.node_name.filter(|node| !node.is_empty()),
            annotations: PodAnnotations::from_map(&annotations),
            status: annotations.get(STATUS_ANNOTATION).cloned(),
            has_annotations: !annotations.is_empty(),
            containers: init.chain(main).flatten().collect(),
            has_claims: spec
                .resource_claims
                .is_some_and(|claims| !claims.is_empty()),
            is_unattached: has_ended || spec.host_network == Some(true),
            is_partial: false,
        }
    }
}

impl PodView {
    /// Returns the part of the pod that a cache of many pods keeps; `None` for a pod that no
    /// runtime attaches.
    pub fn to_be_kept(&self) -> Option<PodView> {
        let kept = || match self.is_long() {
            true => self.identity_alone(),
            false => self.clone(),
        };
        (!self.is_unattached).then(kept)
    }

    /// Whether the pod exceeds the size limit for a cache of many pods.
    pub fn is_long(&self) -> bool {
        self.length() > KEPT_TEXT
    }

    /// Returns the pod without its annotations, status and containers.
    pub fn identity_alone(&self) -> PodView {
        PodView {
            identity: self.identity.clone(),
            node: self.node.clone(),
            has_annotations: self.has_annotations,
            has_claims: self.has_claims,
            is_unattached: self.is_unattached,
            is_partial: true,
            ..PodView::default()
        }
    }

    /// Returns how many bytes of memory the pod needs in addition to `PodView` itself.
    pub fn length(&self) -> usize {
        let texts = [
            &self.annotations.networks,
            &self.annotations.default_network,
            &self.status,
            &self.node,
            &self.identity.mirrors,
        ];
        let texts = texts.into_iter().flatten().map(String::len);
        let requests = self.containers.iter().flat_map(|container| {
            let requests = container.requests.keys().map(|name| name.len() + REQUEST);
            requests.chain([container.name.len() + CONTAINER])
        });
        texts.chain(requests).sum::<usize>() + self.identity.uid.len()
    }

    /// Returns the pod for an answer to the plugin. `asked` is the UID that the runtime passed. The
    /// answer repeats this UID, or has the UID from the cluster if the runtime passed none.
    pub fn to_pod(&self, asked: Option<&str>) -> Pod {
        Pod {
            uid: Some(asked.unwrap_or(&self.identity.uid).to_owned()),
            annotations: self.annotations.clone(),
            devices: BTreeMap::new(),
            containers: self.containers.clone(),
            has_claims: self.has_claims,
        }
    }
}

fn container(spec: ContainerSpec, is_init: bool) -> Option<Container> {
    let ends_first = is_init && spec.restart_policy.as_deref() != Some("Always");
    let Resources { requests, limits } = spec.resources?;
    let requests: BTreeMap<String, u64> = requests
        .into_iter()
        .chain(limits)
        .flatten()
        .filter(|(name, _)| is_extended(name))
        .filter_map(|(name, quantity)| {
            let count = match quantity {
                Value::String(text) => text.parse().ok()?,
                number => number.as_u64()?,
            };
            (count > 0).then_some((name, count))
        })
        .collect();
    (!requests.is_empty()).then_some(Container {
        name: spec.name,
        requests,
        ends_first,
    })
}

/// Whether a resource is an extended resource: its name has a domain that does not end in
/// `kubernetes.io`.
fn is_extended(resource: &str) -> bool {
    resource
        .split_once('/')
        .is_some_and(|(domain, _)| !domain.is_empty() && !domain.ends_with("kubernetes.io"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_required_fields_of_a_pod_are_kept() {
        let object: PodObject = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "a", "uid": "u", "annotations": {
                "k8s.v1.cni.cncf.io/networks": "n", "k8s.v1.cni.cncf.io/network-status": "[]",
                "secret": "x"}},
            "spec": {"nodeName": "node-a", "resourceClaims": [{"name": "nic"}], "initContainers": [
                {"name": "first", "resources": {"requests": {"intel.com/sriov": "1"}}},
                {"name": "beside", "restartPolicy": "Always",
                 "resources": {"requests": {"intel.com/sriov": "1"}}},
            ], "containers": [
                {"name": "app", "env": [{"name": "PASSWORD", "value": "x"}],
                 "resources": {"requests": {"cpu": "1", "intel.com/sriov": "2",
                                            "kubernetes.io/batch": "1", "x.io/half": "500m"}}},
                {"name": "plain", "resources": null}]},
        }))
        .unwrap();
        let view = PodView::from(object);
        assert_eq!(view.identity.uid, "u");
        assert_eq!(view.node.as_deref(), Some("node-a"));
        assert_eq!(view.annotations.networks.as_deref(), Some("n"));
        assert_eq!(view.status.as_deref(), Some("[]"));
        let container = |name: &str, count, ends_first| Container {
            name: name.into(),
            requests: BTreeMap::from([("intel.com/sriov".into(), count)]),
            ends_first,
        };
        assert_eq!(
            view.containers,
            [
                container("first", 1, true),
                container("beside", 1, false),
                container("app", 2, false)
            ]
        );
        assert!(view.has_claims);
        assert!(!format!("{view:?}").contains("PASSWORD"));
    }

    #[test]
    fn a_large_pod_is_kept_without_annotations_and_containers() {
        let view = PodView {
            node: Some("node-a".into()),
            annotations: PodAnnotations {
                networks: Some("n".repeat(KEPT_TEXT - 6)),
                default_network: None,
            },
            ..PodView::default()
        };
        assert_eq!(view.to_be_kept(), Some(view.clone()));
        let longer = PodView {
            status: Some("[]".into()),
            ..view.clone()
        };
        let container = Container {
            name: "a".into(),
            requests: BTreeMap::from([("e.co/r".into(), 1)]),
            ends_first: false,
        };
        let wider = PodView {
            containers: vec![container; KEPT_TEXT / CONTAINER],
            ..PodView::default()
        };
        for pod in [longer, wider] {
            let kept = pod.to_be_kept().unwrap();
            assert!(kept.is_partial && kept.annotations.networks.is_none());
            assert!(kept.containers.is_empty() && kept.node == pod.node);
        }
    }

    #[test]
    fn a_pod_is_read_even_if_unused_fields_are_invalid() {
        let deep = format!("{}1{}", r#"{"f:a":"#.repeat(300), "}".repeat(300));
        let text = format!(
            r#"{{"metadata":{{"uid":"u","creationTimestamp":7,"managedFields":[{{"time":"9999-12-31T23:59:59Z","fieldsV1":{deep}}}]}},"spec":{{"nodeName":"a","x":{deep}}}}}"#
        );
        let object: PodObject = serde_json::from_str(&text).unwrap();
        assert_eq!(PodView::from(object).identity.uid, "u");
    }

    #[test]
    fn a_pod_with_null_fields_is_read() {
        let object: PodObject =
            serde_json::from_value(json!({"metadata": {}, "spec": null, "status": null})).unwrap();
        assert_eq!(PodView::from(object), PodView::default());
    }

    #[test]
    fn ended_pods_and_pods_on_the_host_network_are_not_attached() {
        for (spec, status, is_unattached) in [
            (json!({"hostNetwork": true}), json!({}), true),
            (json!({"hostNetwork": null}), json!({"phase": null}), false),
            (json!({}), json!({"phase": "Running"}), false),
            (json!({}), json!({"phase": "Succeeded"}), true),
            (json!({}), json!({"phase": "Failed"}), true),
        ] {
            let object = json!({"metadata": {}, "spec": spec, "status": status});
            let view = PodView::from(serde_json::from_value::<PodObject>(object).unwrap());
            assert_eq!(view.is_unattached, is_unattached, "{spec} {status}");
            assert_eq!(view.to_be_kept().is_none(), is_unattached);
        }
    }

    #[test]
    fn containers_are_listed_in_the_order_of_kubelet() {
        let containers =
            |pod| PodView::from(serde_json::from_value::<PodObject>(pod).unwrap()).containers;
        let pod = serde_json::json!({ "spec": {
            "containers": [
                { "name": "b", "resources": { "requests": { "cpu": "1", "intel.com/vf": "2" } } },
                { "name": "a", "resources": { "limits": { "intel.com/vf": 1, "x.com/y": "z" } } },
                { "name": "none" },
            ],
            "initContainers": [
                { "name": "i", "resources": { "limits": { "intel.com/vf": "3" } } },
                { "name": "s", "restartPolicy": "Always",
                  "resources": { "limits": { "intel.com/vf": 1 } } },
            ],
        }});
        let found: Vec<(String, u64, bool)> = containers(pod)
            .into_iter()
            .map(|it| (it.name, it.requests["intel.com/vf"], it.ends_first))
            .collect();
        let expected = [
            ("i", 3, true),
            ("s", 1, false),
            ("b", 2, false),
            ("a", 1, false),
        ];
        assert_eq!(
            found,
            expected.map(|(name, count, ends_first)| (name.to_owned(), count, ends_first))
        );
        assert_eq!(containers(serde_json::json!({"spec": null})), []);
    }
}
