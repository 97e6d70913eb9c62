//! Jackfield on the node, as `deploy/` puts it there.

use std::collections::HashMap;
use std::path::Path;

use http::Method;
use prost::Message;
use serde_json::{Value, json};

use super::{Lab, SYSTEM, eventually, grpc, manifests};

/// Where the installer puts the node's configuration.
const CONF: &str = "disk/etc/cni/net.d/00-jackfield.conflist";
/// The image that `scripts/test` made of this build; the second is the same under another tag.
const IMAGES: [&str; 2] = ["jackfield.test/jackfield:1", "jackfield.test/jackfield:2"];

/// `runtime.v1.RuntimeService/Status` of CRI, as much of it as is needed.
#[derive(Clone, PartialEq, Message)]
struct StatusRequest {
    #[prost(bool, tag = "1")]
    verbose: bool,
}

#[derive(Clone, PartialEq, Message)]
struct StatusResponse {
    #[prost(map = "string, string", tag = "2")]
    info: HashMap<String, String>,
}

impl Lab {
    /// Applies the DaemonSet and its configuration, for this node alone, and waits until agent and
    /// installer are at work.
    pub(crate) fn deploy(&self) {
        self.deploy_with(json!({}));
    }

    /// The same with more keys in the node's configuration.
    pub(crate) fn deploy_with(&self, mut conf: Value) {
        // Every call, in a file that a test can read.
        conf["logFile"] = json!("/var/log/jackfield");
        conf["logLevel"] = json!("verbose");
        let name = self.daemon_set_name();
        let configmaps = format!("/api/v1/namespaces/{SYSTEM}/configmaps");
        let data = json!({"conf.json": conf.to_string()});
        self.admin.create(
            &configmaps,
            &json!({"metadata": {"name": name}, "data": data}),
        );
        self.create_daemon_set();
        self.wait_for_jackfield();
    }

