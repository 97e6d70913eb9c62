//! A pod's devices, as kubelet reports them.

use serde::{Deserialize, Deserializer, Serialize};

use super::KubeletError;
use super::message;
use crate::bounded;

/// The maximum number of devices of a pod, counted separately for device plugins and DRA drivers.
/// Jackfield drops further devices when it reads the agent's answer. Dropped devices of device
/// plugins can still be used, because Jackfield also reads them from kubelet's checkpoint. Dropped
/// devices of DRA drivers cannot be used.
const MOST_DEVICES: usize = 1024;
/// The maximum length of the name of a resource, a driver, a pool or a device, in bytes.
const LONGEST_NAME: usize = 253;
/// The maximum length of a claim's name with its namespace, in bytes.
const LONGEST_CLAIM: usize = 63 + 1 + LONGEST_NAME;
/// The maximum length of [`PodDevices::failure`], in bytes.
const LONGEST_FAILURE: usize = 1 << 10;

/// The devices of one pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodDevices {
    /// The pod's sidecars, then its app containers, each in the order of the pod's specification.
    /// Empty while kubelet does not know the pod.
    #[serde(deserialize_with = "containers")]
    pub containers: Vec<ContainerDevices>,
    /// The resources that have devices on this node. Kubelet lists the resources of device plugins.
    /// Jackfield adds the resources of DRA drivers when it reads the ResourceSlices. `None` if
    /// Jackfield did not ask, kubelet did not answer, or kubelet does not offer
    /// `GetAllocatableResources`.
    #[serde(deserialize_with = "bounded::optional_texts::<_, 1024, LONGEST_NAME>")]
    pub on_node: Option<Vec<String>>,
    /// Why the answer of kubelet or the cluster is incomplete, in one line.
    #[serde(deserialize_with = "bounded::optional_text::<_, LONGEST_FAILURE>")]
    pub failure: Option<String>,
}

/// The devices of one container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerDevices {
    /// The container's name.
    #[serde(deserialize_with = "bounded::text::<_, LONGEST_NAME>")]
    pub name: String,
    /// The devices of device plugins, one entry per resource.
    #[serde(deserialize_with = "resources")]
    pub resources: Vec<Resource>,
    /// The devices of DRA drivers.
    #[serde(deserialize_with = "dynamic")]
    pub dynamic: Vec<DynamicDevice>,
}

/// The devices of one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resource {
    /// The resource's name, as in a container's limits.
    #[serde(deserialize_with = "bounded::text::<_, LONGEST_NAME>")]
    pub name: String,
    /// The identifiers of the devices. Their order differs from call to call.
    #[serde(deserialize_with = "bounded::texts::<_, MOST_DEVICES, LONGEST_NAME>")]
    pub ids: Vec<String>,
}

/// A device that a DRA driver prepared for a claim (resource.k8s.io/v1).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DynamicDevice {
    /// The claim, `namespace/name`.
    #[serde(deserialize_with = "bounded::text::<_, LONGEST_CLAIM>")]
    pub claim: String,
    /// The driver.
    #[serde(deserialize_with = "bounded::text::<_, LONGEST_NAME>")]
    pub driver: String,
    /// The driver's pool.
    #[serde(deserialize_with = "bounded::text::<_, LONGEST_NAME>")]
    pub pool: String,
    /// The device's name in the pool, not its identifier on the node.
    #[serde(deserialize_with = "bounded::text::<_, LONGEST_NAME>")]
    pub device: String,
    /// The device's attributes in its ResourceSlice; `None` if no slice has the device, or if
    /// Jackfield has not read the slices.
    pub identity: Option<SliceIdentity>,
}

/// The attributes of a ResourceSlice that identify a device on the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SliceIdentity {
    /// The name that definitions use for the resource: the attribute
    /// `k8s.cni.cncf.io/resourceName`.
    #[serde(deserialize_with = "bounded::optional_text::<_, LONGEST_NAME>")]
    pub resource: Option<String>,
    /// The device's identifier: the attribute `k8s.cni.cncf.io/deviceID`, or else
    /// `resource.kubernetes.io/pciBusID`.
    #[serde(deserialize_with = "bounded::optional_text::<_, LONGEST_NAME>")]
    pub id: Option<String>,
}

fn containers<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<ContainerDevices>, D::Error> {
    let (mut ids, mut dynamic) = (MOST_DEVICES, MOST_DEVICES);
    bounded::first::<_, _, 256>(input, |container: &mut ContainerDevices| {
        for resource in &mut container.resources {
            keep(&mut resource.ids, &mut ids);
        }
        let resources = &mut container.resources;
        resources.retain(|resource| !resource.ids.is_empty());
        resources.shrink_to_fit();
        keep(&mut container.dynamic, &mut dynamic);
    })
}

