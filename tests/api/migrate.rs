//! From the real Multus to Jackfield and back, with pods that run, by the very commands of
//! `docs/migrate-from-multus.md`.

mod document;
mod host;
mod parity;

use serde_json::json;

use crate::lab::{Lab, NETWORKS, Server};
use document::Block;
use host::Host;

const DOCUMENT: &str = "docs/migrate-from-multus.md";
const CLUSTER: &str = "/etc/cni/net.d/10-cluster.conf";
const MULTUS_CONF: &str = "/etc/cni/net.d/00-multus.conf";
const INSTALL: &str = "docs/install.md";

/// A lab with two networks and the real Multus (thin) in front of the cluster's.
fn node_of_multus() -> (Lab, Host) {
    let lab = Lab::new();
    let host = Host::new(&lab);
    for (name, subnet) in [("net-a", "10.41.0.0/24"), ("net-b", "10.42.0.0/24")] {
        lab.definition_of(name, &host.bridge(name, subnet));
    }
    // Multus writes a pod's status by a PUT, which the agent's account may not, and its client
    // sends a token over TLS alone.
    let server = Server::get();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{ "name": "a", "cluster": {
            "server": format!("https://127.0.0.1:{}", server.port),
            "certificate-authority": server.dir.join("pki/apiserver.crt") } }],
        "users": [{ "name": "a", "user": { "token": "admin" } }],
        "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "a" } }],
    });
    host.write("/etc/cni/net.d/multus.d/multus.kubeconfig", &kubeconfig);
    cluster_network(&host);
    host.write(MULTUS_CONF, &multus_conf());
    (lab, host)
}

fn multus_conf() -> serde_json::Value {
    json!({ "cniVersion": "1.0.0", "name": "multus-cni-network", "type": "multus",
            "clusterNetwork": CLUSTER, "logLevel": "error",
            "kubeconfig": "/etc/cni/net.d/multus.d/multus.kubeconfig" })
}

/// One plugin and no list: of a list that a file holds, Multus 4.3 itself cannot detach a pod.
fn cluster_network(host: &Host) {
    let mut conf = host.bridge("eth0", "10.40.0.0/24");
    conf["cniVersion"] = json!("1.0.0");
    conf["name"] = json!("cluster");
    host.write(CLUSTER, &conf);
}

/// Creates a pod that selects both networks, and its network namespace.
fn pod(lab: &Lab, host: &Host, name: &str) {
    let uid = lab.pod(name, &json!({ NETWORKS: "net-a,net-b" }));
    host.sandbox(name, &uid);
}

const ALL: [&str; 3] = ["eth0", "net1", "net2"];

/// Runs the document's next command, which is to succeed.
#[track_caller]
fn next(host: &Host, blocks: &mut impl Iterator<Item = Block>, begins: &str) -> String {
    let (exit, out) = run(host, blocks, begins);
    assert_eq!(exit, Some(0), "{begins}: {out}");
    out
}

#[track_caller]
fn run(
    host: &Host,
    blocks: &mut impl Iterator<Item = Block>,
    begins: &str,
) -> (Option<i32>, String) {
    let block = blocks.next().expect("another command in the document");
    assert!(
        block.text.starts_with(begins),
        "{begins}: line {}: {}",
        block.line,
        block.text
    );
    host.shell(&block.text)
}

