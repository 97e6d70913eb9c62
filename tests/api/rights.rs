//! What the agent's account may do, and what it must not: RBAC and admission policy of `deploy/`.

use http::Method;
use serde_json::{Value, json};

use crate::lab::{Admin, Lab, STATUS, Server, eventually, pod};

/// Somebody who has stolen the agent's token of the lab's node.
fn thief(lab: &Lab) -> Admin {
    Admin::new(Server::get(), &lab.agent_token(&lab.node))
}

fn status_patch(annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

#[test]
fn what_the_agent_does_is_allowed() {
    let lab = Lab::new();
    lab.pod("web", &json!({}));
    lab.definition("storage", "10.2.0.5/24");
    let agent = thief(&lab);
    let namespace = &lab.namespace;
    let web = agent.get(&format!("{}/web", lab.pods())).unwrap();
    assert!(
        agent
            .get(&format!(
                "/api/v1/pods?fieldSelector=spec.nodeName={}",
                lab.node
            ))
            .is_some()
    );
    let definitions = "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions";
    assert!(agent.get(definitions).is_some());
    let slices = "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName";
    assert!(agent.get(&format!("{slices}={}", lab.node)).is_some());
    let claim = format!("/apis/k8s.cni.cncf.io/v1alpha1/namespaces/{namespace}/ipamclaims/none");
    assert!(agent.get(&claim).is_none(), "404, not 403");
    agent.merge(
        &format!("{}/web/status", lab.pods()),
        &status_patch(&json!({STATUS: "[]"})),
    );
    agent.create(
        &format!("/api/v1/namespaces/{namespace}/events"),
        &event(&lab, &web, &lab.node),
    );
}

fn event(lab: &Lab, pod: &Value, host: &str) -> Value {
    json!({
        "metadata": {"generateName": "web."},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": lab.namespace,
                           "name": "web", "uid": pod["metadata"]["uid"]},
        "type": "Normal", "reason": "AddedInterface", "message": "x",
        "source": {"component": "jackfield", "host": host},
    })
}

