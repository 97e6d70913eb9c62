//! The cluster network may not be ready, or not well: what goes on and what waits.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::lab::Lab;

/// A lab whose cluster network is ready when the file `ready` is there.
fn waiting() -> Lab {
    let mut lab = Lab::new();
    lab.configure("readinessindicatorfile", json!(lab.path("ready")));
    lab.configure("deadlines", json!({ "add": "2s", "del": "2s" }));
    lab
}

// clause: NPWG-1.3 §6.1.2
#[test]
fn an_add_waits_for_the_cluster_network_and_then_asks_to_be_tried_again() {
    let lab = waiting();
    let ready = lab.path("ready");
    lab.call("ADD")
        .fails(11, &[&ready.display().to_string(), "not ready"]);
    lab.assert_nothing_left();

    let later = Duration::from_millis(500);
    let made = std::thread::spawn(move || {
        std::thread::sleep(later);
        fs::write(ready, "").unwrap();
    });
    let added = lab.call("ADD");
    added.success();
    assert!(added.took >= later, "{:?}", added.took);
    made.join().unwrap();
    lab.del();
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §6.1.2
// clause: NPWG-1.3 §7.2 final error
#[test]
fn a_del_waits_for_the_cluster_network_and_then_stays_owed() {
    let lab = waiting();
    let ready = lab.write("ready", "");
    lab.add();
    fs::remove_file(&ready).unwrap();
    let words = ready.display().to_string();
    lab.call("DEL").fails(106, &[&words]);
    assert_eq!(lab.pod.links(), ["eth0"], "nothing is detached yet");
    lab.write("ready", "");
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §2 STATUS not relied on: it was never called
// clause: CNI-1.1.0 §2 STATUS others go on
#[test]
fn a_pod_is_attached_checked_and_detached_whatever_status_says() {
    let mut lab = Lab::new();
    lab.configure("cniVersion", json!("1.1.0"));
    // Injects a fault: a plugin that says it is not available.
    let unwell =
        r#"[ $CNI_COMMAND = STATUS ] && { echo '{"code":51,"msg":"no uplink"}'; exit 1; }"#;
    lab.recorder("unwell", "bridge", unwell);
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("unwell");
    lab.cluster_network("1.1.0", &[bridge]);
    lab.add();
    lab.call("STATUS").fails(51, &["no uplink"]);
    lab.check();
    lab.del();
    lab.call("STATUS").fails(51, &["no uplink"]);
    lab.add();
    lab.del();
    lab.assert_nothing_left();
}
