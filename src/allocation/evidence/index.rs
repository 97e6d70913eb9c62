//! What was told of a pod's devices, by what is looked for: whoever tells may name a thousand, and each
//! resource is judged on its own.

use std::collections::{BTreeMap, HashMap};

use super::Sources;
use crate::kubelet::{DynamicDevice, PodDevices};

/// A device of a claim, with the place of its container.
pub(super) type Placed<'a> = (usize, &'a DynamicDevice);

/// The devices of one pod and what it asks for.
#[derive(Default)]
pub(super) struct Index<'a> {
    /// The devices of plugins by resource, container by container.
    told: HashMap<&'a str, Vec<&'a str>>,
    /// Those of claims by resource, container by container.
    pub(super) by_resource: BTreeMap<&'a str, Vec<Placed<'a>>>,
    /// Those of claims that have no resource, by driver.
    pub(super) by_driver: BTreeMap<&'a str, Vec<Placed<'a>>>,
    asked: HashMap<&'a str, Asked>,
}

/// How many devices of a resource the containers ask for.
#[derive(Default)]
struct Asked {
    by_lasting: u64,
    by_one_that_ends_first: u64,
}

impl<'a> Index<'a> {
    pub(super) fn of(sources: &Sources<'a>, told: Option<&'a PodDevices>) -> Index<'a> {
        let mut index = Index::default();
        let containers = told.into_iter().flat_map(|told| &told.containers);
        for (place, container) in containers.enumerate() {
            for resource in &container.resources {
                let ids = index.told.entry(&resource.name).or_default();
                ids.extend(resource.ids.iter().map(String::as_str));
            }
            for device in &container.dynamic {
                let resource = device.identity.as_ref().map(|it| it.resource.as_deref());
                let devices = match resource.flatten() {
                    Some(resource) => index.by_resource.entry(resource).or_default(),
                    None => index.by_driver.entry(&device.driver).or_default(),
                };
                devices.push((place, device));
            }
        }
        for container in sources.pod.into_iter().flat_map(|pod| &pod.containers) {
            for (resource, count) in &container.requests {
                let asked = index.asked.entry(resource).or_default();
                if container.ends_first {
                    asked.by_one_that_ends_first = asked.by_one_that_ends_first.max(*count);
                } else {
                    asked.by_lasting = asked.by_lasting.saturating_add(*count);
                }
            }
        }
        index
    }

    /// The devices of a resource that device plugins serve.
    pub(super) fn told(&self, resource: &str) -> &[&'a str] {
        self.told.get(resource).map_or(&[], Vec::as_slice)
    }

    /// How many devices of a resource the pod must have: what its lasting containers ask for
    /// together, since only what an earlier container had is handed on.
    pub(super) fn asked(&self, resource: &str) -> u64 {
        let asked = self.asked.get(resource);
        asked.map_or(0, |it| it.by_lasting.max(it.by_one_that_ends_first))
    }
}
