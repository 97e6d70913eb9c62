//! CHECK: it passes while everything is as it was attached, and says what is not.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::{Lab, Outcome};

/// A lab whose pod has eth0 and net1 (10.20.0.5/24, 2001:db8:20::5/64, a MAC), by delegates whose
/// own CHECK looks at nothing when `blind`.
fn attached(blind: bool) -> Lab {
    let lab = Lab::new();
    let mut cluster = lab.bridge("cni0", "10.10.0.0/24");
    let mut storage = lab.macvlan();
    if blind {
        for (name, real) in [("blind-bridge", "bridge"), ("blind-macvlan", "macvlan")] {
            // Injects a fault: a plugin whose CHECK sees nothing.
            lab.recorder(name, real, "[ $CNI_COMMAND = CHECK ] && exit 0");
        }
        cluster["type"] = json!("blind-bridge");
        storage["type"] = json!("blind-macvlan");
    }
    lab.cluster_network("1.0.0", &[cluster]);
    lab.definition("demo/storage", &storage);
    lab.selects_json(&json!([
        { "name": "storage", "ips": ["10.20.0.5/24", "2001:db8:20::5/64"], "mac": "02:00:00:00:20:05" }
    ]));
    lab.add();
    lab.check();
    lab
}

fn check(lab: &Lab) -> Outcome {
    lab.call("CHECK")
}

/// What somebody changes behind our back, and what CHECK has to name.
const CHANGES: [(&str, &[&str]); 7] = [
    (
        "addr del 10.20.0.5/24 dev net1",
        &["demo/storage (net1)", "10.20.0.5"],
    ),
    (
        "addr del 2001:db8:20::5/64 dev net1",
        &["demo/storage (net1)", "2001:db8:20::5"],
    ),
    (
        "link set net1 address 02:00:00:00:20:06",
        &[
            "demo/storage (net1)",
            "02:00:00:00:20:05",
            "02:00:00:00:20:06",
        ],
    ),
    ("link del net1", &["demo/storage (net1)"]),
    ("link set net1 name moved", &["demo/storage (net1)"]),
    ("link set net1 down", &["demo/storage (net1)"]),
    (
        "addr change 10.20.0.5/16 dev net1",
        &["demo/storage (net1)", "10.20.0.5"],
    ),
];

// clause: CNI-1.1.0 §2 CHECK missing: interface, address, hardware address
// clause: CNI-1.1.0 §2 CHECK unreachable: the interface is down
// clause: CNI-1.1.0 §2 CHECK prevResult: the same result, as it is on record
#[test]
fn what_was_changed_behind_its_back_fails_although_the_delegates_see_nothing() {
    for (change, words) in CHANGES {
        let lab = attached(true);
        if change.starts_with("addr change") {
            lab.pod.ip("addr del 10.20.0.5/24 dev net1");
            lab.pod.ip("addr add 10.20.0.5/16 dev net1");
        } else {
            lab.pod.ip(change);
        }
        let line = check(&lab).fails(105, words);
        assert!(
            !line.contains("blind"),
            "{change}: the finding is ours: {line}"
        );
        lab.del();
        if change.contains("name moved") {
            // macvlan finds its link by name: what somebody renamed is theirs now.
            continue;
        }
        lab.assert_nothing_left();
    }
}

