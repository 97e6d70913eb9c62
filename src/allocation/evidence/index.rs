//! A pod's devices by resource, so that judging many resources does not search an answer of a thousand
//! devices for each.

use std::collections::{BTreeMap, HashMap};

use super::Sources;
use crate::kubelet::{DynamicDevice, PodDevices};

/// A device of a claim, with the index of its container.
pub(super) type ContainerDevice<'a> = (usize, &'a DynamicDevice);

/// The devices and requests of one pod.
#[derive(Default)]
pub(super) struct Index<'a> {
    /// The devices of plugins that pod-resources names, by resource, container by container.
    of_plugins: HashMap<&'a str, Vec<&'a str>>,
    /// The devices of claims by resource, container by container.
    pub(super) by_resource: BTreeMap<&'a str, Vec<ContainerDevice<'a>>>,
    /// The devices of claims whose slices name no resource, by driver.
    pub(super) by_driver: BTreeMap<&'a str, Vec<ContainerDevice<'a>>>,
    requests: HashMap<&'a str, DeviceRequests>,
}

/// How many devices of a resource the containers request.
#[derive(Default)]
struct DeviceRequests {
    /// All containers that last together.
    by_lasting: u64,
    /// The largest request of a container that ends before those start.
    by_one_that_ends_first: u64,
}

impl<'a> Index<'a> {
    pub(super) fn of(sources: &Sources<'a>, pod_resources: Option<&'a PodDevices>) -> Index<'a> {
        let mut index = Index::default();
        let containers = pod_resources.into_iter().flat_map(|it| &it.containers);
        for (place, container) in containers.enumerate() {
            for resource in &container.resources {
                let ids = index.of_plugins.entry(&resource.name).or_default();
                ids.extend(resource.ids.iter().map(String::as_str));
            }
            for device in &container.dynamic {
                let Some(identity) = &device.identity else {
                    continue;
                };
                let devices = match identity.resource.as_deref() {
                    Some(resource) => index.by_resource.entry(resource).or_default(),
                    None => index.by_driver.entry(&device.driver).or_default(),
                };
                devices.push((place, device));
            }
        }
        for container in sources.pod.into_iter().flat_map(|pod| &pod.containers) {
            for (resource, count) in &container.requests {
                let requests = index.requests.entry(resource).or_default();
                if container.ends_first {
                    requests.by_one_that_ends_first = requests.by_one_that_ends_first.max(*count);
                } else {
                    requests.by_lasting = requests.by_lasting.saturating_add(*count);
                }
            }
        }
        index
    }

    /// The devices of a resource of device plugins, as pod-resources names them.
    pub(super) fn of_plugins(&self, resource: &str) -> &[&'a str] {
        self.of_plugins.get(resource).map_or(&[], Vec::as_slice)
    }

    /// How many devices of a resource the pod must have: all that its lasting containers request, since
    /// kubelet hands on only what an earlier container had.
    pub(super) fn requested(&self, resource: &str) -> u64 {
        let requests = self.requests.get(resource);
        requests.map_or(0, |it| it.by_lasting.max(it.by_one_that_ends_first))
    }
}
