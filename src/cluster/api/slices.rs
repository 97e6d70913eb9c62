//! Reads ResourceSlices (resource.k8s.io/v1). They identify the devices of DRA drivers on the node.
//!
//! Kubelet reports a device's driver, pool and name. Only the driver and the scheduler understand
//! the device's name. The attribute `k8s.cni.cncf.io/deviceID` of a device in a slice is the
//! device's identifier on the node. If this attribute is missing, `resource.kubernetes.io/pciBusID`
//! is the identifier. The attribute `k8s.cni.cncf.io/resourceName` corresponds to the annotation
//! `k8s.v1.cni.cncf.io/resourceName` of definitions.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use serde::Deserialize;
use serde_json::Value;

use crate::kubelet::{DynamicDevice, PodDevices, SliceIdentity};

const RESOURCE_NAME: &str = "k8s.cni.cncf.io/resourceName";
const DEVICE_ID: &str = "k8s.cni.cncf.io/deviceID";
const PCI_BUS_ID: &str = "resource.kubernetes.io/pciBusID";

/// The memory that a device needs besides its strings, in bytes.
const DEVICE: usize = 128;

/// A slice on the wire.
#[derive(Debug, Clone, Default, Deserialize)]
struct SliceObject {
    spec: Option<SliceSpec>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct SliceSpec {
    driver: String,
    pool: PoolSpec,
    devices: Option<Vec<DeviceSpec>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct PoolSpec {
    name: String,
    generation: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct DeviceSpec {
    name: String,
    attributes: Option<BTreeMap<String, Value>>,
}

/// The fields of a slice that the agent keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "SliceObject")]
pub struct SliceView {
    driver: String,
    pool: PoolSpec,
    devices: Vec<(String, SliceIdentity)>,
}

impl SliceView {
    /// Returns the approximate memory that the slice needs, in bytes.
    pub fn length(&self) -> usize {
        let devices = self.devices.iter().map(|(name, identity)| {
            let texts = [&identity.resource, &identity.id];
            let texts = texts.into_iter().flatten().map(String::len);
            name.len() + texts.sum::<usize>() + DEVICE
        });
        devices.sum::<usize>() + self.driver.len() + self.pool.name.len()
    }
}

impl From<SliceObject> for SliceView {
    fn from(object: SliceObject) -> SliceView {
        let spec = object.spec.unwrap_or_default();
        let devices = spec.devices.unwrap_or_default().into_iter();
        SliceView {
            driver: spec.driver,
            pool: spec.pool,
            devices: devices.map(identified).collect(),
        }
    }
}

/// Returns a device's name and identity.
fn identified(device: DeviceSpec) -> (String, SliceIdentity) {
    let attributes = device.attributes.unwrap_or_default();
    let text = |name: &str| {
        let value = attributes.get(name)?.get("string")?.as_str()?;
        Some(value.to_owned()).filter(|value| !value.is_empty())
    };
    let identity = SliceIdentity {
        resource: text(RESOURCE_NAME),
        id: text(DEVICE_ID).or_else(|| text(PCI_BUS_ID)),
    };
    (device.name, identity)
}

/// Whether [`identify`] must complete `devices` with data from the ResourceSlices. This is so if
/// `devices` has a device of a DRA driver, or the list [`PodDevices::on_node`]. Kubelet leaves the
/// resources of DRA drivers out of this list.
pub(super) fn concern(devices: &PodDevices) -> bool {
    devices.on_node.is_some() || devices.dynamic().next().is_some()
}

/// Sets the identity of each device of a DRA driver. Returns whether the slices contain all these
/// devices. If `devices` has the list [`PodDevices::on_node`], also adds the resources in the
/// slices to that list.
pub(crate) fn identify(slices: &[Rc<SliceView>], devices: &mut PodDevices) -> bool {
    let mut is_complete = true;
    for device in devices.dynamic_mut() {
        device.identity = find(slices, device).cloned();
        is_complete &= device.identity.is_some();
    }
    if let Some(names) = &mut devices.on_node {
        let mut known: HashSet<String> = names.iter().cloned().collect();
        let identities = slices.iter().flat_map(|slice| &slice.devices);
        for resource in identities.filter_map(|(_, identity)| identity.resource.as_ref()) {
            if known.insert(resource.clone()) {
                names.push(resource.clone());
            }
        }
    }
    is_complete
}

/// Returns the identity of a device; `None` if no current slice of the pool contains the device. A
/// driver that changes its pool writes slices of a higher generation. Only the slices of the
/// highest generation are current.
fn find<'a>(slices: &'a [Rc<SliceView>], device: &DynamicDevice) -> Option<&'a SliceIdentity> {
    let of_pool = slices
        .iter()
        .filter(|slice| slice.driver == device.driver && slice.pool.name == device.pool);
    let newest = of_pool.clone().map(|slice| slice.pool.generation).max()?;
    of_pool
        .filter(|slice| slice.pool.generation == newest)
        .flat_map(|slice| &slice.devices)
        .find(|(name, _)| *name == device.device)
        .map(|(_, identity)| identity)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kubelet::ContainerDevices;

    fn slice(generation: i64, devices: &Value) -> Rc<SliceView> {
        let object: SliceObject = serde_json::from_value(json!({
            "metadata": {"name": "node-a-vf.example.com"},
            "spec": {"driver": "vf.example.com", "nodeName": "node-a", "devices": devices,
                     "pool": {"name": "pool-a", "generation": generation, "resourceSliceCount": 1}},
        }))
        .unwrap();
        Rc::new(SliceView::from(object))
    }

    fn claimed(names: &[&str]) -> PodDevices {
        let dynamic = names.iter().map(|name| DynamicDevice {
            claim: "default/c".into(),
            driver: "vf.example.com".into(),
            pool: "pool-a".into(),
            device: (*name).into(),
            identity: None,
        });
        PodDevices {
            containers: vec![ContainerDevices {
                name: "c".into(),
                dynamic: dynamic.collect(),
                ..ContainerDevices::default()
            }],
            ..PodDevices::default()
        }
    }

    fn identities(devices: &PodDevices) -> Vec<Option<SliceIdentity>> {
        devices.dynamic().map(|it| it.identity.clone()).collect()
    }

    #[test]
    fn the_device_id_takes_precedence_over_the_pci_bus_id() {
        let devices = json!([
            {"name": "vf0", "attributes": {
                "k8s.cni.cncf.io/resourceName": {"string": "example.com/vf"},
                "k8s.cni.cncf.io/deviceID": {"string": "mlx5_core.sf.4"},
                "resource.kubernetes.io/pciBusID": {"string": "0000:01:10.0"}}},
            {"name": "vf1", "attributes": {
                "resource.kubernetes.io/pciBusID": {"string": "0000:01:10.1"}, "x": {"int": 1}}},
            {"name": "vf2"},
            {"name": "vf3", "attributes": {"k8s.cni.cncf.io/deviceID": {"int": 3}}},
        ]);
        let mut found = claimed(&["vf0", "vf1", "vf2", "vf3"]);
        assert!(concern(&found) && identify(&[slice(1, &devices)], &mut found));
        let identity = |resource: Option<&str>, id: Option<&str>| {
            Some(SliceIdentity {
                resource: resource.map(str::to_owned),
                id: id.map(str::to_owned),
            })
        };
        let expected = [
            identity(Some("example.com/vf"), Some("mlx5_core.sf.4")),
            identity(None, Some("0000:01:10.1")),
            identity(None, None),
            identity(None, None),
        ];
        assert_eq!(identities(&found), expected);
    }

    #[test]
    fn a_slice_of_an_older_generation_does_not_count() {
        let of = |id: &str| json!([{"name": "vf0", "attributes": {"k8s.cni.cncf.io/deviceID": {"string": id}}}]);
        let slices = [slice(1, &of("old")), slice(2, &of("new"))];
        let mut found = claimed(&["vf0"]);
        assert!(identify(&slices, &mut found));
        assert_eq!(
            identities(&found)[0].as_ref().unwrap().id.as_deref(),
            Some("new")
        );
        let slices = [slice(1, &of("old")), slice(2, &json!([]))];
        assert!(!identify(&slices, &mut found));
        assert_eq!(identities(&found), [None]);
        assert!(!identify(&[], &mut claimed(&["vf0"])));
    }

    #[test]
    fn resources_in_slices_are_resources_on_the_node() {
        let devices = json!([{"name": "vf0", "attributes": {
            "k8s.cni.cncf.io/resourceName": {"string": "example.com/vf"}}}]);
        let mut found = PodDevices {
            on_node: Some(vec!["other.com/x".into()]),
            ..PodDevices::default()
        };
        assert!(concern(&found) && identify(&[slice(1, &devices)], &mut found));
        assert_eq!(found.is_on_node("example.com/vf"), Some(true));
        assert_eq!(found.is_on_node("other.com/y"), Some(false));
        assert!(!concern(&PodDevices::default()));
    }

    #[test]
    fn a_slice_with_null_fields_is_read() {
        let object: SliceObject =
            serde_json::from_value(json!({"metadata": {}, "spec": null})).unwrap();
        assert_eq!(SliceView::from(object), SliceView::default());
        let object: SliceObject = serde_json::from_value(
            json!({"spec": {"devices": null, "driver": "d", "pool": {"name": "p"}}}),
        )
        .unwrap();
        assert_eq!(SliceView::from(object).driver, "d");
    }
}
