//! What claims say about the networks on their devices (KEP-4817).

use std::time::Duration;

use serde_json::{Value, json};

use crate::devices::{claiming, lab, slice, with_claim};
use crate::lab::claims::{Claim, device, ready};
use crate::lab::{Fault, Lab, Server, eventually};

/// The slice of the node, with the device that the network uses.
fn device_in_slice(lab: &Lab) {
    slice(
        lab,
        &json!({"k8s.cni.cncf.io/resourceName": {"string": "example.com/vf"},
                "k8s.cni.cncf.io/deviceID": {"string": "lab-vf1"}}),
    );
}

fn nic(lab: &Lab) -> Claim<'_> {
    Claim {
        admin: &lab.admin,
        namespace: &lab.namespace,
        name: "nic",
    }
}

/// The agent's requests about claims.
fn requests(lab: &Lab) -> Vec<String> {
    let mut requests = Server::get().requests(&lab.node);
    requests.retain(|request| request.contains("resourceclaims"));
    requests
}

#[test]
fn a_claims_device_shows_its_network_until_del_and_the_entries_of_others_stay() {
    let lab = lab();
    let _kubelet = with_claim(&lab, "web");
    let mut agent = lab.start_agent();
    device_in_slice(&lab);
    let uid = claiming(&lab, "web");
    let claim = nic(&lab);
    claim.create(&lab.node, &["vf1", "vf2"], ("web", &uid));
    let other = device("vf2", &json!({"networkData": {"interfaceName": "other0"}}));
    let of_driver = json!([device("vf1", &ready()), other]);
    claim.apply(&lab.admin, "driver", &of_driver).unwrap();
    lab.add("web", &uid).succeeds();
    lab.wait_until_told();
    let status = lab.status("web").unwrap();
    let entry = claim.entry("vf1");
    assert_eq!(
        entry["networkData"],
        json!({"interfaceName": "net1", "ips": ["10.4.0.5/24"],
               "hardwareAddress": status[1]["mac"]}),
        "{entry}"
    );
    assert_eq!(entry["conditions"][0]["type"], "Ready");
    assert!(claim.has_manager(&uid));
    let written = ["get resourceclaims 200", "patch resourceclaims/status 200"];
    assert_eq!(requests(&lab), written);

    agent.kill();
    lab.del("web", &uid).succeeds();
    assert_eq!(lab.owed().len(), 1, "the removal waits for the agent");
    assert_eq!(claim.entry("vf1")["networkData"]["interfaceName"], "net1");
    // The claim outlives the pod if another pod uses it.
    lab.delete_pod("web");
    let _next = lab.start_agent();
    lab.wait_until_told();
    let entry = claim.entry("vf1");
    assert_eq!(entry["networkData"], Value::Null, "{entry}");
    assert_eq!(entry["conditions"][0]["type"], "Ready");
    assert_eq!(claim.entry("vf2")["networkData"]["interfaceName"], "other0");
    assert!(!claim.has_manager(&uid));
}

#[test]
fn an_entry_that_no_driver_has_goes_with_the_pod() {
    let lab = lab();
    let _kubelet = with_claim(&lab, "web");
    let _agent = lab.start_agent();
    device_in_slice(&lab);
    let uid = claiming(&lab, "web");
    let claim = nic(&lab);
    claim.create(&lab.node, &["vf1"], ("web", &uid));
    lab.add("web", &uid).succeeds();
    lab.wait_until_told();
    assert_eq!(claim.entry("vf1")["networkData"]["interfaceName"], "net1");
    lab.del("web", &uid).succeeds();
    lab.wait_until_told();
    assert_eq!(claim.entry("vf1"), Value::Null);
}

#[test]
fn a_claim_of_another_node_or_of_another_pod_is_not_written() {
    let lab = lab();
    let _kubelet = with_claim(&lab, "web");
    let _agent = lab.start_agent();
    device_in_slice(&lab);
    let uid = claiming(&lab, "web");
    let claim = nic(&lab);
    for (node, of) in [("node-far", uid.as_str()), (&lab.node, "another")] {
        claim.create(node, &["vf1"], ("web", of));
        lab.add("web", &uid).succeeds();
        lab.wait_until_told();
        assert_eq!(claim.entry("vf1"), Value::Null, "{node} {of}");
        lab.del("web", &uid).succeeds();
        lab.wait_until_told();
        lab.admin.delete(&claim.path());
    }
    lab.add("web", &uid).succeeds();
    lab.wait_until_told();
    assert!(lab.status("web").is_some());
    let requests = requests(&lab);
    assert_eq!(requests.last().unwrap(), "get resourceclaims 404");
    assert!(
        !requests.iter().any(|it| it.starts_with("patch")),
        "{requests:?}"
    );
}