#[test]
fn what_an_agent_must_not_do_is_refused() {
    let lab = Lab::new();
    lab.pod("web", &json!({"own": "x"}));
    lab.admin
        .create(&lab.pods(), &pod("far", "node-far", &json!({})));
    let agent = thief(&lab);
    // A policy holds a moment after it was made.
    eventually("the policy holds", || {
        let far = format!("{}/far/status", lab.pods());
        let merge = "application/merge-patch+json";
        agent
            .request(
                Method::PATCH,
                &far,
                merge,
                Some(&status_patch(&json!({STATUS: "[]"}))),
            )
            .is_err()
    });
    let merge = "application/merge-patch+json";
    let json_type = "application/json";
    let pods = lab.pods();
    let namespace = &lab.namespace;
    let status = format!("{pods}/web/status");
    let web = lab.admin.get(&format!("{pods}/web")).unwrap();
    type Refused<'a> = (&'a str, Method, String, &'a str, Option<Value>, &'a str);
    let table: [Refused<'_>; 17] = [
        (
            "another node's pod",
            Method::PATCH,
            format!("{pods}/far/status"),
            merge,
            Some(status_patch(&json!({STATUS: "[]"}))),
            "writes to pods of its own node alone: the pod is on node-far",
        ),
        (
            "another annotation",
            Method::PATCH,
            status.clone(),
            merge,
            Some(status_patch(&json!({"own": "y"}))),
            "network-status alone",
        ),
        (
            "a new annotation",
            Method::PATCH,
            status.clone(),
            merge,
            Some(status_patch(&json!({"new": "y"}))),
            "network-status alone",
        ),
        (
            "an annotation away",
            Method::PATCH,
            status.clone(),
            merge,
            Some(status_patch(&json!({"own": null}))),
            "network-status alone",
        ),
        (
            "the selection of networks",
            Method::PATCH,
            status.clone(),
            merge,
            Some(status_patch(&json!({"k8s.v1.cni.cncf.io/networks": "x"}))),
            "network-status alone",
        ),
        (
            "a pod's phase",
            Method::PATCH,
            status.clone(),
            merge,
            Some(json!({"status": {"phase": "Failed"}})),
            "does not change a pod's status",
        ),
        (
            "labels",
            Method::PATCH,
            status.clone(),
            merge,
            Some(json!({"metadata": {"labels": {"app": "x"}}})),
            "labels, finalizers or owners",
        ),
        (
            "finalizers",
            Method::PATCH,
            status,
            merge,
            Some(json!({"metadata": {"finalizers": ["a.b/c"]}})),
            "labels, finalizers or owners",
        ),
        (
            "the pod itself",
            Method::PATCH,
            format!("{pods}/web"),
            merge,
            Some(status_patch(&json!({STATUS: "[]"}))),
            "cannot patch resource \"pods\"",
        ),
        (
            "deleting a pod",
            Method::DELETE,
            format!("{pods}/web"),
            json_type,
            None,
            "cannot delete",
        ),
        (
            "creating a pod",
            Method::POST,
            pods.clone(),
            json_type,
            Some(pod("new", &lab.node, &json!({}))),
            "cannot create resource \"pods\"",
        ),
        (
            "a shell in a pod",
            Method::POST,
            format!("{pods}/web/exec?command=sh"),
            json_type,
            None,
            "cannot create resource \"pods/exec\"",
        ),
        (
            "secrets",
            Method::GET,
            "/api/v1/secrets".into(),
            json_type,
            None,
            "cannot list resource \"secrets\"",
        ),
        (
            "writing a definition",
            Method::POST,
            format!(
                "/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/network-attachment-definitions"
            ),
            json_type,
            Some(
                json!({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                     "metadata": {"name": "x"}, "spec": {}}),
            ),
            "cannot create",
        ),
        (
            "offering a device",
            Method::POST,
            "/apis/resource.k8s.io/v1/resourceslices".into(),
            json_type,
            Some(json!({"metadata": {"name": "x"}, "spec": {}})),
            "cannot create resource \"resourceslices\"",
        ),
        (
            "an event of another node",
            Method::POST,
            format!("/api/v1/namespaces/{namespace}/events"),
            json_type,
            Some(event(&lab, &web, "node-far")),
            "its own node",
        ),
        (
            "a token",
            Method::POST,
            "/api/v1/namespaces/kube-system/serviceaccounts/jackfield-agent/token".into(),
            json_type,
            Some(json!({"spec": {}})),
            "cannot create resource \"serviceaccounts/token\"",
        ),
    ];
    for (what, method, path, content, body, expected) in table {
        match agent.request(method, &path, content, body.as_ref()) {
            Err((403 | 422, words)) => assert!(words.contains(expected), "{what}: {words}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn a_token_that_is_bound_to_no_node_writes_nothing() {
    let lab = Lab::new();
    lab.pod("web", &json!({}));
    let path = "/api/v1/namespaces/kube-system/serviceaccounts/jackfield-agent/token";
    let answer = lab.admin.create(path, &json!({"spec": {}}));
    let agent = Admin::new(Server::get(), answer["status"]["token"].as_str().unwrap());
    let status = format!("{}/web/status", lab.pods());
    let patch = status_patch(&json!({STATUS: "[]"}));
    eventually("it is refused", || {
        let answer = agent.request(
            Method::PATCH,
            &status,
            "application/merge-patch+json",
            Some(&patch),
        );
        matches!(answer, Err((403 | 422, words)) if words.contains("the token is bound to no node"))
    });
}

#[test]
fn the_agent_has_no_capability_and_cannot_get_one() {
    let (_lab, agent) = Lab::with_agent();
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(agent.status(set), "0000000000000000", "{set}");
    }
    assert_eq!(agent.status("NoNewPrivs"), "1");
    // Capabilities are a thread's own.
    let threads = std::fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
    let mut count = 0;
    for thread in threads {
        let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        for set in ["CapPrm", "CapEff", "CapBnd"] {
            assert!(
                status.contains(&format!("{set}:\t0000000000000000")),
                "{status}"
            );
        }
        count += 1;
    }
    assert_eq!(
        count, 2,
        "the one that serves, and the one that brings records to the disk"
    );
}
