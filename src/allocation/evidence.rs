//! What is known of a pod's devices at one moment, and what follows from it for a resource.

mod claimed;
mod lacking;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};

use super::claims::Claims;
use super::gather::Sources;
use super::{Checkpoint, CheckpointError, Origin, Supply, canonical};
use crate::kubelet::{DynamicDevice, PodDevices};

/// All that somebody says.
pub(super) struct Evidence<'a> {
    sources: &'a Sources<'a>,
    /// What the pod-resources API says of a pod of this name.
    told: Option<&'a PodDevices>,
    /// What kubelet has on record of all pods, by UID.
    checkpoint: Result<Checkpoint, CheckpointError>,
    /// And of this one, resource by resource.
    own: BTreeMap<String, Vec<String>>,
    claims: OnceCell<Result<Claims, CheckpointError>>,
}

/// What follows.
pub(super) struct Verdict {
    pub(super) supply: Supply,
    /// Whether waiting cannot change it.
    pub(super) is_final: bool,
}

impl Verdict {
    fn certain(supply: Supply) -> Verdict {
        Verdict {
            supply,
            is_final: true,
        }
    }

    fn for_now(resource: &str, cause: &str) -> Verdict {
        Verdict {
            supply: unknown(resource, cause),
            is_final: false,
        }
    }
}

fn unknown(resource: &str, cause: &str) -> Supply {
    Supply::Unknown(format!("devices of resource {resource}: {cause}"))
}

