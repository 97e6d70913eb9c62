//! Networks of a running pod change when its annotation changes, with real kubelet and containerd:
//! containerd calls STATUS every few seconds, and that starts the change.

use std::io::Write;
use std::time::{Duration, Instant};

use http::Method;
use serde_json::{Value, json};

use crate::lab::{DevicePlugin, Lab, NETWORKS, Pod, eventually, of_resource};

/// How long a change may take beside the other tests. Without them it takes at most 7 seconds: five
/// until the next STATUS, and the change itself.
const CHANGES_WITHIN: Duration = Duration::from_secs(30);

/// A node with Jackfield and the definitions a, b and c.
fn lab() -> Lab {
    let lab = Lab::with_jackfield();
    lab.definition("a", "10.2.0.0/24", &json!({}));
    lab.definition("b", "10.3.0.0/24", &json!({}));
    lab.definition("c", "10.4.0.0/24", &json!({}));
    lab
}

fn select(lab: &Lab, pod: &str, networks: &str) {
    let path = format!("{}/{pod}", lab.pods());
    let annotations = json!({"metadata": {"annotations": {NETWORKS: networks}}});
    lab.admin.merge(&path, &annotations);
}

/// Interfaces in the pod's network namespace, sorted, without `lo`.
fn links(lab: &Lab, pod: &str) -> Vec<String> {
    let journal = lab.journal(pod);
    let path = journal.split(r#""netns":""#).nth(1).unwrap();
    let path = path.split('"').next().unwrap();
    let name = path.rsplit('/').next().unwrap();
    let shown = lab.machine.run(&["ip", "-n", name, "-j", "link", "show"]);
    let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let names = shown
        .iter()
        .map(|link| link["ifname"].as_str().unwrap().to_owned());
    let mut names: Vec<String> = names.filter(|name| name != "lo").collect();
    names.sort();
    names
}

/// The processes of the pod's containers, and when and how often kubelet started them. A change must
/// not touch them.
fn containers(lab: &Lab, pod: &str) -> Vec<String> {
    let status = lab.pod(pod).unwrap()["status"]["containerStatuses"].clone();
    let tasks = lab.machine.run(&["ctr", "-n", "k8s.io", "task", "ls"]);
    let containers = status.as_array().unwrap().iter().map(|it| {
        let id = it["containerID"].as_str().unwrap();
        let id = id.rsplit('/').next().unwrap();
        let task = tasks.lines().find(|line| line.contains(id)).unwrap();
        let (started, restarts) = (&it["state"]["running"]["startedAt"], &it["restartCount"]);
        format!("{task} {started} {restarts}")
    });
    containers.collect()
}

/// Prints how long a change takes, and refuses one that takes too long.
#[track_caller]
fn timed(networks: &str, change: impl FnOnce()) {
    let since = Instant::now();
    change();
    let took = since.elapsed();
    let _ = writeln!(std::io::stderr(), "{networks:?}: changed in {took:.1?}");
    assert!(took < CHANGES_WITHIN, "{networks}: {took:?}");
}

/// Changes the annotation, and waits until the pod has exactly these interfaces and network-status
/// names them.
#[track_caller]
fn becomes(lab: &Lab, pod: &str, networks: &str, interfaces: &[&str]) {
    timed(networks, || {
        select(lab, pod, networks);
        eventually(&format!("{pod} has {interfaces:?}"), || {
            links(lab, pod) == interfaces
        });
    });
    let status = lab.status(pod, interfaces.len());
    let mut named: Vec<&str> = status
        .iter()
        .map(|it| it["interface"].as_str().unwrap())
        .collect();
    named.sort_unstable();
    assert_eq!(named, interfaces, "{status:?}");
}

#[test]
fn a_running_pod_gains_loses_and_replaces_networks_and_its_containers_do_not_notice() {
    let lab = lab();
    lab.run(&Pod::new(&lab, "web").networks("a"));
    let before = containers(&lab, "web");
    becomes(&lab, "web", "a,b", &["eth0", "net1", "net2"]);
    becomes(&lab, "web", "b", &["eth0", "net2"]);
    // As virt-controller of KubeVirt does it: the name of the interface is a hash of the network's.
    let plugged = json!([
        {"name": "b", "namespace": lab.namespace, "interface": "net2"},
        {"name": "c", "namespace": lab.namespace, "interface": "pod16477688c0e"},
    ]);
    becomes(
        &lab,
        "web",
        &plugged.to_string(),
        &["eth0", "net2", "pod16477688c0e"],
    );
    let replaced = json!([
        {"name": "b", "namespace": lab.namespace, "interface": "net2"},
        {"name": "a", "namespace": lab.namespace, "interface": "pod16477688c0e"},
    ]);
    let label = format!("{}/a", lab.namespace);
    timed(&replaced.to_string(), || {
        select(&lab, "web", &replaced.to_string());
        eventually("the network of that interface is another", || {
            let status = lab.status("web", 3);
            status.iter().any(|it| it["name"] == label.as_str())
        });
    });
    becomes(&lab, "web", "", &["eth0"]);
    assert_eq!(containers(&lab, "web"), before);
    for words in [
        ["AddedInterface", "Add net2"],
        ["RemovedInterface", "Remove net1"],
    ] {
        lab.wait_for_event("web", &words);
    }
    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 3);
}

