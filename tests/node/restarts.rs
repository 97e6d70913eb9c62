//! What a node's daemons do to pods when they end: kubelet, containerd, the agent, all of them.

use std::time::Duration;

use serde_json::json;

use crate::lab::{DevicePlugin, Lab, Pod, eventually, of_resource};

/// Which device each of the pod's networks has, by the journal, in the order of the networks.
fn pairing(lab: &Lab, pod: &str) -> Vec<String> {
    let journal = lab.journal(pod);
    let ids = journal.split(r#""id":""#).skip(1);
    ids.map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_sandbox_that_dies_while_kubelet_is_away_is_replaced_with_the_same_devices() {
    let lab = Lab::with_jackfield();
    let _plugin = DevicePlugin::start(&lab, &["port-1", "port-2", "port-3", "port-4"]);
    lab.definition("left", "10.2.0.0/24", &of_resource());
    lab.definition("right", "10.3.0.0/24", &of_resource());
    lab.run(&Pod::new(&lab, "web").networks("left,right").devices(2));
    let before = pairing(&lab, "web");
    assert_eq!(before.len(), 2, "{before:?}");

    // In its first moments kubelet answers with empty lists, and makes the new sandbox.
    lab.machine.hold("kubelet");
    let sandbox = lab.sandbox("web");
    lab.machine.run(&[
        "ctr", "-n", "k8s.io", "task", "kill", "-s", "KILL", &sandbox,
    ]);
    lab.machine.resume("kubelet");
    eventually("the pod has another sandbox", || {
        let now = lab.sandboxes("web");
        now.len() == 1 && now[0] != sandbox
    });
    lab.wait_until_restarted("web");
    assert_eq!(pairing(&lab, "web"), before);
    assert_eq!(lab.status("web", 3).len(), 3);
    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 4);
}

#[test]
fn pods_outlive_a_restart_of_containerd_and_go_without_a_trace() {
    let lab = Lab::with_jackfield();
    lab.definition("storage", "10.2.0.0/24", &json!({}));
    lab.run(&Pod::new(&lab, "before").networks("storage"));
    let adds = lab.calls("ADD", "before");
    lab.machine.restart("containerd");
    lab.run(&Pod::new(&lab, "after").networks("storage"));
    lab.wait_until_running("before");
    assert_eq!(lab.calls("ADD", "before"), adds);
    lab.delete(&["before", "after"]);
    lab.assert_nothing_left(&["before", "after"], 3);
}

#[test]
fn pods_come_and_go_while_the_agent_is_killed_and_rolled_to_a_new_version() {
    let lab = Lab::with_jackfield();
    lab.definition("storage", "10.2.0.0/16", &json!({}));
    let old = lab.agent_pod().unwrap()["metadata"]["uid"].clone();
    std::thread::scope(|scope| {
        let coming_and_going = scope.spawn(|| {
            for number in 0..12 {
                let name = format!("pod-{number}");
                lab.run(&Pod::new(&lab, &name).networks("storage"));
                assert_eq!(lab.status(&name, 2)[1]["interface"], "net1");
                lab.delete(&[&name]);
            }
        });
        lab.kill_agent();
        std::thread::sleep(Duration::from_secs(2));
        lab.roll();
        coming_and_going.join().unwrap();
    });
    let new = lab.agent_pod().unwrap();
    assert_ne!(new["metadata"]["uid"], old);
    let names: Vec<String> = (0..12).map(|number| format!("pod-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    lab.assert_nothing_left(&names, 3);
}

#[test]
fn every_pod_is_back_after_a_reboot_and_nothing_of_before_is_left() {
    let mut lab = Lab::with_jackfield();
    let _plugin = DevicePlugin::start(&lab, &["port-1", "port-2", "port-3"]);
    lab.definition("storage", "10.2.0.0/24", &json!({}));
    lab.definition("left", "10.3.0.0/24", &of_resource());
    lab.run(&Pod::new(&lab, "plain"));
    lab.run(&Pod::new(&lab, "web").networks("storage"));
    // kubelet refuses a pod whose device plugin is not back yet; its owner makes another.
    lab.replicas(
        "device",
        &Pod::new(&lab, "device").networks("left").devices(1),
    );
    lab.wait_for_replica("device");

    lab.reboot();
    for name in ["plain", "web"] {
        lab.wait_until_restarted(name);
        assert!(lab.calls("ADD", name) >= 2, "it has a new sandbox");
    }
    lab.wait_for_jackfield();
    assert_eq!(lab.status("web", 2)[1]["interface"], "net1");
    lab.wait_for_replica("device");
    lab.remove_replicas("device");
    lab.delete(&["plain", "web"]);
    lab.assert_nothing_left(&["plain", "web"], 4);
}
