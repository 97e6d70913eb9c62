//! A pod of a manifest, as kubelet would report it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::cluster::manifests::{Manifest, Manifests};
use crate::cluster::{ClusterError, Container, Pod, PodAnnotations, PodName};

/// The annotation with the devices that kubelet would have allocated.
const DEVICES: &str = "jackfield.io/devices";

/// The pod of that name, where there is one.
pub(super) fn find(manifests: &Manifests, name: &PodName) -> Result<Option<Pod>, ClusterError> {
    let found: Option<&Manifest> = manifests.find("Pod", &name.namespace, &name.name);
    let Some(manifest) = found else {
        return Ok(None);
    };
    let none = BTreeMap::new();
    let annotations = manifest.metadata.annotations.as_ref().unwrap_or(&none);
    let devices = annotations
        .get(DEVICES)
        .filter(|text| !text.trim().is_empty());
    let devices = devices.map(|text| serde_json::from_str(text)).transpose();
    let devices = devices.map_err(|source| ClusterError::Devices {
        pod: name.to_string(),
        source,
    })?;
    Ok(Some(Pod {
        uid: manifest.metadata.uid.clone(),
        annotations: PodAnnotations::from_map(annotations),
        devices: devices.unwrap_or_default(),
        containers: containers(&manifest.body),
        has_claims: manifest
            .body
            .pointer("/spec/resourceClaims")
            .and_then(Value::as_array)
            .is_some_and(|claims| !claims.is_empty()),
    }))
}

/// The containers that request extended resources, those that run to completion first, in kubelet's
/// order. A name with `/` is an extended resource's. For these the limit counts, which is the request
/// too.
fn containers(pod: &Value) -> Vec<Container> {
    let lists = [("/spec/initContainers", true), ("/spec/containers", false)];
    let specs = lists.into_iter().flat_map(|(place, is_init)| {
        let specs = pod.pointer(place).and_then(Value::as_array);
        specs.into_iter().flatten().map(move |spec| (spec, is_init))
    });
    let mut containers = Vec::new();
    for (spec, is_init) in specs {
        let limits = ["/resources/requests", "/resources/limits"].map(|place| spec.pointer(place));
        let limits = limits.into_iter().flatten().filter_map(Value::as_object);
        let requests: BTreeMap<String, u64> = limits
            .flatten()
            .filter(|(resource, _)| resource.contains('/'))
            .filter_map(|(resource, count)| Some((resource.clone(), number(count)?)))
            .collect();
        if let Some(name) = spec.get("name").and_then(Value::as_str)
            && !requests.is_empty()
        {
            containers.push(Container {
                name: name.to_owned(),
                requests,
                ends_first: is_init && spec.get("restartPolicy") != Some(&json!("Always")),
            });
        }
    }
    containers
}

/// A quantity of an extended resource: a whole number, with or without quotes.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_in_kubelets_order_with_their_requests_for_devices() {
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
        let found: Vec<(String, u64, bool)> = containers(&pod)
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
        assert_eq!(containers(&serde_json::json!({"spec": null})), []);
    }
}
