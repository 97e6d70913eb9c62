//! One test's node in the real cluster.

mod admin;
mod agent;
pub(crate) mod claims;
mod control_plane;
pub(crate) mod manifests;
mod plugin;
mod policies;
mod proxy;
mod server;
pub(crate) mod token;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use admin::Admin;
pub(crate) use agent::AgentProcess;
pub(crate) use plugin::{Outcome, Running, Sandbox};
pub(crate) use proxy::{Fault, Proxy};
pub(crate) use server::Server;
pub(crate) use wire::Wire;

pub(crate) const STATUS: &str = "k8s.v1.cni.cncf.io/network-status";
pub(crate) const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
/// Where the account of the agent is.
pub(crate) const SYSTEM: &str = "kube-system";
/// The account of the agent.
pub(crate) const NAME: &str = "jackfield-agent";

/// A node: a name, a namespace for its pods, a network namespace, an agent.
pub(crate) struct Lab {
    pub(crate) node: String,
    pub(crate) namespace: String,
    pub(crate) admin: Admin,
    pub(crate) proxy: Proxy,
    /// Whether the plugin runs where the API server is to be reached, as on a real node.
    pub(crate) beside_the_api_server: bool,
    /// Whether the plugin sees the sysfs of its network namespace, which takes some milliseconds a call.
    pub(crate) has_own_sysfs: bool,
    dir: TempDir,
    conf: Value,
}

impl Lab {
    /// A node whose agent is not started yet.
    pub(crate) fn new() -> Lab {
        Lab::of(Server::get())
    }

    /// The same in the cluster of `server`.
    pub(crate) fn of(server: &'static Server) -> Lab {
        static LABS: AtomicU32 = AtomicU32::new(0);
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        Lab::named(server, format!("t{}x{number}", std::process::id()))
    }

    /// The same, whose namespaces have this name.
    pub(crate) fn named(server: &'static Server, id: String) -> Lab {
        let admin = Admin::new(server, "admin");
        let dir = tempfile::Builder::new()
            .prefix("jackfield-api-")
            .tempdir()
            .unwrap();
        let node = format!("node-{id}");
        let netns = Command::new("ip")
            .args(["netns", "add", &id])
            .status()
            .unwrap();
        assert!(netns.success());
        admin.create("/api/v1/namespaces", &json!({"metadata": {"name": id}}));
        admin.create("/api/v1/nodes", &json!({"metadata": {"name": node}}));
        let cluster = dir.path().join("10-cluster.conflist");
        fs::write(
            &cluster,
            json!({"cniVersion": "1.0.0", "name": "cluster", "plugins": [bridge(&bridge_name(&id), "10.1.0.5/24")]})
                .to_string(),
        )
        .unwrap();
        let conf = json!({
            "cniVersion": "1.0.0", "name": "jackfield", "type": "jackfield",
            "capabilities": {"io.kubernetes.cri.pod-annotations": true},
            "namespaceIsolation": true,
            "clusterNetwork": cluster,
            "agentSocket": dir.path().join("run/agent.sock"),
            "journalDir": dir.path().join("journal"),
            "binDir": cni_bin(),
        });
        let lab = Lab {
            node,
            namespace: id,
            admin,
            proxy: Proxy::start(server),
            beside_the_api_server: false,
            has_own_sysfs: true,
            dir,
            conf,
        };
        lab.renew_token();
        lab
    }

    /// A node whose agent runs and knows all there is.
    pub(crate) fn with_agent() -> (Lab, AgentProcess) {
        let lab = Lab::new();
        let agent = lab.start_agent();
        (lab, agent)
    }

    /// Starts an agent and waits until it is ready.
    pub(crate) fn start_agent(&self) -> AgentProcess {
        let agent = AgentProcess::start(self);
        agent.wait_until_ready();
        agent
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("run/agent.sock")
    }

    /// What is still owed, by file.
    pub(crate) fn owed(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path("journal/publish")) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// The node configuration.
    pub(crate) fn conf(&self) -> &Value {
        &self.conf
    }

