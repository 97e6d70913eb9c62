//! What is known of a pod's devices at one moment, and what follows from it for a resource.

mod claimed;
mod index;
mod lacking;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use index::Index;

use super::claims::Claims;
use super::gather::Sources;
use super::{Checkpoint, CheckpointError, Origin, Supply, canonical};
use crate::bounded::named;
use crate::kubelet::PodDevices;

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
    index: Index<'a>,
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
            index: Index::of(sources, told),
        }
    }

    /// What is known of one resource.
    pub(super) fn judge(&self, resource: &str) -> Verdict {
        if Instant::now() >= self.sources.deadline {
            let cause = "the time of the call was over before they were looked at; \
                         raise deadlines.add, or let the pod use fewer resources";
            return Verdict::certain(unknown(resource, cause));
        }
        let devices = self.index.by_resource.get(resource);
        let of_claims = match self.of_claims(devices.map_or(&[], Vec::as_slice)) {
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
        let asked = self.index.asked(resource);
        if !of_plugins.is_empty() && of_plugins.len() as u64 >= asked {
            return Verdict::certain(Supply::Devices {
                ids: of_plugins.to_vec(),
                origin: self.origin(resource, of_plugins),
            });
        }
        let is_device = checkpoint.is_registered(resource)
            || !self.index.told(resource).is_empty()
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
    pub(super) fn everything(&self) -> BTreeMap<String, Supply> {
        let of_plugins = self.own.keys().map(String::as_str);
        let names = of_plugins.chain(self.index.by_resource.keys().copied());
        let mut all: BTreeMap<String, Supply> = names
            .map(|name| (name.to_owned(), self.judge(name).supply))
            .collect();
        for (driver, devices) in &self.index.by_driver {
            let identified: Vec<_> = devices
                .iter()
                .filter(|(_, device)| device.identity.is_some())
                .copied()
                .collect();
            let supply = || match self.of_claims(&identified) {
                Ok(ids) => Supply::Devices {
                    ids,
                    origin: Origin::Dra,
                },
                Err(cause) => unknown(driver, &cause),
            };
            all.entry((*driver).to_owned()).or_insert_with(supply);
        }
        all
    }

    /// What is odd about the evidence on a resource whose devices are known, in one line.
    pub(super) fn remark(&self, resource: &str) -> Option<String> {
        let own = self.own.get(resource)?;
        let told = self.index.told(resource);
        let own: HashSet<Cow<'_, str>> = own.iter().map(|id| canonical(id)).collect();
        let is_foreign = |id: &&str| !own.contains(&canonical(id));
        told.iter().any(is_foreign).then(|| {
            format!(
                "kubelet's pod-resources names {} of resource {resource} for a pod of this name; \
                 kubelet's checkpoint {} knows the pod's UID, and counts",
                named(told),
                self.sources.checkpoint.display()
            )
        })
    }

    fn origin(&self, resource: &str, own: &[String]) -> Origin {
        let told: HashSet<Cow<'_, str>> = self
            .index
            .told(resource)
            .iter()
            .map(|id| canonical(id))
            .collect();
        if own.iter().all(|id| told.contains(&canonical(id))) {
            Origin::PodResources
        } else {
            Origin::Checkpoint
        }
    }

    /// Whether kubelet, which knows the pod, has told that it has no device of the resource.
    fn is_told_of_none(&self, resource: &str) -> bool {
        self.is_told_of_the_node() && self.index.told(resource).is_empty()
    }

    /// Whether kubelet, which knows the pod, has told which resources have devices on this node.
    fn is_told_of_the_node(&self) -> bool {
        self.told
            .is_some_and(|told| told.is_known() && told.failure.is_none() && told.on_node.is_some())
    }
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
