//! The pod that is meant, and no other of its name.

use serde_json::json;

use crate::lab::{Fault, Lab, NETWORKS, Sandbox, Server, pod};

#[test]
fn a_uid_that_is_not_the_pods_is_refused_after_one_uncached_read() {
    let (lab, _agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    std::thread::sleep(std::time::Duration::from_millis(300));
    lab.add("web", "00000000-0000-0000-0000-000000000000")
        .fails(107, &["/web", "the runtime has UID 00000000", &uid]);
    assert_eq!(Server::get().requests(&lab.node), ["get pods 200"]);
    assert!(lab.owed().is_empty());
}

#[test]
fn a_pod_recreated_a_moment_ago_is_found_behind_a_stale_cache() {
    let (lab, _agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    lab.pod("web", &json!({}));
    std::thread::sleep(std::time::Duration::from_millis(300));
    lab.proxy
        .fault(|_, path| path.contains("watch=true").then_some(Fault::HangUp));
    lab.proxy.cut();
    lab.delete_pod("web");
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    lab.add("web", &uid).succeeds();
    assert_eq!(lab.interfaces("web"), ["eth0", "net1"]);
}

#[test]
fn a_static_pod_is_known_by_the_hash_that_its_mirror_carries() {
    let (lab, _agent) = Lab::with_agent();
    let hash = "0f4e95722eac8ac020f944d9ddf89dd7";
    lab.pod(
        "static-a",
        &json!({"kubernetes.io/config.hash": hash, "kubernetes.io/config.mirror": hash,
                "kubernetes.io/config.source": "file"}),
    );
    lab.add("static-a", hash).succeeds();
    lab.wait_for_status("static-a");
}

#[test]
fn a_pod_of_another_node_is_refused() {
    let (lab, _agent) = Lab::with_agent();
    let other = lab
        .admin
        .create(&lab.pods(), &pod("far", "node-far", &json!({})));
    let uid = other["metadata"]["uid"].as_str().unwrap();
    lab.add("far", uid)
        .fails(107, &["/far is bound to node node-far, this is", &lab.node]);
}

#[test]
fn a_pod_that_is_not_known_is_refused_by_its_name() {
    let (lab, _agent) = Lab::with_agent();
    lab.add("ghost", "u")
        .fails(107, &["/ghost is not known in the cluster"]);
}

#[test]
fn a_name_that_would_change_the_url_is_no_pods() {
    let (lab, _agent) = Lab::with_agent();
    let pod = "../../../v1/secrets?x=";
    let sandbox = Sandbox {
        container: "web",
        pod,
        uid: "u",
        annotations: None,
    };
    lab.call("ADD", &sandbox)
        .fails(4, &["cannot be the name of an object"]);
    assert!(
        lab.proxy
            .seen()
            .iter()
            .all(|request| !request.contains("secrets"))
    );
}
