//! What the agent's account may do, and what it must not: RBAC and admission policy of `deploy/`.

use http::Method;
use serde_json::json;

pub(crate) mod refused;

use crate::lab::claims::{Claim, device};
use crate::lab::{Admin, Lab, NAME, STATUS, SYSTEM, Server, eventually, token};
use refused::{Victim, annotated};

/// Somebody who has stolen the agent's token of the lab's node.
fn thief(lab: &Lab) -> Admin {
    Admin::new(Server::get(), &lab.agent_token(&lab.node))
}

#[test]
fn what_the_agent_does_is_allowed() {
    let lab = Lab::new();
    let victim = Victim::new(&lab.admin, &lab.namespace, &lab.node);
    lab.definition("storage", "10.2.0.5/24");
    let agent = thief(&lab);
    let namespace = &lab.namespace;
    assert!(agent.get(&format!("{}/web", lab.pods())).is_some());
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
    victim.takes(&agent);
}

#[test]
fn what_an_agent_must_not_do_is_refused() {
    let lab = Lab::new();
    let victim = Victim::new(&lab.admin, &lab.namespace, &lab.node);
    victim.refuses(&thief(&lab), SYSTEM, NAME);
}

/// What rbac.yaml grants on `resourceclaims/driver` is needed since Kubernetes 1.36.
#[test]
fn without_the_right_for_drivers_no_claim_is_written() {
    let lab = Lab::new();
    let (admin, name) = (&lab.admin, &lab.namespace);
    let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
    admin.create(&accounts, &json!({"metadata": {"name": "half"}}));
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": name}, "rules": [{
        "apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["patch"]}]});
    admin.create(&format!("{rbac}/clusterroles"), &role);
    let role =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let subject = json!({"kind": "ServiceAccount", "name": "half", "namespace": name});
    admin.create(
        &format!("{rbac}/clusterrolebindings"),
        &json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}),
    );
    let claim = Claim {
        admin,
        namespace: name,
        name: "nic",
    };
    claim.create(&lab.node, &["vf1"], ("web", "u"));
    let half = Admin::new(
        Server::get(),
        &token::of_agent(admin, name, "half", &lab.node),
    );
    let data = device("vf1", &json!({"networkData": {"interfaceName": "net1"}}));
    let needed = "associated-node:patch";
    eventually("it is refused", || {
        let answer = claim.apply(&half, "half", &json!([data]));
        matches!(answer, Err((403 | 422, words)) if words.contains(needed))
    });
    claim.apply(&thief(&lab), "half", &json!([data])).unwrap();
}

#[test]
fn a_token_that_is_bound_to_no_node_writes_nothing() {
    let lab = Lab::new();
    lab.pod("web", &json!({}));
    let path = "/api/v1/namespaces/kube-system/serviceaccounts/jackfield-agent/token";
    let answer = lab.admin.create(path, &json!({"spec": {}}));
    let agent = Admin::new(Server::get(), answer["status"]["token"].as_str().unwrap());
    let status = format!("{}/web/status", lab.pods());
    let patch = annotated(STATUS, "[]");
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
