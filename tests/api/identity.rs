//! The pod that is meant, and no other of its name.

use serde_json::{Value, json};

use crate::lab::{Fault, Lab, NETWORKS, Sandbox, Server, eventually, pod};

#[test]
fn a_uid_that_is_not_the_pods_is_refused_after_one_uncached_read() {
    let (lab, agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    agent.wait_until_it_knows(1, 0);
    lab.add("web", "00000000-0000-0000-0000-000000000000")
        .fails(107, &["/web", "the runtime passed UID 00000000", &uid]);
    assert_eq!(Server::get().requests(&lab.node), ["get pods 200"]);
    assert!(lab.owed().is_empty());
}

#[test]
fn a_pod_recreated_a_moment_ago_is_found_behind_a_stale_cache() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    lab.pod("web", &json!({}));
    agent.wait_until_it_knows(1, 0);
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

const HASH: &str = "0f4e95722eac8ac020f944d9ddf89dd7";

/// A static pod as kubelet has it, in the form of a real one.
fn static_pod(networks: &str) -> Value {
    json!({"kubernetes.io/config.hash": HASH, "kubernetes.io/config.source": "file",
           "kubernetes.io/config.seen": "2026-11-21T03:19:01.583842135Z", NETWORKS: networks})
}

/// The annotations that kubelet gives to its mirror.
fn mirror(networks: &str) -> Value {
    let mut annotations = static_pod(networks);
    annotations["kubernetes.io/config.mirror"] = json!(HASH);
    annotations
}

#[test]
fn a_static_pod_is_attached_before_its_mirror_is_there_and_told_of_when_it_is() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let sandbox = Sandbox {
        container: "static-a",
        pod: "static-a",
        uid: HASH,
        annotations: Some(static_pod("storage")),
    };
    lab.call("ADD", &sandbox).succeeds();
    assert_eq!(lab.interfaces("static-a"), ["eth0", "net1"]);
    eventually("it is owed", || {
        agent.logged(&[
            "still owed",
            "/static-a",
            "the mirror pod is not in the cluster yet",
        ])
    });
    assert_eq!(lab.owed().len(), 1);
    lab.pod("static-a", &mirror("storage"));
    let status = lab.wait_for_status("static-a");
    assert_eq!(status[1]["interface"], "net1");
    lab.wait_until_told();
}

#[test]
fn a_static_pod_that_ended_without_a_mirror_is_owed_nothing() {
    let (lab, _agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let sandbox = Sandbox {
        container: "static-b",
        pod: "static-b",
        uid: HASH,
        annotations: Some(static_pod("storage")),
    };
    lab.call("ADD", &sandbox).succeeds();
    lab.call("DEL", &sandbox).succeeds();
    lab.wait_until_told();
}

#[test]
fn a_static_pod_is_attached_while_there_is_no_api_server() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let sandbox = Sandbox {
        container: "static-c",
        pod: "static-c",
        uid: HASH,
        annotations: Some(static_pod("storage")),
    };
    // The agent keeps the definition from the first time on.
    lab.call("ADD", &sandbox).succeeds();
    lab.call("DEL", &sandbox).succeeds();
    agent.wait_until_it_knows(0, 1);
    lab.proxy.down();
    lab.call("ADD", &sandbox).succeeds();
    assert_eq!(lab.interfaces("static-c"), ["eth0", "net1"]);
}

#[test]
fn a_static_pod_whose_runtime_says_nothing_of_it_is_attached_once_its_mirror_is_there() {
    let (lab, _agent) = Lab::with_agent();
    lab.add("static-d", HASH)
        .fails(107, &["/static-d is not known in the cluster"]);
    lab.pod("static-d", &mirror(""));
    lab.add("static-d", HASH).succeeds();
}

#[test]
fn a_pod_of_the_api_is_no_static_one_whatever_it_says() {
    let (lab, _agent) = Lab::with_agent();
    let mut annotations = static_pod("storage");
    // Kubelet sets it for every pod, over what the object says.
    annotations["kubernetes.io/config.source"] = json!("api");
    let sandbox = Sandbox {
        container: "liar",
        pod: "liar",
        uid: HASH,
        annotations: Some(annotations),
    };
    lab.call("ADD", &sandbox)
        .fails(107, &["/liar is not known in the cluster"]);
}

#[test]
fn a_pod_of_another_node_is_refused() {
    let (lab, _agent) = Lab::with_agent();
    let other = lab
        .admin
        .create(&lab.pods(), &pod("far", "node-far", &json!({})));
    let uid = other["metadata"]["uid"].as_str().unwrap();
    lab.add("far", uid).fails(
        107,
        &[
            "/far is bound to node node-far, but this node is",
            &lab.node,
        ],
    );
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
