//! Counts a node's devices, and how many of them are in use.

use std::collections::{BTreeMap, BTreeSet};

use super::message::{AllocatableResponse, DevicesOfResource, ListResponse};

/// The number of devices of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The resource's name, as in a container's limits.
    pub resource: String,
    /// All devices.
    pub all: usize,
    /// The devices that kubelet has allocated to containers.
    pub in_use: usize,
}

/// Counts the devices of device plugins, and how many of them kubelet has allocated to containers.
pub(super) fn count(allocatable: AllocatableResponse, list: ListResponse) -> Vec<Usage> {
    let pods = list.pod_resources.into_iter();
    let containers = pods.flat_map(|pod| pod.containers);
    let all = by_resource(allocatable.devices);
    let in_use = by_resource(containers.flat_map(|container| container.devices));
    let usage = all.into_iter().map(|(resource, ids)| Usage {
        in_use: in_use.get(&resource).map_or(0, BTreeSet::len),
        all: ids.len(),
        resource,
    });
    usage.collect()
}

/// Returns the devices of each resource without duplicates. Several containers may list the same
/// device, because kubelet also allocates an init container's devices to later containers.
fn by_resource(
    pieces: impl IntoIterator<Item = DevicesOfResource>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut resources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for piece in pieces {
        let ids = resources.entry(piece.resource_name).or_default();
        ids.extend(piece.device_ids);
    }
    resources
}

#[cfg(test)]
mod tests {
    use super::super::message::{ContainerResources, Pod};
    use super::*;

    fn devices(resource: &str, ids: &[&str]) -> DevicesOfResource {
        DevicesOfResource {
            resource_name: resource.into(),
            device_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        }
    }

    #[test]
    fn a_device_in_several_containers_is_counted_once() {
        let container = |ids: &[&str]| ContainerResources {
            devices: ids.iter().map(|id| devices("a/vf", &[id])).collect(),
            ..ContainerResources::default()
        };
        let pod = Pod {
            containers: vec![container(&["1", "2"]), container(&["2"])],
            ..Pod::default()
        };
        let list = ListResponse {
            pod_resources: vec![pod],
        };
        let allocatable = AllocatableResponse {
            devices: vec![
                devices("a/vf", &["1", "2"]),
                devices("a/vf", &["3"]),
                devices("b/gpu", &["x"]),
            ],
        };
        let usage = |resource: &str, all, in_use| Usage {
            resource: resource.into(),
            all,
            in_use,
        };
        assert_eq!(
            count(allocatable, list),
            [usage("a/vf", 3, 2), usage("b/gpu", 1, 0)]
        );
    }
}
