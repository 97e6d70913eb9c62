//! ResourceClaims, as the scheduler allocates them.

use http::Method;
use serde_json::{Value, json};

use super::Admin;

pub(crate) const DRIVER: &str = "vf.example.com";
pub(crate) const POOL: &str = "pool-a";

/// A claim whose devices are on one node.
pub(crate) struct Claim<'a> {
    pub(crate) admin: &'a Admin,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl Claim<'_> {
    pub(crate) fn path(&self) -> String {
        let claims = format!(
            "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
            self.namespace
        );
        format!("{claims}/{}", self.name)
    }

    /// Creates the claim, allocates devices of `node` to it, and reserves it for a pod.
    pub(crate) fn create(&self, node: &str, devices: &[&str], pod: (&str, &str)) {
        let request = |device: &&str| json!({"name": device, "exactly": {"deviceClassName": "c"}});
        let requests: Vec<Value> = devices.iter().map(request).collect();
        let path = self.path();
        let (claims, name) = path.rsplit_once('/').unwrap();
        self.admin.create(
            claims,
            &json!({"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}),
        );
        let result = |device: &&str| json!({"request": device, "driver": DRIVER, "pool": POOL, "device": device});
        let results: Vec<Value> = devices.iter().map(result).collect();
        let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
        let (name, uid) = pod;
        self.admin.merge(
            &format!("{path}/status"),
            &json!({"status": {
                "allocation": {
                    "devices": {"results": results},
                    "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]}},
                "reservedFor": [{"resource": "pods", "name": name, "uid": uid}]}}),
        );
    }

    /// Applies these entries of `status.devices` as the field manager `manager`.
    pub(crate) fn apply(
        &self,
        by: &Admin,
        manager: &str,
        entries: &Value,
    ) -> Result<Value, (u16, String)> {
        let path = format!("{}/status?fieldManager={manager}", self.path());
        let body = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                          "metadata": {"name": self.name}, "status": {"devices": entries}});
        let content = "application/apply-patch+yaml";
        by.request(Method::PATCH, &path, content, Some(&body))
    }

    /// The entry of a device in the status; null if there is none.
    pub(crate) fn entry(&self, device: &str) -> Value {
        let claim = self.admin.get(&self.path()).unwrap();
        let mut entries = claim["status"]["devices"].as_array().into_iter().flatten();
        let entry = entries.find(|entry| entry["device"] == device);
        entry.cloned().unwrap_or_default()
    }

    /// Whether a field manager of a pod has fields in the status.
    pub(crate) fn has_manager(&self, uid: &str) -> bool {
        let claim = self.admin.get(&self.path()).unwrap();
        let mut managers = claim["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .iter();
        managers.any(|it| it["manager"] == format!("jackfield-{uid}"))
    }
}

/// An entry of `status.devices` with more keys.
pub(crate) fn device(name: &str, more: &Value) -> Value {
    let mut entry = json!({"driver": DRIVER, "pool": POOL, "device": name});
    let more = more.as_object().unwrap().clone();
    entry.as_object_mut().unwrap().extend(more);
    entry
}

/// What a driver reports about a device.
pub(crate) fn ready() -> Value {
    json!({"conditions": [{"type": "Ready", "status": "True", "reason": "Prepared", "message": "",
                           "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
}
