//! One test's node: with a namespace for its pods, and Jackfield on it once it is deployed.

#[path = "../api/lab/admin.rs"]
#[allow(dead_code, reason = "the other stage uses the rest of it")]
mod admin;
#[path = "../api/lab/control_plane.rs"]
mod control_plane;
mod deployment;
mod device_plugin;
mod dra;
mod grpc;
mod machine;
#[path = "../api/lab/manifests.rs"]
mod manifests;
mod pods;
mod server;
mod traces;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) use admin::Admin;
pub(crate) use device_plugin::DevicePlugin;
pub(crate) use machine::Machine;
pub(crate) use pods::{Pod, container, limits};
pub(crate) use server::Server;

pub(crate) const STATUS: &str = "k8s.v1.cni.cncf.io/network-status";
pub(crate) const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
/// Where deploy/ puts everything.
const SYSTEM: &str = "kube-system";
/// The resource of the tests' device plugin. Its devices are names that no kernel knows, as those
/// of a plugin for a field bus might be.
pub(crate) const RESOURCE: &str = "example.com/port";
const NODES: &str = "/api/v1/nodes";

/// A node and what a test does on it.
pub(crate) struct Lab {
    pub(crate) machine: Machine,
    pub(crate) admin: Admin,
    pub(crate) namespace: String,
}

impl Lab {
    /// A node with a bridge as its network, and nothing of Jackfield's.
    pub(crate) fn new() -> Lab {
        let machine = Machine::new(Server::get());
        machine.write("disk/etc/cni/net.d/10-cluster.conflist", &cluster_network());
        let admin = Admin::new(Server::get(), "admin");
        let namespace = format!("on-{}", machine.name);
        admin.create(
            "/api/v1/namespaces",
            &json!({"metadata": {"name": namespace}}),
        );
        let mut lab = Lab {
            machine,
            admin,
            namespace,
        };
        lab.boot();
        lab
    }

    /// A node with Jackfield on it, from image to configuration.
    pub(crate) fn with_jackfield() -> Lab {
        let lab = Lab::new();
        lab.deploy();
        lab
    }

    /// Starts the node and waits until it is ready for pods.
    pub(crate) fn boot(&mut self) {
        self.machine.boot();
        eventually("kubelet has registered the node", || {
            self.readiness()
                .is_some_and(|ready| ready["status"] == "True")
        });
    }

    /// Ends everything that is no file on the node's disk, and starts it again.
    pub(crate) fn reboot(&mut self) {
        self.machine.crash();
        let before = self.readiness().unwrap();
        self.machine.boot();
        // Until kubelet has written it again, the node's status is that of before.
        eventually("kubelet is back", || {
            let now = self.readiness().unwrap();
            now["lastHeartbeatTime"] != before["lastHeartbeatTime"] && now["status"] == "True"
        });
    }

    /// The node's condition `Ready`, once it is registered.
    fn readiness(&self) -> Option<Value> {
        let node = self.admin.get(&format!("{NODES}/{}", self.machine.name))?;
        let conditions = node["status"]["conditions"].as_array()?;
        conditions.iter().find(|it| it["type"] == "Ready").cloned()
    }

    /// Whether kubelet says that the node is ready.
    pub(crate) fn is_ready(&self) -> bool {
        self.readiness()
            .is_some_and(|ready| ready["status"] == "True")
    }

    /// Waits for an event about the node with all of these words.
    #[track_caller]
    pub(crate) fn wait_for_event_of_node(&self, words: &[&str]) {
        let selector = format!(
            "involvedObject.kind%3DNode,involvedObject.name%3D{}",
            self.machine.name
        );
        let path = format!("/api/v1/namespaces/default/events?fieldSelector={selector}");
        eventually(&format!("an event of the node with {words:?}"), || {
            let events = self.admin.get(&path).unwrap();
            let mut events = events["items"].as_array().unwrap().iter();
            events.any(|event| {
                let text = format!("{}: {}", event["reason"], event["message"]);
                words.iter().all(|word| text.contains(word))
            })
        });
    }

    /// A definition of a bridge with addresses of its own, as `more` annotates it.
    pub(crate) fn definition(&self, name: &str, subnet: &str, annotations: &Value) {
        let config = json!({"cniVersion": "1.0.0", "name": name, "type": "bridge", "bridge": name,
            "capabilities": {"deviceID": true},
            "ipam": {"type": "host-local", "ranges": [[{"subnet": subnet}]]}});
        self.definition_of(name, &config.to_string(), annotations);
    }

    /// A definition with this text as its configuration.
    pub(crate) fn definition_of(&self, name: &str, config: &str, annotations: &Value) {
        let path = format!(
            "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions",
            self.namespace
        );
        self.admin.create(
            &path,
            &json!({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                    "metadata": {"name": name, "annotations": annotations}, "spec": {"config": config}}),
        );
    }
}

/// The annotation that says which devices a definition's networks use.
pub(crate) fn of_resource() -> Value {
    json!({"k8s.v1.cni.cncf.io/resourceName": RESOURCE})
}

/// The cluster network, as whoever set the node up wrote it.
fn cluster_network() -> String {
    json!({"cniVersion": "1.0.0", "name": "cluster", "plugins": [{
        "type": "bridge", "bridge": "cni0", "isGateway": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.0.0/24"}]],
                 "routes": [{"dst": "0.0.0.0/0"}]}}]})
    .to_string()
}

/// How long something that is to come true soon may take: six nodes share the processors.
const PATIENCE: Duration = Duration::from_secs(180);

/// Waits for something that is to come true soon.
#[track_caller]
pub(crate) fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    within(PATIENCE, what, is_so);
}

/// Waits for something that is to come true.
#[track_caller]
pub(crate) fn within(time: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + time;
    while !is_so() {
        assert!(Instant::now() < until, "not within {time:?}: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
