//! A pod from a manifest, with the devices that kubelet would report.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::cluster::api::PodView;
use crate::cluster::api::objects::PodObject;
use crate::cluster::manifests::Manifests;
use crate::cluster::{ClusterError, Pod, PodName};

/// The annotation with the devices that kubelet would have allocated.
const DEVICES: &str = "jackfield.io/devices";

/// Finds the pod of that name.
pub(super) fn find(manifests: &Manifests, name: &PodName) -> Result<Option<Pod>, ClusterError> {
    let Some(manifest) = manifests.find("Pod", &name.namespace, &name.name) else {
        return Ok(None);
    };
    let object = PodObject::deserialize(&manifest.body);
    let object = object.map_err(|error| ClusterError::Manifest(name.to_string(), error))?;
    let annotations = manifest.metadata.annotations.as_ref();
    let devices = annotations.and_then(|annotations| annotations.get(DEVICES));
    let devices: Option<BTreeMap<String, Vec<String>>> = devices
        .filter(|text| !text.trim().is_empty())
        .map(|text| serde_json::from_str(text))
        .transpose()
        .map_err(|error| ClusterError::Devices(name.to_string(), error))?;
    Ok(Some(Pod {
        uid: manifest.metadata.uid.clone(),
        devices: devices.unwrap_or_default(),
        ..PodView::from(object).to_pod(None)
    }))
}
