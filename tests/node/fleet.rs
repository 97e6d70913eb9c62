//! A node of the real Multus, moved by the DaemonSet and given back, while its pods run.

use std::fs;
use std::path::Path;

use http::Method;
use serde_json::{Value, json};

use crate::lab::{Lab, Pod, Server, eventually};

const MULTUS: &str = "disk/etc/cni/net.d/00-multus.conf";
const OURS: &str = "disk/etc/cni/net.d/00-jackfield.conflist";

/// A node with Multus (thin) in front of its bridge.
fn node_of_multus() -> Lab {
    let lab = Lab::new();
    let machine = &lab.machine;
    // One plugin and no list: of a list that a file holds, Multus 4.3 itself cannot detach a pod.
    let list = machine.path("disk/etc/cni/net.d/10-cluster.conflist");
    let network: Value = serde_json::from_str(&fs::read_to_string(&list).unwrap()).unwrap();
    let mut single = network["plugins"][0].clone();
    single["cniVersion"] = json!("1.0.0");
    single["name"] = json!("cluster");
    machine.write("disk/etc/cni/net.d/10-cluster.conf", &single.to_string());
    fs::remove_file(list).unwrap();
    let program = std::env::var("MULTUS").expect("MULTUS: run scripts/test --only node");
    fs::copy(Path::new(&program), machine.path("disk/opt/cni/bin/multus")).unwrap();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {
            "server": Server::url_of_nodes(), "certificate-authority": machine.path("ca.crt")}}],
        "users": [{"name": "a", "user": {"token": "admin"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]});
    let file = "etc/cni/net.d/multus.d/multus.kubeconfig";
    machine.write(&format!("disk/{file}"), &kubeconfig.to_string());
    let conf = json!({"cniVersion": "1.0.0", "name": "multus-cni-network", "type": "multus",
        "clusterNetwork": "/etc/cni/net.d/10-cluster.conf", "kubeconfig": format!("/{file}")});
    machine.write(MULTUS, &conf.to_string());
    lab.wait_for_network("multus-cni-network");
    lab
}

fn is_there(lab: &Lab, file: &str) -> bool {
    lab.machine.path(file).exists()
}

#[test]
fn a_node_moves_by_the_daemon_set_once_no_pod_would_fail_and_back() {
    let lab = node_of_multus();
    let before = fs::read(lab.machine.path(MULTUS)).unwrap();
    lab.definition("storage", "10.2.0.0/24", &json!({}));
    lab.definition("old", "10.3.0.0/24", &json!({}));
    lab.run(&Pod::new(&lab, "first").networks("storage"));
    lab.run(&Pod::new(&lab, "second").networks("old"));
    let old = format!(
        "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions/old",
        lab.namespace
    );
    lab.admin.request(Method::DELETE, &old, "", None).unwrap();

    // A DaemonSet that was told nothing of Multus.
    lab.deploy_chart(&[]);
    lab.wait_for_event_of_node(&[
        "MultusStays",
        "00-multus.conf is the configuration of Multus",
    ]);
    assert_eq!(lab.restarts_of_installer(), 0);
    // One that moves the node, on which a pod would fail.
    lab.deploy_chart(&["--set", "migration.fromMultus=true"]);
    lab.wait_for_event_of_node(&["MigrationWaits", "1 of this node's pods would fail"]);
    assert_eq!(lab.restarts_of_installer(), 0);
    assert!(is_there(&lab, MULTUS) && !is_there(&lab, OURS));
    lab.definition("old", "10.3.0.0/24", &json!({}));
    lab.wait_for_event_of_node(&["Installed"]);
    assert!(is_there(&lab, OURS) && !is_there(&lab, MULTUS));
    lab.wait_for_plugin("jackfield");
    lab.run(&Pod::new(&lab, "third").networks("storage"));
    assert_eq!(lab.calls("ADD", "third"), 1);
    assert_eq!(lab.status("third", 2)[1]["interface"], "net1");
    // What Multus attached goes without a trace.
    lab.delete(&["first"]);
    assert_eq!(lab.restarts_of_installer(), 0);

    lab.deploy_chart(&["--set", "migration.fromMultus=true,migration.back=true"]);
    lab.wait_for_event_of_node(&["MultusStays", "Multus is the node's network again"]);
    assert_eq!(fs::read(lab.machine.path(MULTUS)).unwrap(), before);
    assert!(!is_there(&lab, OURS));
    assert_eq!(lab.restarts_of_installer(), 0);
    lab.wait_for_plugin("multus");
    lab.run(&Pod::new(&lab, "fourth").networks("storage"));
    assert_eq!(
        (lab.calls("ADD", "fourth"), lab.status("fourth", 2).len()),
        (0, 2)
    );

    lab.remove_daemon_set();
    lab.delete(&["second", "third", "fourth"]);
    eventually("all that jackfield attached is detached", || {
        let uninstall = ["/opt/cni/bin/jackfield", "uninstall"];
        lab.machine.try_run(&uninstall).0
    });
    assert!(!is_there(&lab, "disk/opt/cni/bin/jackfield"));
    assert!(!is_there(&lab, "disk/var/lib/jackfield"));
}
