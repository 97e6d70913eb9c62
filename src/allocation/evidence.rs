//! Judges the evidence on a pod's devices: what kubelet and the cluster say about the devices at
//! one moment. A verdict says what the evidence shows about the pod's devices of one resource.

mod claim_devices;
mod index;
mod unknown;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};

use index::Index;

use super::claims::Claims;
use super::gather::Sources;
use super::{
    AllocationRemark, Checkpoint, CheckpointCause, CheckpointError, Origin, Supply, UnknownCause,
    canonical,
};
use crate::clock;
use crate::kubelet::PodDevices;

/// All evidence on the devices of one pod.
pub(super) struct Evidence<'a> {
    sources: &'a Sources<'a>,
    /// The answer of the pod-resources API. This answer may be about another pod of the same name,
    /// because the API identifies pods by name.
    pod_resources: Option<&'a PodDevices>,
    /// kubelet's checkpoint, which has the devices of all pods by UID.
    checkpoint: Result<Checkpoint, CheckpointError>,
    /// The devices of this pod in the checkpoint, by resource.
    own: BTreeMap<String, Vec<String>>,
    /// kubelet's record of claims, read on first use.
    claims: OnceCell<Result<Claims, CheckpointError>>,
    index: Index<'a>,
}

/// The verdict on one resource.
pub(super) struct Verdict {
    pub(super) supply: Supply,
    /// Whether the supply is final: a later verdict on the resource would be the same.
    pub(super) is_final: bool,
}

impl Verdict {
    fn certain(supply: Supply) -> Verdict {
        Verdict {
            supply,
            is_final: true,
        }
    }

    fn devices(ids: Vec<String>, origin: Origin) -> Verdict {
        Verdict::certain(Supply::Devices { ids, origin })
    }

    /// The devices are unknown, and waiting cannot change that.
    fn never(cause: UnknownCause) -> Verdict {
        Verdict::certain(Supply::Unknown(Box::new(cause)))
    }

    /// The devices are unknown, but waiting may change that.
    fn not_yet(cause: UnknownCause) -> Verdict {
        Verdict {
            is_final: false,
            ..Verdict::never(cause)
        }
    }
}