fn resources<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Resource>, D::Error> {
    let mut room = MOST_DEVICES;
    bounded::first::<_, _, 256>(input, |resource: &mut Resource| {
        keep(&mut resource.ids, &mut room);
    })
}

fn dynamic<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<DynamicDevice>, D::Error> {
    bounded::first::<_, _, MOST_DEVICES>(input, |_| ())
}

/// Truncates `list` to at most `room` devices. Then subtracts the new length of `list` from `room`.
fn keep<T>(list: &mut Vec<T>, room: &mut usize) {
    list.truncate(*room);
    list.shrink_to_fit();
    *room -= list.len();
}

impl PodDevices {
    /// Returns a value without devices. Its [`failure`](Self::failure) is the text of `error`.
    pub fn unknown(error: &KubeletError) -> PodDevices {
        PodDevices {
            failure: Some(error.to_string()),
            ..PodDevices::default()
        }
    }

    /// Returns whether kubelet's answer contains the pod. A pod that is not in the answer may still
    /// have devices.
    pub fn is_known(&self) -> bool {
        !self.containers.is_empty()
    }

    /// Returns the identifiers of the pod's devices of `resource`, container by container. Omits
    /// devices of DRA drivers.
    pub fn ids_of<'a>(&'a self, resource: &'a str) -> impl Iterator<Item = &'a str> {
        let resources = self.containers.iter().flat_map(|it| &it.resources);
        let entries = resources.filter(move |entry| entry.name == resource);
        entries.flat_map(|entry| entry.ids.iter().map(String::as_str))
    }

    /// Returns all devices of DRA drivers, container by container.
    pub fn dynamic(&self) -> impl Iterator<Item = &DynamicDevice> {
        self.containers.iter().flat_map(|it| &it.dynamic)
    }

    /// Returns all devices of DRA drivers, so that the caller can fill in their identities.
    pub fn dynamic_mut(&mut self) -> impl Iterator<Item = &mut DynamicDevice> {
        self.containers.iter_mut().flat_map(|it| &mut it.dynamic)
    }

    /// Returns whether a resource has devices on this node. `None` if [`Self::on_node`] is `None`.
    pub fn is_on_node(&self, resource: &str) -> Option<bool> {
        Some(self.on_node.as_ref()?.iter().any(|name| name == resource))
    }
}

impl From<message::Pod> for PodDevices {
    fn from(pod: message::Pod) -> PodDevices {
        PodDevices {
            containers: pod.containers.into_iter().map(Into::into).collect(),
            ..PodDevices::default()
        }
    }
}

impl From<message::ContainerResources> for ContainerDevices {
    fn from(container: message::ContainerResources) -> ContainerDevices {
        let mut resources: Vec<Resource> = Vec::new();
        // Kubelet may return several entries for one resource, for example one for each device.
        for piece in container.devices {
            let mut known = resources.iter_mut();
            match known.find(|entry| entry.name == piece.resource_name) {
                Some(entry) => entry.ids.extend(piece.device_ids),
                None => resources.push(Resource {
                    name: piece.resource_name,
                    ids: piece.device_ids,
                }),
            }
        }
        resources.retain(|resource| !resource.ids.is_empty());
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
    let devices = claim.claim_resources.into_iter();
    devices.map(move |device| DynamicDevice {
        claim: name.clone(),
        driver: device.driver_name,
        pool: device.pool_name,
        device: device.device_name,
        identity: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_device_limit_covers_all_containers_together() {
        let long = "x".repeat(1300);
        let dynamic = json!({"claim": long, "driver": long, "pool": long, "device": long,
            "identity": {"resource": long, "id": long}});
        let container = json!({"name": "c",
            "resources": [{"name": "r", "ids": vec!["1"; 700]}, {"name": long, "ids": [long]}],
            "dynamic": vec![dynamic; 700]});
        let text = json!({"containers": vec![container; 4], "failure": "x".repeat(5000),
            "on_node": vec![long; 3000]})
        .to_string();
        let devices: PodDevices = serde_json::from_str(&text).unwrap();
        assert_eq!(devices.ids_of("r").count(), 700 + 323);
        assert_eq!(devices.dynamic().count(), 1024);
        assert_eq!(devices.containers.len(), 4, "all containers stay");
        assert!(devices.containers[3].resources.is_empty());
        assert_eq!(devices.on_node.map(|names| names.len()), Some(1024));
        assert_eq!(devices.failure.map(|cause| cause.len()), Some(1024));
        let one = &devices.containers[0].dynamic[0];
        let identity = one.identity.as_ref().unwrap();
        for text in [
            &one.driver,
            &one.pool,
            &one.device,
            identity.id.as_ref().unwrap(),
        ] {
            assert_eq!(text.len(), 253);
        }
        assert_eq!(one.claim.len(), 317);
    }
}
