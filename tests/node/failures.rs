//! What a user sees who asks for something that cannot be: the events of `kubectl describe pod`.

use serde_json::json;

use crate::lab::{DevicePlugin, Lab, Pod, of_resource};

#[test]
fn a_pod_with_an_invalid_annotation_gets_the_cluster_network_and_a_warning() {
    let lab = Lab::with_jackfield();
    lab.run(&Pod::new(&lab, "web").networks(r#"[{"name": "storage", "ips": "10.2.0.5"}]"#));
    lab.wait_for_event("web", &["Warning", "k8s.v1.cni.cncf.io/networks", "ips"]);
    assert_eq!(lab.status("web", 1)[0]["interface"], "eth0");
    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 3);
}

#[test]
fn a_pod_whose_definition_is_missing_says_so_and_runs_once_it_is_there() {
    let lab = Lab::with_jackfield();
    lab.create(&Pod::new(&lab, "web").networks("storage"));
    let missing = format!("{}/storage", lab.namespace);
    lab.wait_for_event("web", &["FailedCreatePodSandBox", &missing]);
    // A failed ADD leaves nothing.
    lab.wait_until_clean();
    lab.definition("storage", "10.2.0.0/24", &json!({}));
    lab.wait_until_running("web");
    assert_eq!(lab.status("web", 2)[1]["interface"], "net1");
    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 4);
}

#[test]
fn a_pod_whose_second_network_fails_loses_the_first_and_gets_both_when_it_is_tried_again() {
    let lab = Lab::with_jackfield();
    lab.definition("good", "10.2.0.0/24", &json!({}));
    // One address, and somebody has it.
    let one =
        json!([[{"subnet": "10.3.0.0/24", "rangeStart": "10.3.0.9", "rangeEnd": "10.3.0.9"}]]);
    let config = json!({"cniVersion": "1.0.0", "name": "full", "type": "bridge", "bridge": "full",
        "ipam": {"type": "host-local", "ranges": one}});
    lab.definition_of("full", &config.to_string(), &json!({}));
    lab.run(&Pod::new(&lab, "first").networks("full"));
    lab.create(&Pod::new(&lab, "second").networks("good,full"));
    lab.wait_for_event("second", &["FailedCreatePodSandBox", "full", "net2"]);
    lab.delete(&["first"]);
    lab.wait_until_running("second");
    assert_eq!(lab.status("second", 3)[2]["ips"][0], "10.3.0.9");
    lab.delete(&["second"]);
    lab.assert_nothing_left(&["first", "second"], 3);
}

#[test]
fn a_pod_with_fewer_devices_than_networks_says_which_are_missing() {
    let lab = Lab::with_jackfield();
    let _plugin = DevicePlugin::start(&lab, &["port-1", "port-2"]);
    lab.definition("left", "10.2.0.0/24", &of_resource());
    lab.definition("right", "10.3.0.0/24", &of_resource());
    lab.create(&Pod::new(&lab, "web").networks("left,right").devices(1));
    lab.wait_for_event("web", &["FailedCreatePodSandBox", "example.com/port"]);
    lab.wait_until_clean();
    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 1);
}

#[test]
fn a_definition_that_is_no_json_is_named_with_what_is_wrong_with_it() {
    let lab = Lab::with_jackfield();
    lab.definition_of(
        "broken",
        r#"{"cniVersion": "1.0.0", "type": "bridge",}"#,
        &json!({}),
    );
    lab.create(&Pod::new(&lab, "web").networks("broken"));
    let name = format!("{}/broken", lab.namespace);
    lab.wait_for_event("web", &["Warning", "FailedCreatePodSandBox", &name, "JSON"]);
    let pod = format!("{}/web", lab.namespace);
    let explain = [
        "/opt/cni/bin/jackfield",
        "explain",
        "--conf",
        "/etc/cni/net.d/00-jackfield.conflist",
        "--pod",
        &pod,
    ];
    let (succeeded, said) = lab.machine.try_run(&explain);
    assert!(
        !succeeded && said.contains(&name) && said.contains("JSON"),
        "{said}"
    );
    lab.delete(&["web"]);
    lab.assert_nothing_left(&["web"], 1);
}
