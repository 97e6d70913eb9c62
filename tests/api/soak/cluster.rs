//! Where the pods are: in the API server, or in a folder of manifests.

use std::fs;
use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};

use super::selection::{DEFINITIONS, Selection, annotation};
use crate::lab::{Admin, Lab, NETWORKS, STATUS, Server, pod};

const GROUP: &str = "k8s.cni.cncf.io/v1";
/// `manifestDir`, in the lab's folder.
pub(super) const FOLDER: &str = "cluster";

/// What users do with pods. Each worker has its own, and so its own connection.
pub(super) trait Cluster {
    /// Creates a pod and returns its UID.
    fn create(&self, name: &str, networks: &[Selection]) -> String;
    /// Changes the annotation of a pod.
    fn select(&self, name: &str, networks: &[Selection]);
    /// Deletes a pod and returns its last network-status.
    fn delete(&self, name: &str) -> Option<Value>;
    /// The network-status of a pod.
    fn status(&self, name: &str) -> Option<Value>;
    /// Creates the definitions.
    fn define(&self);
}

/// The real one.
pub(super) struct ApiServer {
    admin: Admin,
    lab_dir: PathBuf,
    namespace: String,
    node: String,
}

impl ApiServer {
    pub(super) fn of(lab: &Lab) -> ApiServer {
        ApiServer {
            admin: Admin::new(Server::get(), "admin"),
            lab_dir: lab.path(""),
            namespace: lab.namespace.clone(),
            node: lab.node.clone(),
        }
    }

    fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }
}

impl Cluster for ApiServer {
    fn create(&self, name: &str, networks: &[Selection]) -> String {
        let pod = pod(name, &self.node, &json!({NETWORKS: annotation(networks)}));
        let pod = self.admin.create(&self.pods(), &pod);
        pod["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    fn select(&self, name: &str, networks: &[Selection]) {
        let change = json!({"metadata": {"annotations": {NETWORKS: annotation(networks)}}});
        self.admin
            .merge(&format!("{}/{name}", self.pods()), &change);
    }

    fn delete(&self, name: &str) -> Option<Value> {
        let path = format!("{}/{name}?gracePeriodSeconds=0", self.pods());
        let deleted = self.admin.request(Method::DELETE, &path, "", None);
        status_in(&deleted.unwrap_or_else(|error| panic!("DELETE {path}: {error:?}")))
    }

    fn status(&self, name: &str) -> Option<Value> {
        status_in(&self.admin.get(&format!("{}/{name}", self.pods()))?)
    }

    fn define(&self) {
        let path = format!(
            "/apis/{GROUP}/namespaces/{}/network-attachment-definitions",
            self.namespace
        );
        for definition in definitions(&self.namespace, &self.lab_dir) {
            self.admin.create(&path, &definition);
        }
    }
}

fn status_in(pod: &Value) -> Option<Value> {
    let text = pod["metadata"]["annotations"][STATUS].as_str()?;
    Some(serde_json::from_str(text).unwrap())
}

/// `manifestDir`.
pub(super) struct Folder {
    lab_dir: PathBuf,
    folder: PathBuf,
    namespace: String,
}

impl Folder {
    pub(super) fn of(lab: &Lab) -> Folder {
        Folder {
            lab_dir: lab.path(""),
            folder: lab.path(FOLDER),
            namespace: lab.namespace.clone(),
        }
    }

    /// Replaces a manifest in one step: a plugin may read it at any time.
    fn write(&self, name: &str, manifest: &Value) {
        let new = self.folder.join(format!("{name}.new"));
        fs::write(&new, manifest.to_string()).unwrap();
        fs::rename(new, self.folder.join(format!("{name}.json"))).unwrap();
    }

    fn status_dir(&self, name: &str) -> PathBuf {
        self.folder
            .join(format!("status/{}/{name}", self.namespace))
    }
}

impl Cluster for Folder {
    fn create(&self, name: &str, networks: &[Selection]) -> String {
        self.select(name, networks);
        uid(name)
    }

    fn select(&self, name: &str, networks: &[Selection]) {
        let mut pod = pod(name, "", &json!({NETWORKS: annotation(networks)}));
        pod["kind"] = json!("Pod");
        pod["metadata"]["namespace"] = json!(self.namespace);
        pod["metadata"]["uid"] = json!(uid(name));
        self.write(name, &pod);
    }

    fn delete(&self, name: &str) -> Option<Value> {
        let status = self.status(name);
        fs::remove_file(self.folder.join(format!("{name}.json"))).unwrap();
        let _ = fs::remove_dir_all(self.status_dir(name));
        status
    }

    fn status(&self, name: &str) -> Option<Value> {
        let text = fs::read(self.status_dir(name).join("network-status.json")).ok()?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    fn define(&self) {
        fs::create_dir(&self.folder).unwrap();
        for definition in definitions(&self.namespace, &self.lab_dir) {
            let name = definition["metadata"]["name"].as_str().unwrap();
            self.write(name, &definition);
        }
    }
}

fn uid(name: &str) -> String {
    format!("uid-of-{name}")
}

fn definitions(namespace: &str, lab_dir: &Path) -> Vec<Value> {
    let lab_dir = lab_dir.to_str().unwrap().trim_end_matches('/');
    let definition = |(name, plugin): &(&str, &str)| {
        let plugin: Value = serde_json::from_str(&plugin.replace("LAB", lab_dir)).unwrap();
        let config = json!({"cniVersion": "1.1.0", "name": name, "plugins": [plugin]});
        json!({"apiVersion": GROUP, "kind": "NetworkAttachmentDefinition",
               "metadata": {"name": name, "namespace": namespace},
               "spec": {"config": config.to_string()}})
    };
    DEFINITIONS.iter().map(definition).collect()
}
