//! Pods on the node: made, waited for, looked at, deleted.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use super::deployment::is_condition;
use super::{Lab, NETWORKS, PATIENCE, RESOURCE, STATUS, eventually};

/// What runs in the tests' pods.
const WORKLOAD: &str = "jackfield.test/workload:1";

/// A pod to be made.
pub(crate) struct Pod(Value);

impl Pod {
    /// A pod of one container, on the node of the lab.
    pub(crate) fn new(lab: &Lab, name: &str) -> Pod {
        Pod(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": {}},
            "spec": {
                "nodeName": lab.machine.name, "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": false, "enableServiceLinks": false,
                "dnsPolicy": "Default",
                "containers": [container("app")],
            },
        }))
    }

    /// With these networks.
    pub(crate) fn networks(mut self, networks: &str) -> Pod {
        self.0["metadata"]["annotations"][NETWORKS] = json!(networks);
        self
    }

    /// With so many devices for its container.
    pub(crate) fn devices(mut self, count: u32) -> Pod {
        self.0["spec"]["containers"][0]["resources"] = limits(count);
        self
    }

    /// As it will be sent, to be changed.
    pub(crate) fn manifest(&mut self) -> &mut Value {
        &mut self.0
    }
}

/// A container that runs until it is ended.
pub(crate) fn container(name: &str) -> Value {
    json!({"name": name, "image": WORKLOAD, "imagePullPolicy": "Never"})
}

/// So many of the device plugin's devices.
pub(crate) fn limits(count: u32) -> Value {
    json!({"limits": {RESOURCE: count.to_string()}})
}

impl Lab {
    pub(crate) fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    /// Makes a pod; the answer is its UID.
    pub(crate) fn create(&self, pod: &Pod) -> String {
        let accounts = format!(
            "/api/v1/namespaces/{}/serviceaccounts/default",
            self.namespace
        );
        eventually("the namespace has an account for pods", || {
            self.admin.get(&accounts).is_some()
        });
        let made = self.admin.create(&self.pods(), &pod.0);
        made["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// Makes a pod and waits until it runs.
    pub(crate) fn run(&self, pod: &Pod) -> String {
        let uid = self.create(pod);
        self.wait_until_running(pod.0["metadata"]["name"].as_str().unwrap());
        uid
    }

    pub(crate) fn pod(&self, name: &str) -> Option<Value> {
        self.admin.get(&format!("{}/{name}", self.pods()))
    }

    #[track_caller]
    pub(crate) fn wait_until_running(&self, name: &str) {
        self.wait_for_containers(name, |container| container["ready"] == true);
    }

    /// Waits until the pod's containers were started again. Its status may be of before until then.
    #[track_caller]
    pub(crate) fn wait_until_restarted(&self, name: &str) {
        self.wait_for_containers(name, |container| {
            container["ready"] == true && container["restartCount"].as_u64() > Some(0)
        });
    }

    #[track_caller]
    fn wait_for_containers(&self, name: &str, is_so: impl Fn(&Value) -> bool) {
        let mut status = Value::Null;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            status = self.pod(name).unwrap()["status"].clone();
            assert_ne!(status["phase"], "Failed", "{status}");
            // kubelet tells the phase before it has seen all containers after a restart.
            let containers = status["containerStatuses"].as_array();
            let are_so = containers.is_some_and(|all| all.iter().all(&is_so));
            if status["phase"] == "Running" && are_so {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{name} does not run: {status} {:#?}", self.events(name));
    }

    /// Deletes pods and waits until the API server has none of them.
    pub(crate) fn delete(&self, names: &[&str]) {
        for name in names {
            let path = format!("{}/{name}", self.pods());
            let deleted = self.admin.request(Method::DELETE, &path, "", None);
            deleted.unwrap_or_else(|error| panic!("DELETE {path}: {error:?}"));
        }
        for name in names {
            eventually("the pod is gone", || self.pod(name).is_none());
        }
    }

    /// Keeps one pod like this there, under a name of its own each time.
    pub(crate) fn replicas(&self, name: &str, pod: &Pod) {
        let labels = json!({"app": name});
        let mut spec = pod.0["spec"].clone();
        // A pod that was refused for good is replaced only by the scheduler's choice of a node.
        spec.as_object_mut().unwrap().remove("nodeName");
        spec["nodeSelector"] = json!({"kubernetes.io/hostname": self.machine.name});
        let annotations = &pod.0["metadata"]["annotations"];
        let template =
            json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": spec});
        let spec =
            json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
        let path = format!("/apis/apps/v1/namespaces/{}/replicasets", self.namespace);
        self.admin
            .create(&path, &json!({"metadata": {"name": name}, "spec": spec}));
    }

    /// Waits until there is a running pod of them.
    #[track_caller]
    pub(crate) fn wait_for_replica(&self, name: &str) {
        let path = format!("{}?labelSelector=app%3D{name}", self.pods());
        eventually("a replica runs", || {
            let pods = self.admin.get(&path).unwrap();
            let mut pods = pods["items"].as_array().unwrap().iter();
            pods.any(|pod| is_condition(pod, "Ready"))
        });
    }

    /// Deletes them, the refused ones too.
    pub(crate) fn remove_replicas(&self, name: &str) {
        let set = format!(
            "/apis/apps/v1/namespaces/{}/replicasets/{name}",
            self.namespace
        );
        let deleted = self.admin.request(Method::DELETE, &set, "", None);
        deleted.unwrap();
        let path = format!("{}?labelSelector=app%3D{name}", self.pods());
        eventually("the replicas are gone", || {
            self.admin.get(&path).unwrap()["items"] == json!([])
        });
    }

    /// The pod's network-status, once it has one of so many entries.
    #[track_caller]
    pub(crate) fn status(&self, name: &str, entries: usize) -> Vec<Value> {
        let mut status: Vec<Value> = Vec::new();
        let what = format!("{name} has a network-status of {entries} entries");
        eventually(&what, || {
            let pod = self.pod(name).unwrap();
            let text = pod["metadata"]["annotations"][STATUS].as_str();
            status = text.map_or_else(Vec::new, |text| serde_json::from_str(text).unwrap());
            status.len() == entries
        });
        status
    }

    /// What `kubectl describe pod` shows of a pod's events: type, reason, message.
    pub(crate) fn events(&self, name: &str) -> Vec<String> {
        let selector = format!("involvedObject.name%3D{name}");
        let path = format!(
            "/api/v1/namespaces/{}/events?fieldSelector={selector}",
            self.namespace
        );
        let events = self.admin.get(&path).unwrap();
        let events = events["items"].as_array().unwrap().iter();
        events
            .map(|it| {
                let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
                format!("{} {}: {}", text("type"), text("reason"), text("message"))
            })
            .collect()
    }

    /// Waits for an event of a pod with all of these words.
    #[track_caller]
    pub(crate) fn wait_for_event(&self, name: &str, words: &[&str]) -> String {
        let mut events = Vec::new();
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            events = self.events(name);
            let found = events
                .iter()
                .find(|event| words.iter().all(|word| event.contains(word)));
            if let Some(event) = found {
                return event.clone();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("no event of {name} with {words:?}: {events:#?}");
    }
}
