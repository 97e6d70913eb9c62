//! Writes `status.devices[].networkData` of ResourceClaims (`resource.k8s.io/v1`, KEP-4817) with
//! server-side apply.
//!
//! Each pod has a separate field manager, so an apply for one pod changes only this pod's entries.
//! The agent does not force an apply, so the API server refuses to change a field that another
//! manager owns. The agent removes a pod's entries by applying a claim without a status.

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::server::APPLY_PATCH;
use super::{ApiError, ApiServer};
use crate::cluster::claim_status::DeviceStatus;
use crate::cluster::{ClaimStatus, Publication};
use crate::npwg::ObjectRef;

/// The prefix of each field manager's name. The rest of the name is the pod's UID.
const MANAGER: &str = "jackfield-";

/// A ResourceClaim on the wire, with the fields that decide what the agent writes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ResourceClaim {
    metadata: Metadata,
    status: Option<Status>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    uid: String,
    managed_fields: Option<Vec<ManagedFields>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ManagedFields {
    manager: String,
    operation: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    allocation: Option<Allocation>,
    reserved_for: Option<Vec<Consumer>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Consumer {
    uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Allocation {
    devices: Allocated,
    node_selector: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Allocated {
    results: Option<Vec<AllocatedResult>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AllocatedResult {
    driver: String,
    pool: String,
    device: String,
    #[serde(rename = "shareID")]
    share_id: Option<String>,
}

/// Writes the status of each claim in a publication. If the pod `is_gone`, removes the pod's
/// entries from these claims instead.
///
/// Writes a device only if the claim is reserved for the pod and the device is allocated to the
/// claim on `node`. Skips a claim that does not exist. If the API server refuses a status with 409
/// or 422, logs the refusal and goes on with the next claim. Does nothing if the publication has no
/// pod UID, or if the API server does not serve `resource.k8s.io/v1`.
///
/// # Errors
/// [`ApiError`]. The caller then has to retry. The retry repeats the writes that have succeeded.
/// This does no harm, because a repeated write changes nothing.
pub async fn publish_claims(
    server: &ApiServer,
    node: &str,
    publication: &Publication,
    is_gone: bool,
) -> Result<(), ApiError> {
    let pod = publication.pod();
    let Some(uid) = pod.uid.as_deref() else {
        return Ok(());
    };
    for status in publication.claims() {
        let Ok(name) = ObjectRef::new(&pod.namespace, &status.claim) else {
            continue;
        };
        let (namespace, claim) = (name.namespace(), name.name());
        let path =
            format!("/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{claim}");
        let found: ResourceClaim = match server.find(&path).await {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(error) if error.is_not_served() => return Ok(()),
            Err(error) => return Err(error),
        };
        let devices = match is_gone {
            true => Vec::new(),
            false => found.entries(node, uid, status),
        };
        let manager = format!("{MANAGER}{uid}");
        if devices.is_empty() && !found.is_managed_by(&manager) {
            continue;
        }
        let count = devices.len();
        let body = body(&name, &found.metadata.uid, devices);
        let manager = utf8_percent_encode(&manager, NON_ALPHANUMERIC);
        let path = format!("{path}/status?fieldManager={manager}");
        let applied = server.write(Method::PATCH, APPLY_PATCH, &path, &body).await;
        match applied.map(|_: IgnoredAny| ()) {
            Ok(()) => info!(
                pod = pod.to_string(),
                claim,
                phase = "publish",
                devices = count,
                "updated the pod's entries in the claim's status"
            ),
            Err(error) if error.code() == Some(404) || error.is_not_served() => {}
            // 409: another manager owns a field, or the claim was recreated. 422: the claim changed
            // after the agent read it. Do not retry. The other manager keeps its field. A claim
            // that was recreated or changed probably does not belong to this pod.
            Err(error) if matches!(error.code(), Some(409 | 422)) => {
                let pod = pod.to_string();
                warn!(pod, phase = "publish", "the claim stays as it is: {error}");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl ResourceClaim {
    /// Returns the entries of `wanted` whose devices are allocated to this claim on `node`. Adds
    /// the share ID of each device. Returns nothing if the claim is not reserved for the pod `uid`.
    fn entries(&self, node: &str, uid: &str, wanted: &ClaimStatus) -> Vec<DeviceStatus> {
        let Some(status) = &self.status else {
            return Vec::new();
        };
        let mut consumers = status.reserved_for.iter().flatten();
        let is_reserved = consumers.any(|it| it.uid == uid);
        let allocation = status.allocation.as_ref();
        let allocation = allocation.filter(|it| is_reserved && it.is_for(node));
        let results = allocation.and_then(|it| it.devices.results.as_deref());
        let entry = |device: &DeviceStatus| {
            let mut shares = results.unwrap_or_default().iter().filter(|it| {
                (&it.driver, &it.pool, &it.device) == (&device.driver, &device.pool, &device.device)
            });
            let share = shares.next()?;
            // Omit the device if the claim has several shares of it, because the agent cannot know
            // which share the pod's interface uses.
            shares.next().is_none().then(|| DeviceStatus {
                share_id: share.share_id.clone(),
                ..device.clone()
            })
        };
        wanted.devices.iter().filter_map(entry).collect()
    }

    fn is_managed_by(&self, manager: &str) -> bool {
        let mut managers = self.metadata.managed_fields.iter().flatten();
        managers.any(|it| it.manager == manager && it.operation == "Apply")
    }
}

impl Allocation {
    /// Whether the devices are allocated on `node` alone. In that case the node selector has a
    /// single term, which contains the node's name.
    fn is_for(&self, node: &str) -> bool {
        let field = json!([{"key": "metadata.name", "operator": "In", "values": [node]}]);
        self.node_selector == json!({"nodeSelectorTerms": [{"matchFields": field}]})
    }
}

/// Returns the body of a server-side apply. The body contains the claim's UID, so that the API
/// server refuses the write if a new claim has the same name. Without devices the body has no
/// status at all. With an empty status, the API server would keep the pod's field manager in the
/// claim.
fn body(claim: &ObjectRef, uid: &str, devices: Vec<DeviceStatus>) -> Value {
    let mut body = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": claim.name(), "namespace": claim.namespace(), "uid": uid},
    });
    if !devices.is_empty() {
        body["status"] = json!({ "devices": devices });
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::NetworkData;

    fn claim(status: &Value) -> ResourceClaim {
        let managed = json!([{"manager": "jackfield-u", "operation": "Apply", "fieldsV1": {"a": 1}},
                             {"manager": "jackfield-v", "operation": "Update"}]);
        let metadata = json!({"uid": "c", "managedFields": managed});
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }

    fn allocated(node: &str, shares: &[Option<&str>]) -> Value {
        let result = |share: &Option<&str>| json!({"request": "r", "driver": "d", "pool": "p", "device": "vf1", "shareID": share});
        let results: Vec<Value> = shares.iter().map(result).collect();
        let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
        json!({"devices": {"results": results},
               "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}})
    }

    fn wanted() -> ClaimStatus {
        let device = |name: &str| DeviceStatus {
            driver: "d".into(),
            pool: "p".into(),
            device: name.into(),
            share_id: None,
            network_data: NetworkData::default(),
        };
        ClaimStatus {
            claim: "nic".into(),
            devices: vec![device("vf1"), device("vf2")],
        }
    }

    #[test]
    fn only_devices_of_the_pod_on_this_node_are_written() {
        let pods = json!([{"resource": "pods", "name": "web", "uid": "u"}]);
        let of = |allocation: Value, pods: &Value| {
            let status = json!({"allocation": allocation, "reservedFor": pods});
            let entries = claim(&status).entries("node-a", "u", &wanted());
            let names = entries.into_iter().map(|it| (it.device, it.share_id));
            names.collect::<Vec<_>>()
        };
        assert_eq!(
            of(allocated("node-a", &[None]), &pods),
            [("vf1".into(), None)]
        );
        let shared = of(allocated("node-a", &[Some("s")]), &pods);
        assert_eq!(shared, [("vf1".into(), Some("s".into()))]);
        let others = json!([{"resource": "pods", "name": "web", "uid": "other"}]);
        for (allocation, pods) in [
            (allocated("node-b", &[None]), &pods),
            (allocated("node-a", &[None]), &others),
            (allocated("node-a", &[None]), &Value::Null),
            (allocated("node-a", &[Some("s"), Some("t")]), &pods),
            (json!({"devices": allocated("", &[None])["devices"]}), &pods),
            (Value::Null, &pods),
        ] {
            assert_eq!(of(allocation.clone(), pods), [], "{allocation} {pods}");
        }
    }

    #[test]
    fn a_field_manager_is_recognized_by_name_and_operation() {
        let claim = claim(&Value::Null);
        assert!(claim.is_managed_by("jackfield-u"));
        assert!(!claim.is_managed_by("jackfield-v") && !claim.is_managed_by("jackfield-w"));
    }

    #[test]
    fn an_empty_list_of_devices_is_applied_without_a_status() {
        let name = ObjectRef::new("a", "nic").unwrap();
        assert_eq!(body(&name, "c", Vec::new()).get("status"), None);
        let full = body(&name, "c", wanted().devices);
        assert_eq!(full["status"]["devices"][1]["device"], "vf2");
        assert_eq!(full["metadata"]["uid"], "c");
    }
}
