//! The lab's cluster: networks, definitions and pods in, status and events out.

use std::fs;

use serde_json::{Value, json};

use super::{Lab, POD, UPLINK};

impl Lab {
    /// A lab whose pod selects two networks: macvlan with addresses and the default route of its
    /// own, and ptp as `mgmt0`.
    pub(crate) fn with_two_networks() -> Lab {
        let lab = Lab::new();
        lab.definition("demo/storage", &lab.macvlan());
        lab.definition("demo/management", &lab.ptp("10.30.0.0/24"));
        lab.selects_json(&json!([
            { "name": "storage", "ips": ["10.20.0.5/24"], "mac": "02:00:00:00:20:05", "default-route": ["10.20.0.1"] },
            { "name": "management", "interface": "mgmt0" },
        ]));
        lab
    }

    /// Writes the cluster network's configuration.
    pub(crate) fn cluster_network(&self, version: &str, plugins: &[Value]) {
        let conf = json!({ "cniVersion": version, "name": "cluster", "plugins": plugins });
        self.write("conf/10-cluster.conflist", &conf.to_string());
    }

    /// A bridge plugin that takes addresses from `subnet`.
    pub(crate) fn bridge(&self, bridge: &str, subnet: &str) -> Value {
        json!({ "type": "bridge", "bridge": bridge, "isGateway": true,
                "ipam": self.host_local(&[subnet], true) })
    }

    /// A host-local IPAM section whose leases are the lab's.
    pub(crate) fn host_local(&self, subnets: &[&str], default_routes: bool) -> Value {
        let ranges: Vec<Value> = subnets
            .iter()
            .map(|subnet| json!([{ "subnet": subnet }]))
            .collect();
        let mut ipam =
            json!({ "type": "host-local", "dataDir": self.path("ipam"), "ranges": ranges });
        if default_routes {
            let routes: Vec<Value> = subnets
                .iter()
                .map(|subnet| json!({ "dst": if subnet.contains(':') { "::/0" } else { "0.0.0.0/0" } }))
                .collect();
            ipam["routes"] = json!(routes);
        }
        ipam
    }

    /// A macvlan plugin that takes `ips` and `mac` from the pod, by static IPAM.
    pub(crate) fn macvlan(&self) -> Value {
        json!({ "cniVersion": "1.0.0", "type": "macvlan", "master": UPLINK, "mode": "bridge",
                "capabilities": { "ips": true, "mac": true }, "ipam": { "type": "static" } })
    }

    /// A macvlan plugin with an address of its own.
    pub(crate) fn macvlan_of_its_own(&self) -> Value {
        let mut config = self.macvlan();
        config["ipam"] = json!({ "type": "static", "addresses": [{ "address": "10.20.0.9/24" }] });
        config
    }

    /// A ptp plugin that takes addresses from `subnet`.
    pub(crate) fn ptp(&self, subnet: &str) -> Value {
        json!({ "cniVersion": "1.0.0", "type": "ptp", "ipam": self.host_local(&[subnet], false) })
    }

    /// Puts a NetworkAttachmentDefinition into the cluster; `object` is `namespace/name`.
    pub(crate) fn definition(&self, object: &str, config: &Value) {
        self.definition_text(object, &config.to_string());
    }

    /// The same, with `spec.config` as it is, right or wrong.
    pub(crate) fn definition_text(&self, object: &str, config: &str) {
        let (namespace, name) = object.split_once('/').unwrap();
        let manifest = json!({
            "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "config": config },
        });
        self.write(
            &format!("cluster/nad-{namespace}-{name}.json"),
            &manifest.to_string(),
        );
    }

    /// The lab's pod asks for these networks: the annotation's value.
    pub(crate) fn selects(&self, networks: &str) {
        self.pod_with(POD, json!({ "k8s.v1.cni.cncf.io/networks": networks }));
    }

    /// The same, as the JSON form.
    pub(crate) fn selects_json(&self, networks: &Value) {
        self.selects(&networks.to_string());
    }

    /// Puts a pod with annotations into the cluster.
    pub(crate) fn pod_with(&self, pod: &str, annotations: Value) {
        let (namespace, name) = pod.split_once('/').unwrap();
        let manifest = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": namespace, "annotations": annotations },
        });
        self.write(
            &format!("cluster/pod-{namespace}-{name}.json"),
            &manifest.to_string(),
        );
    }

    /// The network-status that the cluster was told.
    pub(crate) fn status(&self) -> Vec<Value> {
        let path = self
            .path("cluster/status")
            .join(POD)
            .join("network-status.json");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        serde_json::from_str(&text).unwrap()
    }

    /// The events that the cluster was told: `type reason message`.
    pub(crate) fn events(&self) -> Vec<String> {
        let path = self.path("cluster/status").join(POD).join("events.jsonl");
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .map(|line| {
                let event: Value = serde_json::from_str(line).unwrap();
                let part = |key: &str| event[key].as_str().unwrap().to_owned();
                format!("{} {} {}", part("type"), part("reason"), part("message"))
            })
            .collect()
    }
}