#[test]
fn a_default_route_that_is_gone_fails_the_check() {
    let lab = Lab::new();
    lab.definition("demo/storage", &lab.macvlan());
    lab.selects_json(&json!([
        { "name": "storage", "ips": ["10.20.0.5/24"], "default-route": ["10.20.0.1"] }
    ]));
    lab.add();
    lab.check();
    lab.pod.ip("route del default");
    check(&lab).fails(105, &["demo/storage (net1)", "10.20.0.1"]);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn the_cluster_networks_route_that_is_gone_fails_the_check() {
    let lab = Lab::new();
    lab.add();
    lab.check();
    lab.pod.ip("route del default");
    // The reference plugin's own CHECK looks at routes.
    check(&lab).fails(100, &["cluster (eth0)", "bridge"]);
    lab.del();
}

// clause: CNI-1.1.0 §2 CHECK delegated: an error is passed on
// clause: CNI-1.1.0 §2 CHECK other resources: what a delegate knows of
// clause: CNI-1.1.0 §4 errors
#[test]
fn a_delegates_own_no_is_passed_on_with_its_words() {
    let mut lab = Lab::new();
    lab.configure("delegateCheck", json!("strict"));
    // Injects a fault: a plugin whose CHECK says no.
    let no = r#"[ $CNI_COMMAND = CHECK ] && { echo '{"cniVersion":"1.0.0","code":137,"msg":"the switch port is down","details":"port 7"}'; exit 1; }"#;
    lab.recorder("grumpy", "ptp", no);
    let mut config = lab.ptp("10.30.0.0/24");
    config["type"] = json!("grumpy");
    lab.definition("demo/grumpy", &config);
    lab.selects("grumpy");
    lab.add();
    check(&lab).fails(
        100,
        &[
            "demo/grumpy (net1)",
            "grumpy",
            "CHECK",
            "the switch port is down",
            "port 7",
            "137",
        ],
    );
    lab.del();
    lab.assert_nothing_left();
}

/// A bridge without addresses, as KubeVirt's users have it. The reference plugin refuses its own CHECK
/// without `ipam`, and again once the bridge has another MAC, which a bridge takes from its ports.
#[test]
fn a_refusal_on_a_further_network_is_a_warning_while_the_kernel_shows_what_was_attached() {
    let mut lab = Lab::new();
    let of_bridge = "no plugin name provided";
    let bridge = json!({ "cniVersion": "1.0.0", "name": "n", "type": "bridge", "bridge": "br1" });
    lab.definition("demo/plain", &bridge);
    lab.selects("plain");
    lab.add();
    let outcome = check(&lab);
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (0, ""),
        "{outcome}"
    );
    for words in ["demo/plain (net1)", of_bridge] {
        assert!(outcome.stderr.contains(words), "{words}: {outcome}");
    }
    let events = lab.events();
    let told = |event: &&String| {
        event.starts_with("Warning DelegateCheckFailed ") && event.contains(of_bridge)
    };
    assert_eq!(events.iter().filter(told).count(), 1, "{events:?}");
    assert_eq!(lab.status().len(), 2, "the status stays");
    // Two against it: what the kernel shows is not what was attached either.
    lab.pod.ip("link set net1 down");
    check(&lab).fails(100, &["demo/plain (net1)", of_bridge]);
    lab.pod.ip("link set net1 up");
    lab.check();
    for (key, value) in [("delegateCheck", "strict"), ("verify", "off")] {
        lab.configure(key, json!(value));
        check(&lab).fails(100, &["demo/plain (net1)", of_bridge]);
        lab.configure(key, json!(null));
    }
    lab.del();
}

#[test]
fn a_bridge_whose_hardware_address_changed_passes_the_check() {
    let lab = Lab::new();
    let ipam = lab.host_local(&["10.30.0.0/24"], false);
    let bridge = json!({ "cniVersion": "1.0.0", "name": "n", "type": "bridge", "bridge": "br1", "ipam": ipam });
    lab.definition("demo/plain", &bridge);
    lab.selects("plain");
    lab.add();
    lab.check();
    lab.node.ip("link set br1 address 02:00:00:00:00:77");
    lab.check();
    let events = lab.events();
    let told = |event: &String| event.starts_with("Warning DelegateCheckFailed ");
    assert!(events.iter().any(told), "{events:?}");
    lab.del();
}

#[test]
fn a_refusal_of_the_cluster_networks_plugins_fails_the_check() {
    let lab = Lab::new();
    let no = r#"[ $CNI_COMMAND = CHECK ] && { echo '{"cniVersion":"1.0.0","code":137,"msg":"no"}'; exit 1; }"#;
    lab.recorder("grumpy", "bridge", no);
    let mut cluster = lab.bridge("cni0", "10.10.0.0/24");
    cluster["type"] = json!("grumpy");
    lab.cluster_network("1.0.0", &[cluster]);
    lab.add();
    check(&lab).fails(100, &["cluster (eth0)", "grumpy", "137"]);
    lab.del();
}

