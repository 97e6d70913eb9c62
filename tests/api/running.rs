//! The agent knows which running pods have a changed annotation, and tells a STATUS, which starts the
//! changes.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::lab::{AgentProcess, Lab, NETWORKS, Sandbox, Server, cni_bin, eventually};

/// A lab with an agent and a pod that is attached to the network `a`. Returns the pod's UID.
fn running() -> (Lab, AgentProcess, String) {
    let (mut lab, agent) = Lab::with_agent();
    lab.configure("cniVersion", json!("1.1.0"));
    lab.definition("a", "10.2.0.5/24");
    lab.definition("b", "10.3.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "a"}));
    agent.wait_until_it_knows(1, 1);
    lab.add("web", &uid).succeeds();
    (lab, agent, uid)
}

fn select(lab: &Lab, networks: &str) {
    let path = format!("{}/web", lab.pods());
    let annotations = json!({"metadata": {"annotations": {NETWORKS: networks}}});
    lab.admin.merge(&path, &annotations);
}

fn status(lab: &Lab) {
    let node = Sandbox {
        container: "web",
        pod: "",
        uid: "",
        annotations: None,
    };
    lab.call("STATUS", &node).succeeds();
}

/// Calls STATUS as the runtime does, until the pod has exactly these interfaces.
#[track_caller]
fn becomes(lab: &Lab, interfaces: &[&str]) {
    eventually("the pod has other interfaces", || {
        status(lab);
        lab.interfaces("web") == interfaces
    });
}

/// How many changes ended with this code, by the agent's metrics.
fn changes(agent: &AgentProcess, code: u32) -> f64 {
    let name = format!("jackfield_calls_total{{verb=\"RECONCILE\",code=\"{code}\"}}");
    agent.metric(&name).unwrap_or_default()
}

#[test]
fn a_status_starts_the_change_of_a_pod_whose_annotation_differs() {
    let (lab, agent, uid) = running();
    select(&lab, "a,b");
    becomes(&lab, &["eth0", "net1", "net2"]);
    eventually("network-status has the new network", || {
        lab.wait_for_status("web").as_array().unwrap().len() == 3
    });
    eventually("the change is counted with its time", || {
        agent.metric("jackfield_network_change_seconds_count") == Some(1.0)
    });
    select(&lab, "b");
    becomes(&lab, &["eth0", "net2"]);
    lab.del("web", &uid).succeeds();
    assert_eq!(lab.interfaces("web"), Vec::<String>::new());
}

#[test]
fn a_status_hands_the_attached_sandboxes_to_an_agent_that_has_restarted() {
    let (lab, mut agent, uid) = running();
    agent.kill();
    agent.wait();
    select(&lab, "b");
    let agent = lab.start_agent();
    becomes(&lab, &["eth0", "net2"]);
    select(&lab, "");
    becomes(&lab, &["eth0"]);
    eventually("this agent hears of both changes", || {
        changes(&agent, 0) >= 2.0
    });
    lab.del("web", &uid).succeeds();
}

#[test]
fn a_status_without_a_change_asks_the_api_server_nothing_and_starts_nothing() {
    let (lab, agent, uid) = running();
    lab.wait_until_told();
    status(&lab);
    let requests = Server::get().requests(&lab.node);
    for _ in 0..3 {
        status(&lab);
    }
    // Another annotation is no change of networks.
    let path = format!("{}/web", lab.pods());
    let other = json!({"metadata": {"annotations": {"example.com/other": "x"}}});
    lab.admin.merge(&path, &other);
    std::thread::sleep(std::time::Duration::from_secs(2));
    status(&lab);
    assert_eq!(Server::get().requests(&lab.node), requests);
    assert_eq!(changes(&agent, 0), 0.0);
    lab.del("web", &uid).succeeds();
}

#[test]
fn a_failed_change_is_an_event_and_waits_before_it_is_tried_again() {
    let (lab, agent, uid) = running();
    select(&lab, "[{");
    let told = || {
        lab.events("web")
            .iter()
            .any(|it| it["reason"] == "FailedNetworkChange")
    };
    eventually("the pod has an event", || {
        status(&lab);
        told()
    });
    // The pause is two seconds, then four, then eight.
    for _ in 0..40 {
        status(&lab);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let tried = changes(&agent, 101);
    assert!((1.0..=4.0).contains(&tried), "tried {tried} times");
    assert_eq!(lab.interfaces("web"), ["eth0", "net1"]);
    select(&lab, "a,b");
    becomes(&lab, &["eth0", "net1", "net2"]);
    lab.del("web", &uid).succeeds();
}

#[test]
fn a_node_that_switches_changes_off_leaves_running_pods_as_they_are() {
    let (mut lab, agent, uid) = running();
    lab.configure("dynamicAttachment", json!(false));
    select(&lab, "a,b");
    std::thread::sleep(std::time::Duration::from_secs(2));
    for _ in 0..3 {
        status(&lab);
    }
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(lab.interfaces("web"), ["eth0", "net1"]);
    assert_eq!(changes(&agent, 0), 0.0);
    lab.configure("dynamicAttachment", json!(true));
    becomes(&lab, &["eth0", "net1", "net2"]);
    lab.del("web", &uid).succeeds();
}

#[test]
fn a_change_that_is_killed_is_repeated_although_its_plugin_still_hangs() {
    let (mut lab, _agent, uid) = running();
    let (bin, hung) = (lab.path("bin"), lab.path("hung"));
    let plugin = bin.join("hangs-once");
    fs::create_dir(&bin).unwrap();
    let (real, once) = (cni_bin().join("bridge"), hung.display());
    let hang = format!("[ $CNI_COMMAND = ADD ] && mkdir {once} && exec sleep 1000");
    let script = format!("#!/bin/sh\n{hang}\nexec {}\n", real.display());
    fs::write(&plugin, script).unwrap();
    fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
    lab.configure("binDir", json!(bin));
    lab.configure("deadlines", json!({"delegate": "5s"}));
    let ipam = json!({"type": "static", "addresses": [{"address": "10.4.0.5/24"}]});
    lab.definition_of(
        "c",
        &json!({"type": "hangs-once", "bridge": "c", "ipam": ipam}),
    );
    select(&lab, "a,c");
    eventually("the plugin hangs", || {
        status(&lab);
        hung.exists()
    });
    let lock = format!("/run/jackfield/locks/{}-web.lock", lab.namespace);
    let change = fs::read_to_string(lock).unwrap().parse().unwrap();
    kill(Pid::from_raw(change), Signal::SIGKILL).unwrap();
    becomes(&lab, &["eth0", "net1", "net2"]);
    lab.del("web", &uid).succeeds();
}
