//! A pod's devices, as kubelet tells of them.

use serde::{Deserialize, Serialize};

use super::KubeletError;
use super::message;
use crate::bounded;

/// What kubelet says of one pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodDevices {
    /// Its containers, in the order of its specification, side-cars first; none where kubelet does
    /// not know the pod, or does not know it yet.
    #[serde(deserialize_with = "bounded::list::<_, _, 256>")]
    pub containers: Vec<ContainerDevices>,
    /// The resources that have devices on this node, of device plugins and of DRA drivers; `None`
    /// where nobody was asked.
    pub on_node: Option<Vec<String>>,
    /// Why kubelet or the cluster could not be asked for all of it, in one line.
    pub failure: Option<String>,
}

/// The devices of one container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerDevices {
    /// Its name.
    pub name: String,
    /// Those of device plugins, each resource once.
    #[serde(deserialize_with = "bounded::list::<_, _, 256>")]
    pub resources: Vec<Resource>,
    /// Those of DRA drivers.
    #[serde(deserialize_with = "bounded::list::<_, _, 1024>")]
    pub dynamic: Vec<DynamicDevice>,
}

/// The devices of one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resource {
    /// Its name, as in a container's limits.
    pub name: String,
    /// Their identifiers, in no order that would last: kubelet's changes from call to call.
    #[serde(deserialize_with = "bounded::list::<_, _, 4096>")]
    pub ids: Vec<String>,
}

/// A device that a DRA driver prepared for a claim (resource.k8s.io/v1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DynamicDevice {
    /// The claim, `namespace/name`.
    pub claim: String,
    /// The driver.
    pub driver: String,
    /// The driver's pool.
    pub pool: String,
    /// The device's name in the pool, which is not what it is on the node.
    pub device: String,
    /// What its ResourceSlice says that it is on the node; `None` where no slice has it.
    pub identity: Option<Identity>,
}

/// What a device of a ResourceSlice is on the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// The resource by which definitions mean it: its attribute `k8s.cni.cncf.io/resourceName`.
    pub resource: Option<String>,
    /// Its identifier: its attribute `k8s.cni.cncf.io/deviceID`, else
    /// `resource.kubernetes.io/pciBusID`.
    pub id: Option<String>,
}

impl PodDevices {
    /// Kubelet could not be asked.
    pub fn unknown(error: &KubeletError) -> PodDevices {
        PodDevices {
            failure: Some(error.to_string()),
            ..PodDevices::default()
        }
    }

    /// Whether kubelet knows the pod: only then it means something that a device is not there.
    pub fn is_known(&self) -> bool {
        !self.containers.is_empty()
    }

    /// The devices of a resource that device plugins serve, container by container.
    pub fn ids_of<'a>(&'a self, resource: &'a str) -> impl Iterator<Item = &'a str> {
        let resources = self.containers.iter().flat_map(|it| &it.resources);
        resources
            .filter(move |it| it.name == resource)
            .flat_map(|it| it.ids.iter().map(String::as_str))
    }

    /// All devices of DRA drivers, container by container.
    pub fn dynamic(&self) -> impl Iterator<Item = &DynamicDevice> {
        self.containers.iter().flat_map(|it| &it.dynamic)
    }

    /// The same, to be identified.
    pub fn dynamic_mut(&mut self) -> impl Iterator<Item = &mut DynamicDevice> {
        self.containers.iter_mut().flat_map(|it| &mut it.dynamic)
    }

    /// Whether a resource has devices on this node, as far as anybody was asked.
    pub fn is_on_node(&self, resource: &str) -> Option<bool> {
        let names = self.on_node.as_ref()?;
        Some(names.iter().any(|name| name == resource))
    }

    /// Whether something of `resource` was allocated to the pod.
    pub(super) fn has(&self, resource: &str) -> bool {
        self.ids_of(resource).next().is_some()
    }
}

impl From<message::PodResources> for PodDevices {
    fn from(pod: message::PodResources) -> PodDevices {
        PodDevices {
            containers: pod.containers.into_iter().map(Into::into).collect(),
            ..PodDevices::default()
        }
    }
}

impl From<message::ContainerResources> for ContainerDevices {
    fn from(container: message::ContainerResources) -> ContainerDevices {
        let mut resources: Vec<Resource> = Vec::new();
        // One resource comes in several pieces: one for each NUMA node, or for each device.
        for piece in container.devices {
            match resources
                .iter_mut()
                .find(|it| it.name == piece.resource_name)
            {
                Some(known) => known.ids.extend(piece.device_ids),
                None => resources.push(Resource {
                    name: piece.resource_name,
                    ids: piece.device_ids,
                }),
            }
        }
        let claims = container.dynamic_resources.into_iter();
        ContainerDevices {
            name: container.name,
            resources,
            dynamic: claims.flat_map(prepared).collect(),
        }
    }
}

fn prepared(claim: message::DynamicResource) -> impl Iterator<Item = DynamicDevice> {
    let name = format!("{}/{}", claim.claim_namespace, claim.claim_name);
    claim
        .claim_resources
        .into_iter()
        .map(move |device| DynamicDevice {
            claim: name.clone(),
            driver: device.driver_name,
            pool: device.pool_name,
            device: device.device_name,
            identity: None,
        })
}