#[test]
fn a_delegate_without_check_is_a_note_on_stderr_only() {
    let lab = Lab::new();
    // Injects a fault: a plugin that answers CHECK as whereabouts does.
    let none = r#"[ $CNI_COMMAND = CHECK ] && { echo '{"cniVersion":"1.0.0","code":7,"msg":"CNI CHECK method is not implemented"}'; exit 1; }"#;
    lab.recorder("checkless", "ptp", none);
    let mut config = lab.ptp("10.30.0.0/24");
    config["type"] = json!("checkless");
    lab.definition("demo/checkless", &config);
    lab.selects("checkless");
    lab.add();
    let outcome = check(&lab);
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (0, ""),
        "{outcome}"
    );
    assert!(outcome.stderr.contains("not implemented"), "{outcome}");
    lab.del();
}

// clause: CNI-1.1.0 §2 CHECK not added: no plugin is called
#[test]
fn a_container_that_was_never_attached_fails_the_check() {
    let lab = Lab::new();
    let container = lab.container();
    check(&lab).fails(109, &[&container, "not on record", "ADD it first"]);
    lab.add();
    lab.del();
    check(&lab).fails(109, &[&container, "not on record"]);
}

// clause: CNI-1.1.0 §2 CHECK missing: the interface of prevResult
/// Runtimes keep the result of an ADD, and hand it over whatever became of it since.
#[test]
fn a_result_of_what_is_not_there_any_more_fails_the_check() {
    let lab = Lab::new();
    lab.delegate(
        "blind",
        "[ $CNI_COMMAND = CHECK ] && exit 0; exec $REAL/bridge",
    );
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("blind");
    lab.cluster_network("1.0.0", &[bridge]);
    let mut conf = lab.conf().clone();
    conf["prevResult"] = lab.add();
    let check = || lab.plugin("CHECK").stdin(conf.to_string().as_bytes()).run();
    assert_eq!(check().exit, 0);
    lab.del();
    check().fails(109, &[&lab.container(), "not on record"]);
}

// clause: CNI-1.1.0 §1 disableCheck: no plugin is called
#[test]
fn disable_check_spares_the_delegates_and_not_the_kernels_view() {
    let lab = Lab::new();
    lab.recorder("counted", "macvlan", "");
    let mut config = lab.macvlan();
    config["type"] = json!("counted");
    lab.definition(
        "demo/storage",
        &json!({ "cniVersion": "1.0.0", "name": "storage", "disableCheck": true, "plugins": [config] }),
    );
    lab.selects_json(&json!([{ "name": "storage", "ips": ["10.20.0.5/24"] }]));
    lab.add();
    lab.check();
    assert_eq!(lab.log("calls"), ["ADD net1 counted"]);
    lab.pod.ip("addr del 10.20.0.5/24 dev net1");
    check(&lab).fails(105, &["10.20.0.5"]);
    lab.del();
}

/// Same path, another namespace: whatever is in there is not what was attached.
#[test]
fn another_netns_under_the_same_name_fails_the_check() {
    let mut lab = attached(true);
    lab.renew_pod();
    check(&lab).failure(105);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn any_path_to_the_pods_network_namespace_will_do() {
    let lab = attached(false);
    let mut process = Command::new("ip")
        .args(["netns", "exec", lab.pod.name(), "sleep", "600"])
        .spawn()
        .unwrap();
    let path = format!("/proc/{}/ns/net", process.id());
    // It enters the namespace before it becomes `sleep`.
    let inside = || fs::metadata(&path).is_ok_and(|it| it.ino() == inode(&lab.pod.path()));
    let begun = Instant::now();
    while !inside() && begun.elapsed() < Duration::from_secs(30) {
        sleep(Duration::from_millis(10));
    }
    let outcome = lab.plugin("CHECK").env("CNI_NETNS", &path).run();
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(outcome.exit, 0, "{outcome}");
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}