#[test]
fn a_new_network_gets_a_device_of_the_pod_that_no_network_uses() {
    let lab = Lab::with_jackfield();
    let plugin = DevicePlugin::start(&lab, &["port-1", "port-2", "port-3"]);
    lab.definition("left", "10.2.0.0/24", &of_resource());
    lab.definition("right", "10.3.0.0/24", &of_resource());
    lab.run(&Pod::new(&lab, "web").networks("left").devices(2));
    let mut devices = plugin.allocated().concat();
    devices.sort();
    let before = containers(&lab, "web");
    let has = |device: &str| lab.journal("web").contains(&format!(r#""id":"{device}""#));
    assert!(has(&devices[0]) && !has(&devices[1]));
    becomes(&lab, "web", "left,right", &["eth0", "net1", "net2"]);
    assert!(has(&devices[0]) && has(&devices[1]));
    // The pod has two devices only.
    select(&lab, "web", "left,right,left");
    lab.wait_for_event("web", &["FailedNetworkChange", "104"]);
    assert_eq!(links(&lab, "web"), ["eth0", "net1", "net2"]);
    becomes(&lab, "web", "right", &["eth0", "net2"]);
    assert!(!has(&devices[0]) && has(&devices[1]));
    becomes(&lab, "web", "right,left", &["eth0", "net2", "net3"]);
    assert!(has(&devices[0]) && has(&devices[1]));
    assert_eq!(containers(&lab, "web"), before);
    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 3);
}

#[test]
fn what_cannot_be_attached_is_an_event_and_changes_nothing() {
    let lab = lab();
    lab.run(&Pod::new(&lab, "web").networks("a"));
    let before = containers(&lab, "web");
    let refused = |networks: &str, words: &[&str]| {
        select(&lab, "web", networks);
        lab.wait_for_event("web", words);
        assert_eq!(links(&lab, "web"), ["eth0", "net1"]);
        assert_eq!(lab.status("web", 2).len(), 2);
    };
    refused("[{", &["Warning FailedNetworkChange", "101"]);
    refused(
        "a,missing",
        &["Warning FailedNetworkChange", "missing", "102"],
    );
    lab.definition("missing", "10.5.0.0/24", &json!({}));
    eventually(
        "the definition is there, and the change is tried again",
        || links(&lab, "web") == ["eth0", "net1", "net2"],
    );
    assert_eq!(containers(&lab, "web"), before);
    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 3);
}

#[test]
fn changes_survive_restarts_of_every_daemon_and_a_pod_that_is_deleted_meanwhile() {
    let lab = lab();
    lab.run(&Pod::new(&lab, "web").networks("a"));
    let before = containers(&lab, "web");
    lab.kill_agent();
    becomes(&lab, "web", "a,b", &["eth0", "net1", "net2"]);
    lab.machine.restart("containerd");
    becomes(&lab, "web", "b", &["eth0", "net2"]);
    lab.machine.hold("kubelet");
    lab.machine.resume("kubelet");
    becomes(&lab, "web", "b,c", &["eth0", "net2", "net3"]);
    assert_eq!(containers(&lab, "web"), before);
    // A change is under way, or about to be, when the pod goes.
    for wait in [0, 4, 5] {
        let name = format!("late-{wait}");
        lab.run(&Pod::new(&lab, &name).networks("a"));
        select(&lab, &name, "b,c");
        std::thread::sleep(Duration::from_secs(wait));
        let path = format!("{}/{name}?gracePeriodSeconds=0", lab.pods());
        lab.admin.request(Method::DELETE, &path, "", None).unwrap();
    }
    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 3);
}
