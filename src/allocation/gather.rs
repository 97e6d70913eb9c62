//! Gathers the evidence on a pod's devices into an allocation.

use std::path::Path;
use std::time::{Duration, Instant};

use super::evidence::Evidence;
use super::{Allocation, AllocationRemark, Origin, Supply, numeric};
use crate::clock;
use crate::cluster::{Pod, PodName};
use crate::kubelet::PodDevices;

/// How long kubelet may take to record an allocation. Usually, kubelet writes the record before it
/// starts the sandbox. For pods that already exist when kubelet or the node restarts, the record
/// may come later.
const KUBELET_KNOWS_WITHIN: Duration = Duration::from_secs(2);
/// The first pause between two requests to kubelet. Each further pause is twice as long, up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// The sources of evidence on a pod's devices.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The pod's name and UID from the runtime. Kubelet uses this UID in its records, even for a
    /// static pod, whose UID in the API server is different.
    pub name: Option<&'a PodName>,
    /// The pod in the cluster.
    pub pod: Option<&'a Pod>,
    /// The answer of kubelet's pod-resources API about a pod of this name; `None` if there was no
    /// request.
    pub pod_resources: Option<&'a PodDevices>,
    /// The path of kubelet's checkpoint.
    pub checkpoint: &'a Path,
    /// Whether the pod's annotations may contain the key `deviceID`. If so, [`gather`] finds the
    /// pod's devices of all resources, because this key can name a device of any resource.
    pub everything: bool,
    /// The time until which `gather` may wait for kubelet. If it has passed, `gather` uses what
    /// kubelet has recorded so far.
    pub until: Instant,
    /// The deadline of the call. If it passes before `gather` has determined the devices of a
    /// resource, `gather` reports these devices as unknown.
    pub deadline: Instant,
}

impl Sources<'_> {
    pub(super) fn uid(&self) -> Option<&str> {
        let given = self.name.and_then(|name| name.uid.as_deref());
        given.or_else(|| self.pod.and_then(|pod| pod.uid.as_deref()))
    }
}

/// Finds the pod's devices of `resources`. If [`everything`](Sources::everything) is true, finds
/// the devices of all resources.
///
/// Devices in the annotation `jackfield.io/devices` of a manifest need no kubelet. All other
/// devices must be in kubelet's records. `gather` waits for kubelet in three cases: the checkpoint
/// lacks requested devices, the checkpoint is not valid JSON, or devices of the pod's claims are
/// unknown. `gather` waits at most two seconds. In this time it repeats the query of the
/// pod-resources API with `again`.
pub fn gather(
    sources: &Sources<'_>,
    resources: &[&str],
    again: &mut dyn FnMut() -> Option<PodDevices>,
) -> Allocation {
    let mut allocation = of_manifest(sources);
    let mut missing: Vec<&str> = resources.to_vec();
    if sources.everything {
        let containers = sources.pod.into_iter().flat_map(|pod| &pod.containers);
        missing.extend(containers.flat_map(|it| it.requests.keys().map(String::as_str)));
        missing.sort_unstable();
        missing.dedup();
    }
    missing.retain(|resource| allocation.supply(resource).is_none());
    if missing.is_empty() && !sources.everything {
        return allocation;
    }
    let until = sources.until.min(clock::now() + KUBELET_KNOWS_WITHIN);
    let mut answer = sources.pod_resources.cloned();
    let mut pause = FIRST_PAUSE;
    loop {
        let evidence = Evidence::of(sources, answer.as_ref());
        let verdicts: Vec<_> = missing
            .iter()
            .map(|resource| (*resource, evidence.judge(resource)))
            .collect();
        let is_final = verdicts.iter().all(|(_, verdict)| verdict.is_final);
        if is_final || clock::now() + pause >= until {
            for (resource, verdict) in verdicts {
                allocation.set(resource, verdict.supply);
                allocation.remarks.extend(evidence.remark(resource));
            }
            if sources.everything {
                for (resource, supply) in evidence.everything() {
                    if allocation.supply(&resource).is_none() {
                        allocation.set(&resource, supply);
                    }
                }
            }
            allocation.claimed = evidence.claimed();
            break;
        }
        drop(evidence);
        clock::sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
        answer = again().or(answer);
    }
    let failure = answer.and_then(|answer| answer.failure);
    let failure = failure.map(AllocationRemark::Failure);
    allocation.remarks.extend(failure);
    allocation
}

fn of_manifest(sources: &Sources<'_>) -> Allocation {
    let mut allocation = Allocation::default();
    let devices = sources.pod.map(|pod| &pod.devices);
    for (resource, ids) in devices.into_iter().flatten() {
        let mut ids = ids.clone();
        ids.sort_by(|left, right| numeric(left, right));
        ids.dedup();
        let origin = Origin::Manifest;
        allocation.set(resource, Supply::Devices { ids, origin });
    }
    allocation
}

#[cfg(test)]
mod tests;