    /// Sets a key of the node configuration; `null` takes it out.
    pub(crate) fn configure(&mut self, key: &str, value: Value) {
        let conf = self.conf.as_object_mut().unwrap();
        match value {
            Value::Null => conf.remove(key),
            value => conf.insert(key.to_owned(), value),
        };
    }

    /// A new token of the agent's account, bound to its pod on this node, as kubelet would put it
    /// into the pod.
    pub(crate) fn renew_token(&self) {
        let token = self.agent_token(&self.node);
        fs::write(self.path("token"), token).unwrap();
        fs::write(
            self.path("kubeconfig"),
            json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "a",
                "clusters": [{"name": "a", "cluster": {"server": self.proxy.url()}}],
                "users": [{"name": "a", "user": {"tokenFile": self.path("token")}}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            })
            .to_string(),
        )
        .unwrap();
    }

    /// From now on the kubeconfig is that of an account with the agent's rights, on every node: what
    /// an administrator gives to a node without an agent.
    pub(crate) fn own_account(&self) {
        let name = &self.namespace;
        let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
        self.admin
            .create(&accounts, &json!({"metadata": {"name": "plugin"}}));
        // The agent's role, but what confines its account to one node.
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        let mut rules = self.admin.get(&format!("{roles}/{NAME}")).unwrap()["rules"].take();
        for rule in rules.as_array_mut().unwrap() {
            let verbs = rule["verbs"].as_array_mut().unwrap();
            verbs.retain(|verb| verb != "confined");
        }
        self.admin
            .create(roles, &json!({"metadata": {"name": name}, "rules": rules}));
        self.admin.create(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            &json!({
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": "plugin", "namespace": name}],
            }),
        );
        let answer = self
            .admin
            .create(&format!("{accounts}/plugin/token"), &json!({"spec": {}}));
        fs::write(
            self.path("token"),
            answer["status"]["token"].as_str().unwrap(),
        )
        .unwrap();
    }

    /// A token as an agent on `node` has it.
    pub(crate) fn agent_token(&self, node: &str) -> String {
        token::of_agent(&self.admin, SYSTEM, NAME, node)
    }

    /// A definition in the lab's namespace, of a bridge with an address.
    pub(crate) fn definition(&self, name: &str, address: &str) {
        self.definition_of(name, &bridge(name, address));
    }

    /// A definition whose plugin takes the addresses that are asked for.
    pub(crate) fn definition_with_ips(&self, name: &str) {
        let plugin = json!({"type": "bridge", "bridge": name, "ipam": {"type": "static"},
                            "capabilities": {"ips": true}});
        self.definition_of(name, &plugin);
    }

    /// A definition in the lab's namespace whose network uses devices of a resource.
    pub(crate) fn definition_with_devices(&self, name: &str, address: &str, resource: &str) {
        self.definition_of(name, &bridge(name, address));
        let path = format!(
            "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions/{name}",
            self.namespace
        );
        let annotation = json!({"k8s.v1.cni.cncf.io/resourceName": resource});
        self.admin
            .merge(&path, &json!({"metadata": {"annotations": annotation}}));
    }

    /// A definition in the lab's namespace, of one plugin.
    pub(crate) fn definition_of(&self, name: &str, plugin: &Value) {
        let config = json!({"cniVersion": "1.0.0", "name": name, "plugins": [plugin]});
        self.admin.create(
            &format!(
                "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions",
                self.namespace
            ),
            &json!({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                    "metadata": {"name": name}, "spec": {"config": config.to_string()}}),
        );
    }

    /// So many definitions in a namespace of their own.
    pub(crate) fn many_definitions(&self, count: usize) {
        let namespace = format!("{}-many", self.namespace);
        self.admin.create(
            "/api/v1/namespaces",
            &json!({"metadata": {"name": namespace}}),
        );
        let path = format!(
            "/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions"
        );
        std::thread::scope(|scope| {
            for worker in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let admin = Admin::new(Server::get(), "admin");
                    for number in (worker..count).step_by(8) {
                        let config = json!({"cniVersion": "1.0.0", "name": "n", "type": "macvlan",
                            "master": "eth1", "mode": "bridge", "ipam": {"type": "host-local",
                            "ranges": [[{"subnet": format!("10.{}.{}.0/24", number / 250, number % 250)}]]}});
                        admin.create(path, &json!({
                            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                            "metadata": {"name": format!("n{number}")}, "spec": {"config": config.to_string()}}));
                    }
                });
            }
        });
    }

    /// Deletes them: each agent that starts later would read them.
    pub(crate) fn delete_many_definitions(&self) {
        let namespace = format!("{}-many", self.namespace);
        self.admin.delete(&format!(
            "/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions"
        ));
    }

    /// Creates a pod on this node; the answer is its UID.
    pub(crate) fn pod(&self, name: &str, annotations: &Value) -> String {
        let pod = self
            .admin
            .create(&self.pods(), &pod(name, &self.node, annotations));
        pod["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    pub(crate) fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    /// Deletes a pod at once.
    pub(crate) fn delete_pod(&self, name: &str) {
        self.admin.delete(&format!("{}/{name}", self.pods()));
    }

    /// The pod's network-status, parsed; none when it has none.
    pub(crate) fn status(&self, pod: &str) -> Option<Value> {
        let pod = self.admin.get(&format!("{}/{pod}", self.pods()))?;
        let text = pod["metadata"]["annotations"][STATUS].as_str()?;
        Some(serde_json::from_str(text).unwrap())
    }

    /// The events about a pod.
    pub(crate) fn events(&self, pod: &str) -> Vec<Value> {
        let path = format!("/api/v1/namespaces/{}/events", self.namespace);
        let list = self.admin.get(&path).unwrap();
        let events = list["items"].as_array().unwrap().iter();
        events
            .filter(|event| event["involvedObject"]["name"] == pod)
            .cloned()
            .collect()
    }

    /// The events about the lab's node.
    pub(crate) fn events_of_node(&self) -> Vec<Value> {
        let list = self.admin.get("/api/v1/namespaces/default/events").unwrap();
        let events = list["items"].as_array().unwrap().iter();
        events
            .filter(|event| {
                let about = &event["involvedObject"];
                about["kind"] == "Node" && about["name"] == self.node.as_str()
            })
            .cloned()
            .collect()
    }

    /// The network-status, as soon as there is one.
    pub(crate) fn wait_for_status(&self, pod: &str) -> Value {
        let mut status = None;
        eventually("a network-status", || {
            status = self.status(pod);
            status.is_some()
        });
        status.unwrap()
    }

    /// Waits until nothing is owed any more.
    pub(crate) fn wait_until_told(&self) {
        eventually("nothing owed", || self.owed().is_empty());
    }
}

/// The cluster network's bridge: no other lab has it.
fn bridge_name(id: &str) -> String {
    format!("b{id}").chars().take(15).collect()
}

/// A pod's manifest.
pub(crate) fn pod(name: &str, node: &str, annotations: &Value) -> Value {
    json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"nodeName": node, "containers": [{"name": "app", "image": "app"}]},
    })
}

fn bridge(name: &str, address: &str) -> Value {
    json!({"type": "bridge", "bridge": name,
           "ipam": {"type": "static", "addresses": [{"address": address}]}})
}

/// A port that nobody has, nor gets as the near end of a connection.
fn port() -> u16 {
    static PORTS: AtomicU16 = AtomicU16::new(10_000);
    PORTS.fetch_add(1, Ordering::Relaxed)
}

/// The program under test: this build's, or the one that JACKFIELD names.
pub(crate) fn binary() -> String {
    let given = std::env::var("JACKFIELD").ok();
    given.unwrap_or_else(|| env!("CARGO_BIN_EXE_jackfield").to_owned())
}

/// The reference plugins.
pub(crate) fn cni_bin() -> PathBuf {
    let dir = std::env::var_os("CNI_BIN").expect("CNI_BIN: run scripts/test --only api");
    Path::new(&dir).to_owned()
}

/// Waits for something that is to come true soon: in a minute, for tests share the processors.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