impl<'a> Evidence<'a> {
    /// Reads kubelet's record beside what was told.
    pub(super) fn of(sources: &'a Sources<'a>, told: Option<&'a PodDevices>) -> Evidence<'a> {
        let checkpoint = Checkpoint::read(sources.checkpoint);
        let own = match (&checkpoint, sources.uid()) {
            (Ok(checkpoint), Some(uid)) => checkpoint.devices_of(uid, &order(sources, told)),
            _ => BTreeMap::new(),
        };
        Evidence {
            sources,
            told,
            checkpoint,
            own,
            claims: OnceCell::new(),
        }
    }

    /// What is known of one resource.
    pub(super) fn judge(&self, resource: &str) -> Verdict {
        let of_claims = match self.of_claims(|device| resource_of(device) == Some(resource)) {
            Ok(ids) => ids,
            Err(cause) => return Verdict::for_now(resource, &cause),
        };
        let of_plugins = self.own.get(resource).map_or(&[][..], Vec::as_slice);
        if !of_claims.is_empty() {
            let origin = if of_plugins.is_empty() {
                Origin::Dra
            } else {
                self.origin(resource, of_plugins)
            };
            let ids = of_plugins.iter().cloned().chain(of_claims).collect();
            return Verdict::certain(Supply::Devices { ids, origin });
        }
        let empty = Checkpoint::default();
        let checkpoint = match &self.checkpoint {
            Ok(checkpoint) => checkpoint,
            // kubelet writes its checkpoint with the first device of a device plugin.
            Err(CheckpointError::Missing { .. }) if self.is_told_of_none(resource) => &empty,
            Err(error) => return self.without_record(resource, error),
        };
        let asked = self.asked(resource);
        if !of_plugins.is_empty() && of_plugins.len() as u64 >= asked {
            return Verdict::certain(Supply::Devices {
                ids: of_plugins.to_vec(),
                origin: self.origin(resource, of_plugins),
            });
        }
        let is_device = checkpoint.is_registered(resource)
            || self.told_ids(resource).next().is_some()
            || self.told.and_then(|told| told.is_on_node(resource)) == Some(true);
        if !is_device && asked > 0 && self.is_told_of_the_node() {
            return Verdict::certain(Supply::NoDevices);
        }
        if let Some(cause) = self.claims_are_open() {
            return Verdict::for_now(resource, &cause);
        }
        if !is_device {
            return self.no_device(resource, asked);
        }
        if self.sources.uid().is_none() {
            let cause = "the pod's UID is not known; let the runtime pass K8S_POD_UID in CNI_ARGS";
            return Verdict::certain(unknown(resource, cause));
        }
        if asked == 0 {
            return Verdict::certain(Supply::Devices {
                ids: Vec::new(),
                origin: Origin::Checkpoint,
            });
        }
        Verdict::for_now(
            resource,
            &self.missing(resource, asked, of_plugins.len(), checkpoint),
        )
    }

    /// All devices of the pod by resource, whether or not a definition means them; those of claims
    /// that have no resource by their driver.
    pub(super) fn everything(&self) -> Vec<(String, Supply)> {
        let mut names: Vec<&str> = self.own.keys().map(String::as_str).collect();
        let dynamic = || self.told.into_iter().flat_map(PodDevices::dynamic);
        names.extend(dynamic().filter_map(resource_of));
        names.sort_unstable();
        names.dedup();
        let mut all: Vec<(String, Supply)> = names
            .into_iter()
            .map(|name| (name.to_owned(), self.judge(name).supply))
            .collect();
        for device in dynamic().filter(|device| resource_of(device).is_none()) {
            let of_driver = |it: &DynamicDevice| {
                resource_of(it).is_none() && it.identity.is_some() && it.driver == device.driver
            };
            let supply = match self.of_claims(of_driver) {
                Ok(ids) => Supply::Devices {
                    ids,
                    origin: Origin::Dra,
                },
                Err(cause) => unknown(&device.driver, &cause),
            };
            if all.iter().all(|(name, _)| *name != device.driver) {
                all.push((device.driver.clone(), supply));
            }
        }
        all
    }

    /// What is odd about the evidence on a resource whose devices are known, in one line.
    pub(super) fn remark(&self, resource: &str) -> Option<String> {
        let own = self.own.get(resource)?;
        let told: Vec<&str> = self.told_ids(resource).collect();
        let own: HashSet<Cow<'_, str>> = own.iter().map(|id| canonical(id)).collect();
        let is_foreign = |id: &&str| !own.contains(&canonical(id));
        told.iter().any(is_foreign).then(|| {
            format!(
                "kubelet's pod-resources names {} of resource {resource} for a pod of this name; \
                 kubelet's checkpoint {} knows the pod's UID, and counts",
                told.join(", "),
                self.sources.checkpoint.display()
            )
        })
    }

    fn told_ids<'b>(&'b self, resource: &'b str) -> impl Iterator<Item = &'b str> {
        self.told
            .into_iter()
            .flat_map(move |told| told.ids_of(resource))
    }

    /// How many devices of a resource the pod must have: what its lasting containers ask for
    /// together, since only what an earlier container had is handed on.
    fn asked(&self, resource: &str) -> u64 {
        let containers = self.sources.pod.map(|pod| pod.containers.as_slice());
        let of = |ends_first: bool| {
            let containers = containers.unwrap_or_default().iter();
            containers
                .filter(move |container| container.ends_first == ends_first)
                .filter_map(|container| container.requests.get(resource).copied())
        };
        of(false)
            .fold(0, u64::saturating_add)
            .max(of(true).max().unwrap_or(0))
    }

    fn origin(&self, resource: &str, own: &[String]) -> Origin {
        let told: HashSet<Cow<'_, str>> = self.told_ids(resource).map(canonical).collect();
        if own.iter().all(|id| told.contains(&canonical(id))) {
            Origin::PodResources
        } else {
            Origin::Checkpoint
        }
    }

    /// Whether kubelet, which knows the pod, has told that it has no device of the resource.
    fn is_told_of_none(&self, resource: &str) -> bool {
        self.is_told_of_the_node() && self.told_ids(resource).next().is_none()
    }

    /// Whether kubelet, which knows the pod, has told which resources have devices on this node.
    fn is_told_of_the_node(&self) -> bool {
        self.told
            .is_some_and(|told| told.is_known() && told.failure.is_none() && told.on_node.is_some())
    }
}

fn resource_of(device: &DynamicDevice) -> Option<&str> {
    device.identity.as_ref()?.resource.as_deref()
}

/// The containers in the order in which they get devices: as the pod has them, side-cars first;
/// last of all those that end before the others start, whose devices are handed on.
fn order<'a>(sources: &Sources<'a>, told: Option<&'a PodDevices>) -> Vec<&'a str> {
    let containers = sources
        .pod
        .map(|pod| pod.containers.as_slice())
        .unwrap_or_default();
    let named = |ends_first: bool| {
        let containers = containers.iter();
        containers
            .filter(move |container| container.ends_first == ends_first)
            .map(|container| container.name.as_str())
    };
    let told = told.into_iter().flat_map(|told| &told.containers);
    let told = told.map(|container| container.name.as_str());
    let mut order: Vec<&str> = named(false).collect();
    let own: HashSet<&str> = containers.iter().map(|it| it.name.as_str()).collect();
    let others: Vec<&str> = told
        .filter(|name| !own.contains(name))
        .chain(named(true))
        .collect();
    order.extend(others);
    order
}