#[test]
fn what_another_manager_says_about_the_network_stays() {
    let lab = lab();
    let _kubelet = with_claim(&lab, "web");
    let agent = lab.start_agent();
    device_in_slice(&lab);
    let uid = claiming(&lab, "web");
    let claim = nic(&lab);
    claim.create(&lab.node, &["vf1"], ("web", &uid));
    let of_driver = device("vf1", &json!({"networkData": {"interfaceName": "driver0"}}));
    claim
        .apply(&lab.admin, "driver", &json!([of_driver]))
        .unwrap();
    lab.add("web", &uid).succeeds();
    lab.wait_until_told();
    assert!(agent.logged(&["the claim stays as it is", "409", "driver"]));
    assert_eq!(
        claim.entry("vf1")["networkData"],
        json!({"interfaceName": "driver0"})
    );
}

#[test]
fn a_claim_that_was_created_again_is_not_written() {
    let lab = lab();
    let _kubelet = with_claim(&lab, "web");
    let agent = lab.start_agent();
    device_in_slice(&lab);
    let uid = claiming(&lab, "web");
    let claim = nic(&lab);
    claim.create(&lab.node, &["vf1"], ("web", &uid));
    let (tell, told) = std::sync::mpsc::channel();
    // The write is held up until the claim is another one.
    lab.proxy.fault(move |_, path| {
        path.contains("resourceclaims/nic/status").then(|| {
            let _ = tell.send(());
            Fault::Slow(Duration::from_secs(5))
        })
    });
    lab.add("web", &uid).succeeds();
    told.recv_timeout(Duration::from_secs(60)).unwrap();
    lab.admin.delete(&claim.path());
    claim.create(&lab.node, &["vf1"], ("web", &uid));
    lab.wait_until_told();
    assert!(agent.logged(&["the claim stays as it is"]));
    assert_eq!(claim.entry("vf1"), Value::Null);
}

#[test]
fn a_write_of_a_claim_that_fails_is_retried() {
    let lab = lab();
    let _kubelet = with_claim(&lab, "web");
    let agent = lab.start_agent();
    device_in_slice(&lab);
    let uid = claiming(&lab, "web");
    let claim = nic(&lab);
    claim.create(&lab.node, &["vf1"], ("web", &uid));
    lab.proxy.fault(|_, path| {
        let fault = Fault::Answer(403, "no right to claims");
        path.contains("resourceclaims/nic/status").then_some(fault)
    });
    lab.add("web", &uid).succeeds();
    eventually("a failed attempt", || {
        agent.logged(&["still owed", "no right to claims"])
    });
    assert!(
        lab.status("web").is_some(),
        "the pod's status does not wait"
    );
    lab.proxy.heal();
    lab.wait_until_told();
    assert_eq!(claim.entry("vf1")["networkData"]["interfaceName"], "net1");
    assert_eq!(lab.events("web").len(), 1);
}

#[test]
fn where_claims_are_not_served_nothing_is_written_or_kept() {
    let lab = lab();
    let _kubelet = with_claim(&lab, "web");
    let _agent = lab.start_agent();
    device_in_slice(&lab);
    let uid = claiming(&lab, "web");
    let claim = nic(&lab);
    claim.create(&lab.node, &["vf1"], ("web", &uid));
    lab.proxy.fault(|_, path| {
        let fault = Fault::Answer(404, "404 page not found");
        path.contains("resourceclaims").then_some(fault)
    });
    lab.add("web", &uid).succeeds();
    lab.wait_until_told();
    assert!(lab.status("web").is_some());
    lab.del("web", &uid).succeeds();
    lab.wait_until_told();
    assert_eq!(claim.entry("vf1"), Value::Null);
}