    /// Creates the DaemonSet of `deploy/`, whose configuration is there.
    pub(crate) fn create_daemon_set(&self) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/daemonset.yaml");
        let mut objects = manifests::of_file(&file).into_iter();
        let set = objects.find(|object| object["kind"] == "DaemonSet");
        self.admin
            .create(&daemon_sets(), &self.on_this_node(set.unwrap()));
    }

    /// Applies the DaemonSet as the chart makes it of these values, and waits until its pod is the
    /// new one and ready.
    pub(crate) fn deploy_chart(&self, values: &[&str]) {
        let objects = crate::deploy::rendered(values);
        let set = self.on_this_node(crate::deploy::find(&objects, "DaemonSet").clone());
        if self.admin.get(&self.daemon_set_path()).is_none() {
            let data = json!({"conf.json": json!({"logFile": "/var/log/jackfield", "logLevel": "verbose"}).to_string()});
            self.admin.create(
                &format!("/api/v1/namespaces/{SYSTEM}/configmaps"),
                &json!({"metadata": {"name": self.daemon_set_name()}, "data": data}),
            );
            self.admin.create(&daemon_sets(), &set);
        } else {
            let changed = json!({"spec": {"template": set["spec"]["template"]}});
            self.admin.merge(&self.daemon_set_path(), &changed);
        }
        let args = &set["spec"]["template"]["spec"]["containers"][1]["args"];
        eventually("the rollout has ended", || {
            self.agent_pod().is_some_and(|pod| {
                pod["spec"]["containers"][1]["args"] == *args && is_condition(&pod, "Ready")
            })
        });
    }

    /// How often the installer's container was started again, while it runs.
    #[track_caller]
    pub(crate) fn restarts_of_installer(&self) -> u64 {
        let pod = self.agent_pod().unwrap();
        let mut containers = pod["status"]["containerStatuses"]
            .as_array()
            .unwrap()
            .iter();
        let install = containers.find(|it| it["name"] == "install").unwrap();
        assert_eq!(install["ready"], true, "{install}");
        install["restartCount"].as_u64().unwrap()
    }

    /// Waits until the agent's pod is ready and the node's configuration is Jackfield's.
    pub(crate) fn wait_for_jackfield(&self) {
        eventually("the agent's pod is ready", || {
            self.agent_pod()
                .is_some_and(|pod| is_condition(&pod, "Ready"))
        });
        let conf = self.machine.path(CONF);
        eventually("it is installed", || conf.exists());
        self.wait_for_network("jackfield");
    }

    /// Waits until containerd, which watches its directory of configurations, uses this network.
    pub(crate) fn wait_for_network(&self, name: &str) {
        self.wait_for_loaded(|config| config["Name"] == name);
    }

    /// The same for a network whose first plugin is this one.
    pub(crate) fn wait_for_plugin(&self, plugin: &str) {
        self.wait_for_loaded(|config| config["Plugins"][0]["Network"]["type"] == plugin);
    }

    fn wait_for_loaded(&self, is_so: impl Fn(&Value) -> bool) {
        let socket = self.machine.path("run/containerd/containerd.sock");
        let method = "/runtime.v1.RuntimeService/Status";
        eventually("containerd has loaded the network", || {
            let answer = grpc::call(&socket, method, &StatusRequest { verbose: true });
            let status = answer.map(|it| StatusResponse::decode(it).unwrap());
            let status = status.unwrap_or_default();
            let loaded = status.info.get("cniconfig").map(String::as_str);
            let loaded: Value = serde_json::from_str(loaded.unwrap_or("{}")).unwrap();
            let mut networks = loaded["Networks"].as_array().into_iter().flatten();
            networks.any(|it| is_so(&it["Config"]))
        });
    }

    /// The manifest of the DaemonSet, for this node.
    fn on_this_node(&self, mut set: Value) -> Value {
        let name = self.daemon_set_name();
        let labels = json!({"app.kubernetes.io/name": name});
        set["metadata"]["name"] = json!(name);
        set["spec"]["selector"]["matchLabels"] = labels.clone();
        let template = &mut set["spec"]["template"];
        template["metadata"]["labels"] = labels;
        let spec = &mut template["spec"];
        spec["nodeSelector"]["kubernetes.io/hostname"] = json!(self.machine.name);
        for container in spec["containers"].as_array_mut().unwrap() {
            container["image"] = json!(IMAGES[0]);
        }
        for volume in spec["volumes"].as_array_mut().unwrap() {
            if volume["name"] == "configuration" {
                volume["configMap"]["name"] = json!(name);
            }
        }
        set
    }

    /// Gives the DaemonSet another image, as an upgrade does, and waits until its pod has it.
    pub(crate) fn roll(&self) {
        let next = std::env::var("NEXT_IMAGE").expect("NEXT_IMAGE: run scripts/test --only node");
        self.machine
            .run(&["ctr", "-n", "k8s.io", "images", "import", &next]);
        let container = |name: &str| json!({"name": name, "image": IMAGES[1]});
        let containers = json!([container("agent"), container("install")]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        self.admin
            .request(
                Method::PATCH,
                &self.daemon_set_path(),
                "application/strategic-merge-patch+json",
                Some(&patch),
            )
            .unwrap();
        eventually("the agent's pod is the new one, and ready", || {
            self.agent_pod().is_some_and(|pod| {
                pod["spec"]["containers"][0]["image"] == IMAGES[1] && is_condition(&pod, "Ready")
            })
        });
    }

    /// Ends the agent's process; its container is started again.
    pub(crate) fn kill_agent(&self) {
        self.machine
            .run(&["pkill", "-KILL", "-f", "^/jackfield agent"]);
    }

    /// Deletes the DaemonSet and waits until its pod is gone.
    pub(crate) fn remove_daemon_set(&self) {
        self.admin
            .request(Method::DELETE, &self.daemon_set_path(), "", None)
            .unwrap();
        eventually("the agent is gone", || {
            let selector = format!("app.kubernetes.io/name%3D{}", self.daemon_set_name());
            let path = format!("/api/v1/namespaces/{SYSTEM}/pods?labelSelector={selector}");
            self.admin.get(&path).unwrap()["items"] == json!([])
        });
    }

    fn daemon_set_path(&self) -> String {
        format!(
            "/apis/apps/v1/namespaces/{SYSTEM}/daemonsets/{}",
            self.daemon_set_name()
        )
    }

    pub(crate) fn daemon_set_name(&self) -> String {
        format!("jackfield-{}", self.machine.name)
    }

    /// The pod of the agent, once there is one that is not about to go.
    pub(crate) fn agent_pod(&self) -> Option<Value> {
        let selector = format!("app.kubernetes.io/name%3D{}", self.daemon_set_name());
        let path = format!("/api/v1/namespaces/{SYSTEM}/pods?labelSelector={selector}");
        let pods = self.admin.get(&path)?;
        let mut pods = pods["items"].as_array()?.iter();
        pods.find(|pod| pod["metadata"]["deletionTimestamp"].is_null())
            .cloned()
    }
}

fn daemon_sets() -> String {
    format!("/apis/apps/v1/namespaces/{SYSTEM}/daemonsets")
}

/// Whether a pod's condition of this type is true.
pub(crate) fn is_condition(pod: &Value, condition: &str) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|it| it["type"] == condition && it["status"] == "True")
    })
}
