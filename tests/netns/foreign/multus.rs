//! What Multus leaves on a node: a pod that the plugins attached, and its cache.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::lab::{Lab, real_plugins};

/// A pod as Multus attached it: eth0 (bridge), net1 and data0 (macvlan).
pub(super) struct Multus {
    configs: Vec<(&'static str, &'static str, Value)>,
}

impl Multus {
    /// Attaches the lab's pod with the plugins themselves and writes what Multus would keep.
    pub(super) fn attach(lab: &mut Lab) -> Multus {
        lab.recorder("bridge-rec", "bridge", "");
        lab.recorder("mac-rec", "macvlan", "");
        let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
        bridge["type"] = json!("bridge-rec");
        lab.cluster_network("1.0.0", &[bridge.clone()]);
        bridge["name"] = json!("cluster");
        bridge["cniVersion"] = json!("1.0.0");
        let macvlan = |name: &str, ipam: Value| {
            json!({ "cniVersion": "1.0.0", "name": name, "type": "mac-rec", "master": "uplink0",
                    "mode": "bridge", "capabilities": { "ips": true, "mac": true }, "ipam": ipam })
        };
        let leased = lab.host_local(&["10.8.0.0/24"], false);
        let configs = vec![
            ("cluster", "eth0", bridge),
            (
                "demo/net-a",
                "net1",
                macvlan("net-a", json!({ "type": "static" })),
            ),
            ("demo/net-b", "data0", macvlan("net-b", leased)),
        ];
        let multus = Multus { configs };
        multus.write(lab);
        fs::remove_file(lab.path("log/calls")).unwrap();
        multus
    }

    fn write(&self, lab: &Lab) {
        let mut delegates = Vec::new();
        for (label, ifname, config) in &self.configs {
            let text = config.to_string();
            let mut given = config.clone();
            let capabilities = if *ifname == "net1" {
                json!({ "ips": ["10.9.0.5/24"], "mac": "02:00:00:00:0a:01" })
            } else {
                json!({})
            };
            given["runtimeConfig"] = capabilities.clone();
            let result = plugin(lab, "ADD", ifname, &given, &args(lab));
            let name = config["name"].as_str().unwrap();
            let cached = json!({
                "kind": "cniCacheV1", "containerId": lab.container(), "config": STANDARD.encode(&text),
                "ifName": ifname, "networkName": name, "netns": lab.pod.path(),
                "cniArgs": [["IgnoreUnknown", "true"], ["K8S_POD_NAMESPACE", "demo"],
                            ["K8S_POD_NAME", "web"], ["IgnoreUnknown", "1"]],
                "capabilityArgs": capabilities, "result": result,
            });
            lab.write(
                &format!("multus/results/{name}-{}-{ifname}", lab.container()),
                &cached.to_string(),
            );
            let mut delegate = json!({
                "Conf": { "ipam": {} }, "ConfList": {}, "Name": label,
                "IsFilterV4Gateway": false, "IsFilterV6Gateway": false, "Bytes": STANDARD.encode(&text),
            });
            if *ifname == "net1" {
                delegate["macRequest"] = capabilities["mac"].clone();
                delegate["ipRequest"] = capabilities["ips"].clone();
            }
            if *ifname == "data0" {
                delegate["ifnameRequest"] = json!("data0");
            }
            delegates.push(delegate);
        }
        lab.write(
            &format!("multus/{}", lab.container()),
            &json!(delegates).to_string(),
        );
    }

    /// The cluster still has the definitions that the pod was attached by.
    pub(super) fn definitions_as_attached(&self, lab: &Lab) {
        for (label, _, config) in &self.configs[1..] {
            lab.definition(label, config);
        }
        lab.selects_json(&json!([{ "name": "net-a" }, { "name": "net-b", "interface": "data0" }]));
    }

    /// No address is taken any more.
    pub(super) fn assert_leases_freed(&self, lab: &Lab) {
        let left = lab.leftovers();
        assert!(left.with("/ipam/").is_empty(), "{left:?}");
    }
}

fn args(lab: &Lab) -> String {
    format!(
        "IgnoreUnknown=1;K8S_POD_INFRA_CONTAINER_ID={}",
        lab.container()
    )
}

/// The cache file of one interface.
pub(super) fn result_of(lab: &Lab, ifname: &str) -> PathBuf {
    let end = format!("-{}-{ifname}", lab.container());
    let mut files = fs::read_dir(lab.path("multus/results")).unwrap().flatten();
    let file = files.find(|entry| entry.file_name().to_string_lossy().ends_with(&end));
    file.unwrap().path()
}

/// Cuts a file in half, as a full disk or a power loss does.
pub(super) fn tear(path: &Path) {
    let text = fs::read(path).unwrap();
    fs::write(path, &text[..text.len() / 2]).unwrap();
}

/// Runs a plugin as a runtime would, without Jackfield: its result.
pub(super) fn plugin(lab: &Lab, verb: &str, ifname: &str, config: &Value, args: &str) -> Value {
    let dirs = format!("{}:{}", lab.path("bin").display(), real_plugins().display());
    let binary = lab.path("bin").join(config["type"].as_str().unwrap());
    let mut child = Command::new("ip")
        .args(["netns", "exec", lab.node.name()])
        .arg(binary)
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", lab.container())
        .env("CNI_NETNS", lab.pod.path())
        .env("CNI_IFNAME", ifname)
        .env("CNI_PATH", dirs)
        .env("CNI_ARGS", args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(config.to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    serde_json::from_str(&text).unwrap_or_default()
}
