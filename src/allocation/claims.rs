//! kubelet's own record of ResourceClaims (DRA): the file `dra_manager_state` in kubelet's
//! directory, usually `/var/lib/kubelet`.
//!
//! The file identifies pods by UID, as kubelet's checkpoint of devices does. The pod-resources API
//! identifies them by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::CheckpointCause;
use crate::kubelet::DynamicDevice;

/// The claims that kubelet has prepared on this node.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Claims {
    #[serde(rename = "ClaimInfoStateList")]
    claims: Option<Vec<Claim>>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Claim {
    claim_name: String,
    namespace: String,
    #[serde(rename = "PodUIDs")]
    pods: Option<BTreeMap<String, serde::de::IgnoredAny>>,
    driver_state: Option<BTreeMap<String, Driver>>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Driver {
    devices: Option<Vec<Device>>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Device {
    pool_name: String,
    device_name: String,
}

/// The content of the file: a JSON object. Its key `Data` is a string, which contains the claims as
/// JSON.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct File {
    data: String,
}

impl Claims {
    /// Returns the path of kubelet's record of claims. `checkpoint` is the path of kubelet's
    /// checkpoint of devices. The record is in the parent of the checkpoint's directory.
    pub(super) fn path(checkpoint: &Path) -> PathBuf {
        let root = checkpoint.parent().and_then(Path::parent);
        root.unwrap_or(Path::new("/")).join("dra_manager_state")
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Claims, CheckpointCause> {
        let file: File = serde_json::from_slice(bytes)?;
        serde_json::from_str(&file.data).map_err(|error| CheckpointCause::UnknownType(error.into()))
    }

    /// Whether kubelet prepared `device` for a claim of the pod with this UID.
    pub(super) fn has(&self, uid: &str, device: &DynamicDevice) -> bool {
        self.claims.iter().flatten().any(|claim| {
            let name = device.claim.split_once('/');
            let pods = claim.pods.as_ref();
            let drivers = claim.driver_state.as_ref();
            let driver = drivers.and_then(|drivers| drivers.get(&device.driver));
            name == Some((claim.namespace.as_str(), claim.claim_name.as_str()))
                && pods.is_some_and(|pods| pods.contains_key(uid))
                && driver
                    .into_iter()
                    .flat_map(|it| it.devices.iter().flatten())
                    .any(|it| it.pool_name == device.pool && it.device_name == device.device)
        })
    }
}
