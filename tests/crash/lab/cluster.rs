//! The files of the lab's node and cluster.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};

use super::Lab;
use super::plugins::real_plugins;
use crate::table::call::Verb;

/// The annotation of an ADD.
const FIRST: &str = r#"[{"name":"storage","ips":["10.20.0.5/24"],"mac":"02:00:00:00:20:05","default-route":["10.20.0.1"]},
      {"name":"management","interface":"mgmt0"}]"#;
/// The annotation after which storage goes, management gets another interface, and backup comes.
const OTHERS: &str = r#"[{"name":"backup"},{"name":"management","interface":"mgmt1"}]"#;
/// The cluster network.
const CLUSTER: &str = r#"{"cniVersion":"1.0.0","name":"cluster","plugins":[{"type":"wrapped-bridge","bridge":"cni0","isGateway":true,
    "ipam":{"type":"host-local","dataDir":"DIR/ipam","subnet":"10.10.0.0/24","routes":[{"dst":"0.0.0.0/0"}]}}]}"#;
const DEFINITIONS: &str = r#"
kind: NetworkAttachmentDefinition
metadata: { name: storage, namespace: demo }
spec:
  config: '{"cniVersion":"1.0.0","type":"wrapped-macvlan","master":"uplink0","mode":"bridge",
    "capabilities":{"ips":true,"mac":true},"ipam":{"type":"static"}}'
---
kind: NetworkAttachmentDefinition
metadata: { name: management, namespace: demo }
spec:
  config: '{"cniVersion":"1.0.0","type":"wrapped-ptp",
    "ipam":{"type":"host-local","dataDir":"DIR/ipam","subnet":"10.30.0.0/24"}}'
---
kind: NetworkAttachmentDefinition
metadata: { name: backup, namespace: demo }
spec:
  config: '{"cniVersion":"1.0.0","type":"wrapped-macvlan","master":"uplink0","mode":"bridge",
    "ipam":{"type":"static","addresses":[{"address":"10.40.0.5/24"}]}}'
"#;
/// The plugin of each network that a test can disturb.
const WRAPPED: [(&str, &str); 3] = [
    ("cluster", "bridge"),
    ("storage", "macvlan"),
    ("management", "ptp"),
];
/// A delegate that fails or runs a script, if the test wants so. Otherwise it is the real plugin.
const WRAPPER: &str = r#"#!/bin/sh
CONTROL=@CONTROL NETWORK=@NETWORK REAL=@REAL
if [ -e $CONTROL/break-$NETWORK ] && [ $CNI_COMMAND = ADD -o ! -s $CONTROL/break-$NETWORK ]; then
  echo '{"code":7,"msg":"broken"}'; exit 1
fi
if [ -e $CONTROL/fault-$NETWORK ]; then : >$CONTROL/hit; . $CONTROL/fault-$NETWORK; fi
exec $REAL
"#;

impl Lab {
    pub(super) fn write_files(&self) {
        for dir in ["bin", "cluster", "net.d", "cni-bin"] {
            fs::create_dir_all(self.path(dir)).unwrap();
        }
        for (network, plugin) in WRAPPED {
            let script = WRAPPER
                .replace("@CONTROL", self.control.path().to_str().unwrap())
                .replace("@NETWORK", network)
                .replace("@REAL", real_plugins().join(plugin).to_str().unwrap());
            let path = self.path("bin").join(format!("wrapped-{plugin}"));
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for plugin in ["host-local", "static"] {
            link_once(&real_plugins().join(plugin), &self.path("bin").join(plugin));
        }
        self.write("10-cluster.conflist", CLUSTER);
        self.write("net.d/10-cluster.conflist", CLUSTER);
        self.write("cluster/all.yaml", DEFINITIONS);
        self.select(FIRST);
        let mut template = self.conf(Verb::Install);
        template.as_object_mut().unwrap().remove("clusterNetwork");
        self.write("template.json", &template.to_string());
    }

    /// The node configuration of a call.
    pub(super) fn conf(&self, verb: Verb) -> Value {
        let dir = |name: &str| json!(self.path(name));
        let mut conf = json!({
            "cniVersion": "1.0.0", "name": "jackfield", "type": "jackfield",
            "clusterNetwork": dir("10-cluster.conflist"), "manifestDir": dir("cluster"),
            "binDir": dir("bin"), "journalDir": dir("journal"),
        });
        if matches!(verb, Verb::Gc | Verb::Status) {
            conf["cniVersion"] = json!("1.1.0");
            conf["cni.dev/valid-attachments"] = json!([]);
        }
        if let Ok(limit) = fs::read_to_string(self.control("limit")) {
            conf["deadlines"] = json!({ "delegate": limit });
        }
        conf
    }

    /// Makes the pod's annotation select the networks of `verb`.
    pub(super) fn select_for(&self, verb: Verb) {
        self.select(if verb == Verb::SelectFirst {
            FIRST
        } else {
            OTHERS
        });
    }

    fn select(&self, networks: &str) {
        let pod = format!(
            "kind: Pod\nmetadata:\n  name: web\n  namespace: demo\n  annotations:\n    \
             k8s.v1.cni.cncf.io/networks: '{networks}'\n"
        );
        self.write("cluster/pod.yaml", &pod);
    }

    fn write(&self, name: &str, text: &str) {
        let text = text.replace("DIR", self.dir.path().to_str().unwrap());
        fs::write(self.path(name), text).unwrap();
    }
}

fn link_once(target: &Path, link: &Path) {
    if !link.exists() {
        symlink(target, link).unwrap();
    }
}
