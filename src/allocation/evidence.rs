//! What is known of a pod's devices at one moment, and what follows from it for a resource.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::claims::Claims;
use super::gather::Sources;
use super::{Checkpoint, CheckpointError, Origin, Supply, numeric, same};
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
        let checkpoint = match &self.checkpoint {
            Ok(checkpoint) => checkpoint,
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
        let is_foreign = |id: &&str| !own.iter().any(|own| same(own, id));
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
        let is_told = |id: &String| self.told_ids(resource).any(|told| same(told, id));
        if own.iter().all(is_told) {
            Origin::PodResources
        } else {
            Origin::Checkpoint
        }
    }

    /// The pod's devices of claims, of those that are `wanted`, container by container.
    fn of_claims(&self, wanted: impl Fn(&DynamicDevice) -> bool) -> Result<Vec<String>, String> {
        let mut all: Vec<String> = Vec::new();
        for container in self.told.into_iter().flat_map(|told| &told.containers) {
            let mut ids = Vec::new();
            for device in container.dynamic.iter().filter(|device| wanted(device)) {
                ids.push(self.claimed(device)?);
            }
            ids.sort_by(|left, right| numeric(left, right));
            for id in ids {
                // Containers may share a claim.
                if !all.contains(&id) {
                    all.push(id);
                }
            }
        }
        Ok(all)
    }

    /// The identifier of a device that was prepared for a claim of this very pod.
    fn claimed(&self, device: &DynamicDevice) -> Result<String, String> {
        let named = format!(
            "device {} of pool {} of driver {}",
            device.device, device.pool, device.driver
        );
        let id = device
            .identity
            .as_ref()
            .and_then(|identity| identity.id.clone());
        let id = id.ok_or_else(|| {
            format!(
                "{named} has neither attribute k8s.cni.cncf.io/deviceID nor \
                 resource.kubernetes.io/pciBusID in its ResourceSlice; let the driver publish one"
            )
        })?;
        let path = Claims::path(self.sources.checkpoint);
        let claims = self.claims.get_or_init(|| Claims::read(&path));
        let claims = claims.as_ref().map_err(|error| {
            format!(
                "{named}: whether claim {} is this pod's: {error}",
                device.claim
            )
        })?;
        match self.sources.uid() {
            Some(uid) if claims.has(uid, device) => Ok(id),
            Some(uid) => Err(format!(
                "{named}: {} does not have it for claim {} of this pod, UID {uid}; \
                 recreate the pod",
                path.display(),
                device.claim
            )),
            None => Err(
                "the pod's UID is not known; let the runtime pass K8S_POD_UID in CNI_ARGS"
                    .to_owned(),
            ),
        }
    }

    /// Why it is not known yet what the pod's claims have brought it, if it has any.
    fn claims_are_open(&self) -> Option<String> {
        if !self.sources.pod.is_some_and(|pod| pod.has_claims) {
            return None;
        }
        let Some(told) = self.told else {
            return Some(
                "the pod has resource claims, and kubelet was not asked about them".into(),
            );
        };
        let unidentified = told.dynamic().find(|device| device.identity.is_none());
        let failure = told.failure.as_ref();
        if let Some(device) = unidentified {
            let cause = failure.map_or_else(String::new, |failure| format!(" ({failure})"));
            return Some(format!(
                "no ResourceSlice of this node has device {} of pool {} of driver {}{cause}; \
                 let the driver publish it, with the attribute k8s.cni.cncf.io/resourceName",
                device.device, device.pool, device.driver
            ));
        }
        if told.dynamic().next().is_some() {
            return None;
        }
        let cause = failure.map_or(
            "it names no device of theirs; look into its log",
            |failure| failure.as_str(),
        );
        Some(format!(
            "the pod has resource claims, and kubelet was asked about them: {cause}"
        ))
    }

    /// Whether kubelet, which knows the pod, has told which resources have devices on this node.
    fn is_told_of_the_node(&self) -> bool {
        self.told
            .is_some_and(|told| told.is_known() && told.failure.is_none() && told.on_node.is_some())
    }

    /// A resource that neither kubelet nor a driver has devices of.
    fn no_device(&self, resource: &str, asked: u64) -> Verdict {
        let dynamic: Vec<String> = self
            .told
            .into_iter()
            .flat_map(PodDevices::dynamic)
            .map(|device| format!("{} of driver {}", device.device, device.driver))
            .collect();
        if asked == 0 && !dynamic.is_empty() {
            let cause = format!(
                "none of the devices of the pod's claims ({}) has it as its attribute \
                 k8s.cni.cncf.io/resourceName; correct the definition's annotation or the driver",
                dynamic.join(", ")
            );
            return Verdict::certain(unknown(resource, &cause));
        }
        let is_certain = self
            .told
            .is_some_and(|told| told.is_known() && told.failure.is_none());
        if asked == 0 || is_certain {
            return Verdict::certain(Supply::NoDevices);
        }
        let cause = match self.told.and_then(|told| told.failure.as_ref()) {
            Some(failure) => format!("whether it has any: {failure}"),
            None => "whether it has any: kubelet does not know the pod; look into its log".into(),
        };
        Verdict::for_now(resource, &cause)
    }

    /// Without kubelet's own record nothing says whose a device is.
    fn without_record(&self, resource: &str, error: &CheckpointError) -> Verdict {
        let is_embedded = self.sources.pod.is_some_and(|pod| !pod.devices.is_empty());
        if is_embedded && matches!(error, CheckpointError::Missing { .. }) {
            return Verdict::certain(Supply::Devices {
                ids: Vec::new(),
                origin: Origin::Manifest,
            });
        }
        let told: Vec<&str> = self.told_ids(resource).collect();
        let cause = if told.is_empty() {
            error.to_string()
        } else {
            format!(
                "pod-resources names {}, but only the checkpoint says of which pod: {error}",
                told.join(", ")
            )
        };
        Verdict {
            supply: unknown(resource, &cause),
            is_final: !matches!(error, CheckpointError::Torn { .. }),
        }
    }

    fn missing(&self, resource: &str, asked: u64, found: usize, checkpoint: &Checkpoint) -> String {
        let file = self.sources.checkpoint.display();
        let uid = self.sources.uid().unwrap_or_default();
        let told: Vec<&str> = self.told_ids(resource).collect();
        let told = match self.told {
            _ if !told.is_empty() => {
                let holder = told.iter().find_map(|id| checkpoint.holders(id).next());
                let of = holder.map_or_else(String::new, |uid| format!(" of UID {uid}"));
                format!(
                    "pod-resources names {}, which are those of another pod{of}",
                    told.join(", ")
                )
            }
            Some(told) => match &told.failure {
                Some(failure) => failure.clone(),
                None if told.is_known() => "pod-resources names none".to_owned(),
                None => "pod-resources does not know the pod".to_owned(),
            },
            None => "pod-resources was not asked".to_owned(),
        };
        format!(
            "kubelet's checkpoint {file} has {found} of {asked} for this pod, UID {uid} ({told}); \
             recreate the pod, or restart kubelet"
        )
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
    let others: Vec<&str> = told
        .filter(|name| !containers.iter().any(|container| container.name == *name))
        .chain(named(true))
        .collect();
    order.extend(others);
    order
}
