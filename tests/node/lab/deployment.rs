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
        self.admin.create(
            &format!("/apis/apps/v1/namespaces/{SYSTEM}/daemonsets"),
            &self.daemon_set(),
        );
        self.wait_for_jackfield();
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
        let socket = self.machine.path("run/containerd/containerd.sock");
        let method = "/runtime.v1.RuntimeService/Status";
        eventually("containerd has loaded the network", || {
            let answer = grpc::call(&socket, method, &StatusRequest { verbose: true });
            let status = answer.map(|it| StatusResponse::decode(it).unwrap());
            let status = status.unwrap_or_default();
            let loaded = status.info.get("cniconfig").map(String::as_str);
            let loaded: Value = serde_json::from_str(loaded.unwrap_or("{}")).unwrap();
            let mut networks = loaded["Networks"].as_array().into_iter().flatten();
            networks.any(|it| it["Config"]["Name"] == name)
        });
    }

    /// The manifest of the DaemonSet, for this node.
    fn daemon_set(&self) -> Value {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/daemonset.yaml");
        let of_kind = |kind| move |object: &Value| object["kind"] == kind;
        let mut set = manifests::of_file(&file)
            .into_iter()
            .find(of_kind("DaemonSet"));
        let set = set.as_mut().unwrap();
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
        set.take()
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

/// Whether a pod's condition of this type is true.
pub(crate) fn is_condition(pod: &Value, condition: &str) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|it| it["type"] == condition && it["status"] == "True")
    })
}
