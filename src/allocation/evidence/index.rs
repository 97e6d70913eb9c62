//! An index of a pod's devices by resource. With the index, a look-up need not search the whole
//! answer of the pod-resources API.

use std::collections::{BTreeMap, HashMap};

use super::Sources;
use crate::kubelet::{DynamicDevice, PodDevices};

/// A device of a ResourceClaim (DRA), and the position of the device's container in the answer of
/// pod-resources.
pub(super) type ContainerDevice<'a> = (usize, &'a DynamicDevice);

/// The devices and requests of one pod.
#[derive(Default)]
pub(super) struct Index<'a> {
    /// For each resource, the devices of device plugins, in the order of pod-resources.
    of_plugins: HashMap<&'a str, Vec<&'a str>>,
    /// For each resource, the devices of ResourceClaims, in the order of the containers. A device's
    /// ResourceSlice names the resource in the attribute `k8s.cni.cncf.io/resourceName`.
    pub(super) by_resource: BTreeMap<&'a str, Vec<ContainerDevice<'a>>>,
    /// For each DRA driver, the devices of ResourceClaims, in the order of the containers. Contains
    /// only the devices for which the ResourceSlice names no resource.
    pub(super) by_driver: BTreeMap<&'a str, Vec<ContainerDevice<'a>>>,
    requests: HashMap<&'a str, DeviceRequests>,
}

/// How many devices of a resource the containers request.
#[derive(Default)]
struct DeviceRequests {
    /// The sum of the requests of all sidecars and app containers.
    by_lasting: u64,
    /// The largest request of an init container that runs to completion.
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

    pub(super) fn of_plugins(&self, resource: &str) -> &[&'a str] {
        self.of_plugins.get(resource).map_or(&[], Vec::as_slice)
    }

    /// Returns the minimum number of devices of a resource that the pod must have: the larger of
    /// the two numbers in `DeviceRequests`. Their sum would be too high, because kubelet reuses the
    /// devices of an init container that has ended.
    pub(super) fn requested(&self, resource: &str) -> u64 {
        let requests = self.requests.get(resource);
        requests.map_or(0, |it| it.by_lasting.max(it.by_one_that_ends_first))
    }
}
