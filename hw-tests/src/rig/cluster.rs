//! A cluster for one case: a folder of manifests, and Jackfield's configuration for it.
//!
//! ```text
//! folder/cluster/…        manifests; below status/ what Jackfield publishes
//! folder/conf/…           the cluster network: a dummy interface in the pod
//! folder/bin/…            the suite's own plugins, found before the reference plugins
//! folder/{journal,devinfo,plugins}   what must be empty in the end
//! ```

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::case::{Outcome, Stop, present, same};
use crate::delegate;
use crate::node::Node;
use crate::rig::{Pod, command};

/// The namespace of all its objects.
const NAMESPACE: &str = "hwt";

/// A cluster, removed when dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: TempDir,
    pub(super) jackfield: PathBuf,
    pub(super) cni_bin: PathBuf,
}

impl Cluster {
    /// Creates a cluster without pods and networks.
    pub(crate) fn new(node: &Node) -> Result<Self, Stop> {
        let cluster = Self {
            folder: tempfile::Builder::new().prefix("hwt-").tempdir()?,
            jackfield: present("the binary jackfield", node.jackfield.clone())?,
            cni_bin: present("the reference plugins", node.cni_bin.clone())?,
        };
        for folder in ["cluster", "conf", "bin", "plugins"] {
            fs::create_dir(cluster.path(folder))?;
        }
        for name in delegate::types() {
            symlink(std::env::current_exe()?, cluster.path("bin").join(name))?;
        }
        let dummy = json!({ "type": "dummy", "ipam": {
            "type": "static", "addresses": [{ "address": "192.0.2.10/24" }] } });
        let list = json!({ "cniVersion": "1.0.0", "name": "hwt-cluster", "plugins": [dummy] });
        cluster.write("conf/10-cluster.conflist", &list)?;
        Ok(cluster)
    }

    /// Returns the path of a file or folder in it.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    fn write(&self, relative: &str, content: &Value) -> Result<(), Stop> {
        let file = self.path(relative);
        fs::write(&file, content.to_string())
            .map_err(|error| Stop::failed(format!("{}: {error}", file.display())))
    }

    /// Adds a network with its plugins, and with a resource if it has devices. The suite's own
    /// plugins keep their data in the cluster's folder.
    pub(crate) fn network(&self, name: &str, resource: Option<&str>, plugins: &[Value]) -> Outcome {
        let data = self.path("plugins");
        let plugins: Vec<Value> = plugins
            .iter()
            .cloned()
            .map(|mut plugin| {
                if plugin["type"].as_str().is_some_and(is_our_own) {
                    plugin["dataDir"] = json!(data);
                }
                plugin
            })
            .collect();
        let config = json!({ "cniVersion": "1.0.0", "plugins": plugins });
        let mut metadata = json!({ "name": name, "namespace": NAMESPACE });
        if let Some(resource) = resource {
            metadata["annotations"] = json!({ "k8s.v1.cni.cncf.io/resourceName": resource });
        }
        let definition = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": metadata, "spec": { "config": config.to_string() },
        });
        self.write(&format!("cluster/network-{name}.json"), &definition)
    }

    /// Adds a pod that selects networks, with the devices that kubelet would have allocated to it.
    /// With null the devices are those of [`Cluster::checkpoint`].
    pub(crate) fn pod(
        &self,
        name: &'static str,
        networks: &Value,
        devices: &Value,
    ) -> Result<Pod<'_>, Stop> {
        let mut annotations = json!({ "k8s.v1.cni.cncf.io/networks": networks.to_string() });
        if !devices.is_null() {
            annotations["jackfield.io/devices"] = json!(devices.to_string());
        }
        let metadata = json!({ "name": name, "namespace": NAMESPACE, "uid": uid(name),
                               "annotations": annotations });
        let manifest = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata });
        self.write(&format!("cluster/pod-{name}.json"), &manifest)?;
        Pod::new(self, name)
    }

    /// Returns Jackfield's configuration, as a runtime passes it.
    pub(super) fn configuration(&self) -> Value {
        json!({
            "cniVersion": "1.0.0", "name": "jackfield", "type": "jackfield",
            "clusterNetwork": self.path("conf/10-cluster.conflist"),
            "manifestDir": self.path("cluster"),
            "confDir": self.path("conf"),
            "binDir": self.path("bin"),
            "cniDir": self.path("multus"),
            "devInfoDir": self.path("devinfo"),
            "journalDir": self.path("journal"),
            "kubeletCheckpoint": self.path("checkpoint"),
        })
    }

    /// Returns the CNI_ARGS of a pod.
    pub(super) fn args(name: &str) -> String {
        format!(
            "K8S_POD_NAMESPACE={NAMESPACE};K8S_POD_NAME={name};K8S_POD_UID={};\
             K8S_POD_INFRA_CONTAINER_ID={name}",
            uid(name)
        )
    }

    /// Returns the pod's network-status.
    pub(super) fn status(&self, name: &str) -> Result<Vec<Value>, Stop> {
        let file = format!("cluster/status/{NAMESPACE}/{name}/network-status.json");
        Ok(serde_json::from_slice(&fs::read(self.path(&file))?)?)
    }

    /// Returns the output of `jackfield devices` in this format: `table`, `json`, `svg`.
    pub(crate) fn devices(&self, form: &str) -> Result<String, Stop> {
        let program = self.jackfield.display().to_string();
        let journal = self.path("journal").display().to_string();
        let arguments = ["devices", "-o", form, "--journal-dir", &journal];
        Ok(command(&program, &arguments)?)
    }

    /// Writes a kubelet checkpoint that gives a device to this pod only.
    pub(crate) fn checkpoint(&self, pod: &str, resource: &str, device: &str) -> Outcome {
        let entry = json!({ "PodUID": uid(pod), "ContainerName": "c", "ResourceName": resource,
                            "DeviceIDs": { "0": [device] }, "AllocResp": "" });
        let data = json!({ "PodDeviceEntries": [entry],
                           "RegisteredDevices": { resource: [device] } });
        self.write("checkpoint", &json!({ "Data": data, "Checksum": 1 }))
    }

    /// Checks that no record, device file, lock or plugin's cache is left.
    pub(crate) fn nothing_is_left(&self) -> Outcome {
        let mut left = Vec::new();
        for folder in [
            "journal/sandboxes",
            "journal/owed",
            "journal/quarantine",
            "journal/exclusive",
            "journal/unrestored",
            "devinfo/cni",
            "plugins",
        ] {
            left.extend(names_below(&self.path(folder)));
        }
        let locks = names_below(Path::new("/run/jackfield/locks")).into_iter();
        left.extend(locks.filter(|lock| lock.contains("/hwt-")));
        same("left behind", left, Vec::<String>::new())
    }
}

fn uid(pod: &str) -> String {
    format!("uid-{pod}")
}

fn is_our_own(name: &str) -> bool {
    delegate::types().any(|own| own == name)
}

fn names_below(folder: &Path) -> Vec<String> {
    let names = crate::rig::sysfs::names(folder).into_iter();
    names
        .map(|name| folder.join(name).display().to_string())
        .collect()
}
