//! Where an allocation comes from.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Allocation, Checkpoint, CheckpointError, Supply, numeric};
use crate::cluster::{Pod, PodName};

/// How long kubelet may take to write down what it has allocated. It does so before it starts the
/// sandbox, but for pods that it finds again after a reboot.
const KUBELET_WRITES_WITHIN: Duration = Duration::from_secs(2);
/// How often it is looked.
const PAUSE: Duration = Duration::from_millis(50);

/// Who may know a pod's devices.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The pod as the runtime names it: its UID there is kubelet's own, also of a static pod.
    pub name: Option<&'a PodName>,
    /// The pod as the cluster knows it.
    pub pod: Option<&'a Pod>,
    /// kubelet's checkpoint.
    pub checkpoint: &'a Path,
    /// Whether the pod names a device by itself, so that all of its devices matter.
    pub everything: bool,
    /// Until when it may be waited.
    pub until: Instant,
}

impl Sources<'_> {
    fn uid(&self) -> Option<&str> {
        let given = self.name.and_then(|name| name.uid.as_deref());
        given.or_else(|| self.pod.and_then(|pod| pod.uid.as_deref()))
    }

    /// Whether a container of the pod asks for more of a resource than `found`.
    fn misses(&self, resource: &str, found: usize) -> bool {
        let containers = self.pod.map(|pod| pod.containers.as_slice());
        containers.unwrap_or_default().iter().any(|container| {
            let asked = container.requests.get(resource).copied();
            asked.is_some_and(|asked| asked > found as u64)
        })
    }
}

/// Finds out which devices the pod was given of each of `resources`, and all that the cluster
/// itself knows of.
///
/// kubelet's checkpoint is read only where the cluster does not know, and waited for only while it
/// lacks what a container of the pod asks for.
pub fn gather(sources: &Sources<'_>, resources: &[&str]) -> Allocation {
    let mut allocation = Allocation::default();
    let known = sources.pod.map(|pod| &pod.devices);
    for (resource, ids) in known.into_iter().flatten() {
        let mut ids = ids.clone();
        ids.sort_by(|left, right| numeric(left, right));
        ids.dedup();
        allocation.set(resource, Supply::Devices(ids));
    }
    let missing: Vec<&str> = resources
        .iter()
        .copied()
        .filter(|resource| allocation.supply(resource).is_none())
        .collect();
    if !missing.is_empty() || sources.everything {
        from_checkpoint(sources, &missing, &mut allocation);
    }
    allocation
}

fn from_checkpoint(sources: &Sources<'_>, resources: &[&str], allocation: &mut Allocation) {
    let until = sources.until.min(Instant::now() + KUBELET_WRITES_WITHIN);
    loop {
        let read = Checkpoint::read(sources.checkpoint);
        let found = read.as_ref().map(|checkpoint| own(checkpoint, sources));
        let complete = found.as_ref().is_ok_and(|found| {
            resources.iter().all(|resource| {
                let count = found.get(*resource).map_or(0, Vec::len);
                !sources.misses(resource, count)
            })
        });
        if complete || read.is_err() || Instant::now() >= until {
            return conclude(sources, resources, read, allocation);
        }
        std::thread::sleep(PAUSE);
    }
}

fn own(checkpoint: &Checkpoint, sources: &Sources<'_>) -> BTreeMap<String, Vec<String>> {
    let order = sources.pod.map(|pod| pod.containers.as_slice());
    sources.uid().map_or_else(BTreeMap::new, |uid| {
        checkpoint.devices_of(uid, order.unwrap_or_default())
    })
}

fn conclude(
    sources: &Sources<'_>,
    resources: &[&str],
    read: Result<Checkpoint, CheckpointError>,
    allocation: &mut Allocation,
) {
    let checkpoint = match read {
        Ok(checkpoint) => checkpoint,
        Err(CheckpointError::Missing { .. }) if is_embedded(sources) => {
            for resource in resources {
                allocation.set(resource, Supply::Devices(Vec::new()));
            }
            return;
        }
        Err(error) => {
            for resource in resources {
                let cause = format!("devices of resource {resource}: {error}");
                allocation.set(resource, Supply::Unknown(cause));
            }
            return;
        }
    };
    for (resource, ids) in own(&checkpoint, sources) {
        if allocation.supply(&resource).is_none() {
            allocation.set(&resource, Supply::Devices(ids));
        }
    }
    for resource in resources {
        if allocation.supply(resource).is_some() {
            continue;
        }
        let supply = if !checkpoint.is_registered(resource) {
            Supply::NoDevices
        } else if sources.uid().is_none() {
            Supply::Unknown(format!(
                "devices of resource {resource}: the pod's UID is not known; \
                 let the runtime pass K8S_POD_UID in CNI_ARGS"
            ))
        } else {
            Supply::Devices(Vec::new())
        };
        allocation.set(resource, supply);
    }
}

/// Whether the cluster itself says which devices the pod has, and no kubelet need be there.
fn is_embedded(sources: &Sources<'_>) -> bool {
    sources.pod.is_some_and(|pod| !pod.devices.is_empty())
}