impl<'a> Evidence<'a> {
    /// Reads kubelet's checkpoint and combines it with the answer of the pod-resources API.
    pub(super) fn of(
        sources: &'a Sources<'a>,
        pod_resources: Option<&'a PodDevices>,
    ) -> Evidence<'a> {
        let checkpoint = Checkpoint::read(sources.checkpoint);
        let own = match (&checkpoint, sources.uid()) {
            (Ok(checkpoint), Some(uid)) => {
                checkpoint.devices_of(uid, &order(sources, pod_resources))
            }
            _ => BTreeMap::new(),
        };
        Evidence {
            sources,
            pod_resources,
            checkpoint,
            own,
            claims: OnceCell::new(),
            index: Index::of(sources, pod_resources),
        }
    }

    /// Judges one resource.
    pub(super) fn judge(&self, resource: &str) -> Verdict {
        if clock::now() >= self.sources.deadline {
            return Verdict::never(UnknownCause::NoTime);
        }
        let devices = self.index.by_resource.get(resource);
        let of_claims = match self.of_claims(devices.map_or(&[], Vec::as_slice)) {
            Ok(ids) => ids,
            Err(cause) => return Verdict::not_yet(cause),
        };
        let of_plugins = self.own.get(resource).map_or(&[][..], Vec::as_slice);
        if !of_claims.is_empty() {
            let origin = if of_plugins.is_empty() {
                Origin::Dra
            } else {
                self.origin(resource, of_plugins)
            };
            let ids = of_plugins.iter().cloned().chain(of_claims).collect();
            return Verdict::devices(ids, origin);
        }
        // Whether kubelet's answer is complete, contains the pod, and lists no device of the
        // resource for the pod.
        let has_none = self.kubelet_knows_the_node() && self.index.of_plugins(resource).is_empty();
        let empty = Checkpoint::default();
        let checkpoint = match &self.checkpoint {
            Ok(checkpoint) => checkpoint,
            // kubelet writes no checkpoint before a device plugin reports its first device.
            Err(error) if error.cause == CheckpointCause::Missing && has_none => &empty,
            Err(error) => return self.without_record(resource, error),
        };
        let requested = self.index.requested(resource);
        if !of_plugins.is_empty() && of_plugins.len() as u64 >= requested {
            return Verdict::devices(of_plugins.to_vec(), self.origin(resource, of_plugins));
        }
        let is_device = checkpoint.is_registered(resource)
            || !self.index.of_plugins(resource).is_empty()
            || self.pod_resources.and_then(|it| it.is_on_node(resource)) == Some(true);
        if !is_device && requested > 0 && self.kubelet_knows_the_node() {
            return Verdict::certain(Supply::NoDevices);
        }
        if let Some(cause) = self.open_claims() {
            return Verdict::not_yet(cause);
        }
        if !is_device {
            return self.no_device(requested);
        }
        if self.sources.uid().is_none() {
            return Verdict::never(UnknownCause::NoUid);
        }
        if requested == 0 {
            return Verdict::devices(Vec::new(), Origin::Checkpoint);
        }
        let missing = self.missing(resource, requested, of_plugins.len(), checkpoint);
        Verdict::not_yet(missing)
    }

    /// Maps each resource to the pod's devices, even if no definition names the resource. If a
    /// device of a ResourceClaim has no resource, the key is the name of the device's driver.
    pub(super) fn everything(&self) -> BTreeMap<String, Supply> {
        let of_plugins = self.own.keys().map(String::as_str);
        let names = of_plugins.chain(self.index.by_resource.keys().copied());
        let mut all: BTreeMap<String, Supply> = names
            .map(|name| (name.to_owned(), self.judge(name).supply))
            .collect();
        for (driver, devices) in &self.index.by_driver {
            let supply = || match self.of_claims(devices) {
                Ok(ids) => Supply::Devices {
                    ids,
                    origin: Origin::Dra,
                },
                Err(cause) => Supply::Unknown(Box::new(cause)),
            };
            all.entry((*driver).to_owned()).or_insert_with(supply);
        }
        all
    }

    /// Returns a remark if pod-resources names a device of `resource` that the checkpoint does not
    /// list for this pod. The answer of pod-resources may then be about another pod. If the
    /// checkpoint lists no device of `resource` for this pod, there is nothing to compare, and the
    /// result is `None`.
    pub(super) fn remark(&self, resource: &str) -> Option<AllocationRemark> {
        let own = self.own.get(resource)?.iter();
        let own: HashSet<Cow<'_, str>> = own.map(|id| canonical(id)).collect();
        let ids = self.index.of_plugins(resource);
        let mut foreign = ids.iter().filter(|id| !own.contains(&canonical(id)));
        foreign.next().map(|_| AllocationRemark::OtherPod {
            resource: resource.to_owned(),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            file: self.sources.checkpoint.to_owned(),
        })
    }

    fn origin(&self, resource: &str, own: &[String]) -> Origin {
        let ids = self.index.of_plugins(resource).iter();
        let ids: HashSet<Cow<'_, str>> = ids.map(|id| canonical(id)).collect();
        if own.iter().all(|id| ids.contains(&canonical(id))) {
            Origin::PodResources
        } else {
            Origin::Checkpoint
        }
    }

    /// Whether kubelet knows the pod and has reported, without a failure, which resources have
    /// devices on this node.
    fn kubelet_knows_the_node(&self) -> bool {
        self.pod_resources
            .is_some_and(|it| it.is_known() && it.failure.is_none() && it.on_node.is_some())
    }
}

/// The order of the containers, and thus of their devices: sidecars, app containers, containers
/// that only kubelet names, and init containers that run to completion.
///
/// kubelet may reuse a device of such an init container for a sidecar or an app container.
/// [`Checkpoint::devices_of`] then lists the device only for the container that comes first in this
/// order: the sidecar or app container, which still uses the device.
fn order<'a>(sources: &Sources<'a>, pod_resources: Option<&'a PodDevices>) -> Vec<&'a str> {
    let own = || sources.pod.into_iter().flat_map(|pod| &pod.containers);
    let names: HashSet<&str> = own().map(|it| it.name.as_str()).collect();
    let (first, lasting): (Vec<_>, Vec<_>) = own().partition(|container| container.ends_first);
    let of_kubelet = pod_resources.into_iter().flat_map(|it| &it.containers);
    let others = of_kubelet.map(|container| container.name.as_str());
    let others = others.filter(|name| !names.contains(name));
    let lasting = lasting.into_iter().map(|container| container.name.as_str());
    let first = first.into_iter().map(|container| container.name.as_str());
    lasting.chain(others).chain(first).collect()
}