#[test]
fn a_node_moves_from_multus_and_back_with_its_pods_running_and_nothing_leaks() {
    let (lab, host) = node_of_multus();
    let before = host.files("/etc/cni/net.d");
    for name in ["first", "second", "third"] {
        pod(&lab, &host, name);
        host.cni("add", name);
        assert_eq!(lab.interfaces(name), ALL, "by Multus");
    }
    assert_eq!(lab.wait_for_status("first").as_array().unwrap().len(), 3);
    assert_eq!(host.leases(), 9);
    host.write(
        "/checkout/daemon-config.json",
        &json!({ "chrootDir": "/hostroot" }),
    );

    let blocks = &mut document::blocks(DOCUMENT).into_iter();
    next(&host, blocks, "install -m 755");
    let said = next(&host, blocks, "jackfield install --from-multus --dry-run");
    assert!(said.contains("3 pods and"), "{said}");
    assert!(said.contains("0 pods would fail"), "{said}");
    next(
        &host,
        blocks,
        "jackfield install --from-multus --dry-run --multus-daemon",
    );
    assert_eq!(host.files("/etc/cni/net.d"), before, "nothing was changed");
    next(&host, blocks, "jackfield install --from-multus\n");
    assert!(!host.files("/etc/cni/net.d").contains_key("00-multus.conf"));
    let said = next(&host, blocks, "jackfield status");
    assert!(said.contains("ready: cluster network cluster"), "{said}");
    // Others' definitions are in the same cluster, and are not ours to judge.
    let (_, said) = run(&host, blocks, "jackfield doctor\n");
    let (_, found) = host.shell("jackfield doctor -o json");
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let findings = found["findings"].as_array().unwrap().iter();
    let of_others = |it: &&serde_json::Value| it["check"] == "programs" || it["check"] == "devices";
    let ours: Vec<_> = findings.filter(|it| !of_others(it)).collect();
    assert!(ours.is_empty(), "{said} {ours:#?}");

    // Pods of Multus: checked, and detached.
    host.cni("check", "first");
    host.cni("check", "second");
    host.cni("del", "first");
    host.forget("first");
    assert_eq!(host.leases(), 6, "{:?}", host.files("/var/lib/cni"));
    assert_eq!(lab.interfaces("second"), ALL, "the others live on");
    // A new pod is ours.
    pod(&lab, &host, "fourth");
    host.cni("add", "fourth");
    host.cni("check", "fourth");
    assert_eq!(lab.interfaces("fourth"), ALL);
    assert_eq!(lab.wait_for_status("fourth").as_array().unwrap().len(), 3);
    pod(&lab, &host, "fifth");
    host.cni("add", "fifth");
    host.cni("del", "fifth");
    host.forget("fifth");
    // Its netns goes before its DEL comes, as after a reboot of the runtime.
    host.forget("third");
    host.cni("del", "third");
    assert_eq!(host.leases(), 6, "second and fourth");

    // Back, while a pod of each runs.
    let (exit, said) = run(&host, blocks, "jackfield uninstall");
    assert_eq!(exit, Some(1), "{said}");
    assert!(
        said.contains(&format!("{}/fourth", lab.namespace)),
        "{said}"
    );
    let mut now = host.files("/etc/cni/net.d");
    now.retain(|name, _| !name.starts_with(".jackfield"));
    assert_eq!(now, before, "byte for byte");
    pod(&lab, &host, "sixth");
    host.cni("add", "sixth");
    assert_eq!(lab.interfaces("sixth"), ALL, "by Multus again");
    for name in ["second", "sixth", "fourth"] {
        host.cni("del", name);
        host.forget(name);
    }
    next(&host, blocks, "jackfield uninstall");
    assert_eq!(
        blocks.next().map(|block| block.line),
        None,
        "every command was run"
    );

    assert_eq!(host.files("/etc/cni/net.d"), before);
    assert_eq!(host.leases(), 0);
    let left = host.files("/var/lib");
    let left: Vec<&String> = left
        .keys()
        .filter(|name| !name.ends_with("/lock") && !name.contains("last_reserved_ip"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!host.files("/opt/cni/bin").contains_key("jackfield"));
    assert_eq!(host.ports(), 0, "no veth is left on the node");
}

#[test]
fn the_commands_of_the_installation_do_what_it_says() {
    let lab = Lab::new();
    let host = Host::new(&lab);
    cluster_network(&host);
    let before = [host.files("/etc/cni/net.d"), host.files("/opt")];
    let blocks = &mut document::blocks(INSTALL).into_iter();
    next(&host, blocks, "install -m 755");
    assert!(host.files("/opt/cni/bin").contains_key("jackfield"));
    assert!(
        host.files("/etc/cni/net.d")
            .contains_key("00-jackfield.conflist")
    );
    // Nobody has started the agent, which is all that is wrong.
    let (exit, said) = run(&host, blocks, "jackfield doctor");
    assert_eq!(exit, Some(1), "{said}");
    assert!(said.contains("nothing listens there"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    next(&host, blocks, "jackfield uninstall");
    assert_eq!(blocks.next().map(|block| block.line), None);
    assert_eq!([host.files("/etc/cni/net.d"), host.files("/opt")], before);
}
