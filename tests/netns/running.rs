//! Networks of a running pod change with its annotation: `jackfield reconcile` attaches and detaches
//! the difference, with real plugins.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{Call, Lab, Outcome, POD, UPLINK, real_plugins};

/// A node with the definitions a, b and c, and a pod that selects `networks` and is attached.
fn running(networks: &str) -> Lab {
    let lab = Lab::new();
    for (name, subnet) in [
        ("demo/a", "10.20.1.0/24"),
        ("demo/b", "10.20.2.0/24"),
        ("demo/c", "10.20.3.0/24"),
    ] {
        lab.definition(name, &lab.ptp(subnet));
    }
    lab.selects(networks);
    lab.add();
    lab
}

fn reconcile(lab: &Lab, more: &[&str]) -> Outcome {
    call_of_reconcile(lab, more).run()
}

fn call_of_reconcile(lab: &Lab, more: &[&str]) -> Call {
    let conf = lab.write("jackfield.conf", &lab.conf().to_string());
    let (conf, plugins) = (
        conf.display().to_string(),
        real_plugins().display().to_string(),
    );
    let mut arguments = vec!["reconcile", "--conf", &conf, "--cni-path", &plugins];
    arguments.extend(more);
    lab.cli(&arguments)
}

/// Runs `reconcile`, which must succeed and print `expected` first.
fn changes(lab: &Lab, expected: &[&str]) {
    let outcome = reconcile(lab, &[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    let lines: Vec<&str> = outcome.stdout.lines().take(expected.len()).collect();
    assert_eq!(lines, expected, "{outcome}");
}

/// Names and networks in the published network-status.
fn status(lab: &Lab) -> Vec<(String, String)> {
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap().to_owned();
    let entries = lab.status();
    let entries = entries.iter();
    entries
        .map(|it| (text(it, "interface"), text(it, "name")))
        .collect()
}

fn entry(interface: &str, name: &str) -> (String, String) {
    (interface.to_owned(), name.to_owned())
}

#[test]
fn a_running_pod_gains_and_loses_networks_and_the_others_stay_untouched() {
    let lab = running("a");
    let index = |link: &str| lab.pod.show(&format!("link show dev {link}"))[0]["ifindex"].clone();
    let before = (index("eth0"), index("net1"), lab.pod.addresses("net1"));
    lab.selects("a, demo/b");
    changes(&lab, &["pod demo/web: attach network demo/b (net2)"]);
    assert_eq!(lab.pod.links(), ["eth0", "net1", "net2"]);
    assert_eq!(
        status(&lab),
        [
            entry("eth0", "cluster"),
            entry("net1", "demo/a"),
            entry("net2", "demo/b")
        ]
    );
    lab.check();
    changes(&lab, &["nothing to change"]);
    // The order of the annotation renames nothing.
    lab.selects("c,b,a");
    changes(&lab, &["pod demo/web: attach network demo/c (net3)"]);
    lab.check();
    lab.selects("c,a");
    changes(&lab, &["pod demo/web: detach network demo/b (net2)"]);
    assert_eq!(lab.pod.links(), ["eth0", "net1", "net3"]);
    let after = (index("eth0"), index("net1"), lab.pod.addresses("net1"));
    assert_eq!(after, before);
    lab.check();
    let events = lab.events().join("\n");
    for event in [
        "AddedInterface Add net2 [",
        "RemovedInterface Remove net2 from demo/b",
    ] {
        assert!(events.contains(event), "{events}");
    }
    lab.selects("");
    changes(
        &lab,
        &[
            "pod demo/web: detach network demo/a (net1)",
            "pod demo/web: detach network demo/c (net3)",
        ],
    );
    assert_eq!(status(&lab), [entry("eth0", "cluster")]);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn other_requests_under_the_same_interface_name_replace_the_attachment() {
    let lab = Lab::new();
    lab.definition("demo/m", &lab.macvlan());
    let selection = |ip: &str, mac: &str| json!([{ "name": "m", "interface": "data0", "ips": [ip], "mac": mac }]);
    lab.selects_json(&selection("10.20.0.5/24", "02:00:00:00:20:05"));
    lab.add();
    lab.selects_json(&selection("10.20.0.6/24", "02:00:00:00:20:06"));
    let dry = reconcile(&lab, &["--dry-run", "--pod", POD]);
    assert_eq!(lab.pod.mac("data0"), "02:00:00:00:20:05", "{dry}");
    let expected = [
        "pod demo/web: detach network demo/m (data0)",
        "pod demo/web: attach network demo/m (data0)",
    ];
    let lines: Vec<&str> = dry.stdout.lines().collect();
    assert_eq!(lines, expected);
    changes(&lab, &expected);
    assert_eq!(lab.pod.mac("data0"), "02:00:00:00:20:06");
    assert!(
        lab.pod
            .addresses("data0")
            .contains(&"10.20.0.6/24".to_owned())
    );
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn default_routes_of_a_detached_network_come_back() {
    let lab = Lab::new();
    lab.definition("demo/m", &lab.macvlan());
    lab.selects("");
    lab.add();
    let before = lab.pod.default_routes();
    lab.selects_json(&json!([
        { "name": "m", "ips": ["10.20.0.5/24"], "default-route": ["10.20.0.1"] }
    ]));
    changes(&lab, &["pod demo/web: attach network demo/m (net1)"]);
    assert_ne!(lab.pod.default_routes(), before);
    lab.check();
    lab.selects("");
    changes(&lab, &["pod demo/web: detach network demo/m (net1)"]);
    assert_eq!(lab.pod.default_routes(), before);
    lab.del();
    lab.assert_nothing_left();
}

/// Runs `reconcile`, which must fail with `code` and say `words`, change no link, and tell the pod.
fn refuses(lab: &Lab, code: u32, words: &str) {
    let (links, entries) = (lab.pod.links(), status(lab));
    let outcome = reconcile(lab, &[]);
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(outcome.stderr.contains(words), "{outcome}");
    assert!(
        outcome.stderr.contains(&format!("(code {code})")),
        "{outcome}"
    );
    assert_eq!((lab.pod.links(), status(lab)), (links, entries));
    let told = lab.events().pop().unwrap_or_default();
    assert!(told.starts_with("Warning FailedNetworkChange"), "{told}");
    assert!(
        told.contains(words) && told.contains(&format!("(code {code})")),
        "{told}"
    );
    lab.check();
}

#[test]
fn what_cannot_be_planned_changes_nothing_and_is_an_event() {
    let mut lab = running("a");
    lab.selects("[{");
    refuses(&lab, 101, "annotation k8s.v1.cni.cncf.io/networks");
    lab.selects("a,missing");
    refuses(&lab, 102, "demo/missing");
    lab.selects("a,b@eth0");
    refuses(&lab, 101, "interface name eth0");
    lab.definition(
        "demo/nothing",
        &json!({ "cniVersion": "1.0.0", "type": "no-such-plugin" }),
    );
    lab.selects("nothing");
    refuses(&lab, 102, "no-such-plugin");
    lab.configure(
        "policy",
        json!({ "namespaces": { "*": { "networks": ["demo/a"] } } }),
    );
    lab.selects("a,b");
    refuses(&lab, 108, "demo/b");
    lab.configure(
        "policy",
        json!({ "namespaces": { "demo": { "dynamicAttachment": false } } }),
    );
    refuses(&lab, 108, "dynamicAttachment");
    lab.configure("policy", Value::Null);
    lab.pod.ip("link add net2 type veth peer name peer2");
    refuses(&lab, 101, "net2");
    lab.pod.ip("link del net2");
    changes(&lab, &["pod demo/web: attach network demo/b (net2)"]);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_network_that_cannot_be_attached_is_rolled_back_and_the_rest_stays_detached() {
    let lab = running("a,b");
    let mut bad = lab.ptp("10.20.4.0/24");
    bad["type"] = json!("ptp-bad");
    lab.recorder(
        "ptp-bad",
        "ptp",
        "[ $CNI_COMMAND = ADD ] && { echo '{\"code\":99,\"msg\":\"no\"}'; exit 1; }",
    );
    lab.definition("demo/bad", &bad);
    lab.selects("b,c,bad");
    let outcome = reconcile(&lab, &[]);
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(
        outcome
            .stderr
            .contains("demo/bad (net4): plugin ptp-bad: ADD: no"),
        "{outcome}"
    );
    assert_eq!(lab.pod.links(), ["eth0", "net2"]);
    assert_eq!(
        status(&lab),
        [entry("eth0", "cluster"), entry("net2", "demo/b")]
    );
    lab.check();
    lab.recorder("ptp-bad", "ptp", "");
    changes(
        &lab,
        &[
            "pod demo/web: attach network demo/c (net3)",
            "pod demo/web: attach network demo/bad (net4)",
        ],
    );
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_network_that_can_be_neither_attached_nor_rolled_back_has_no_status() {
    let lab = running("a");
    let mut bad = lab.ptp("10.20.4.0/24");
    bad["type"] = json!("ptp-bad");
    lab.recorder(
        "ptp-bad",
        "ptp",
        "echo '{\"code\":99,\"msg\":\"no\"}'; exit 1",
    );
    lab.definition("demo/bad", &bad);
    lab.selects("a,b,bad");
    for _ in 0..2 {
        let outcome = reconcile(&lab, &[]);
        assert_eq!(outcome.exit, 1, "{outcome}");
        assert!(outcome.stderr.contains("demo/bad (net3)"), "{outcome}");
        let left = [entry("eth0", "cluster"), entry("net1", "demo/a")];
        assert_eq!(status(&lab), left);
    }
    lab.recorder("ptp-bad", "ptp", "");
    let both =
        ["demo/b (net2)", "demo/bad (net3)"].map(|it| format!("pod demo/web: attach network {it}"));
    changes(&lab, &both.each_ref().map(String::as_str));
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_network_that_cannot_be_detached_blocks_the_change_until_it_can() {
    let lab = running("");
    let mut bad = lab.ptp("10.20.4.0/24");
    bad["type"] = json!("ptp-bad");
    lab.recorder("ptp-bad", "ptp", "");
    lab.definition("demo/bad", &bad);
    lab.selects("bad,a");
    let both =
        ["demo/bad (net1)", "demo/a (net2)"].map(|it| format!("pod demo/web: attach network {it}"));
    changes(&lab, &both.each_ref().map(String::as_str));
    lab.recorder(
        "ptp-bad",
        "ptp",
        "[ $CNI_COMMAND = DEL ] && { echo '{\"code\":99,\"msg\":\"no\"}'; exit 1; }",
    );
    lab.selects("c");
    for _ in 0..2 {
        let outcome = reconcile(&lab, &[]);
        assert_eq!(outcome.exit, 1, "{outcome}");
        assert!(outcome.stderr.contains("demo/bad (net1)"), "{outcome}");
        assert_eq!(lab.pod.links(), ["eth0", "net1"]);
        // The network that was selected beside it is detached, and the status says so.
        let expected = [entry("eth0", "cluster"), entry("net1", "demo/bad")];
        assert_eq!(status(&lab), expected);
    }
    lab.recorder("ptp-bad", "ptp", "");
    changes(&lab, &["pod demo/web: attach network demo/c (net1)"]);
    assert_eq!(
        status(&lab),
        [entry("eth0", "cluster"), entry("net1", "demo/c")]
    );
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_pod_that_is_not_on_record_is_named() {
    let lab = running("a");
    let outcome = reconcile(&lab, &["--pod", "demo/other"]);
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(outcome.stderr.contains("--pod demo/other"), "{outcome}");
    lab.del();
    let outcome = reconcile(&lab, &["--pod", POD]);
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert_eq!(
        fs::read_dir(lab.path("journal/changes")).map_or(0, Iterator::count),
        0
    );
    lab.assert_nothing_left();
}

#[test]
fn a_change_keeps_to_the_uplink_rules_of_an_add() {
    let lab = running("a");
    let taken = json!({ "cniVersion": "1.0.0", "type": "host-device", "device": UPLINK });
    lab.node.ip("addr add 192.0.2.2/24 dev uplink0");
    lab.node.ip("route add default via 192.0.2.1 dev uplink0");
    lab.definition("demo/uplink", &taken);
    lab.selects("a,uplink");
    refuses(&lab, 104, UPLINK);
    lab.del();
}

/// Injects a fault: the network namespace cannot be opened for a moment, as if it were gone.
#[test]
fn a_change_that_cannot_open_the_namespace_leaves_no_interface_and_loses_no_route() {
    let mut failed = 0;
    for opening in 1..=8 {
        let lab = Lab::new();
        lab.definition("demo/m", &lab.macvlan());
        lab.selects("");
        lab.add();
        let before = lab.pod.default_routes();
        lab.selects_json(&json!([
            { "name": "m", "ips": ["10.20.0.5/24"], "default-route": ["10.20.0.1"] }
        ]));
        changes(&lab, &["pod demo/web: attach network demo/m (net1)"]);
        lab.selects("");
        let netns = lab.pod.path().display().to_string();
        let fault = format!("--inject=?open,?openat:error=EMFILE:when={opening}");
        let strace = ["strace", "-qq", "-o", "/dev/null", "-P", &netns, &fault];
        let outcome = call_of_reconcile(&lab, &[]).under(&strace).run();
        failed += i32::from(outcome.exit != 0);
        reconcile(&lab, &[]);
        assert_eq!(lab.pod.links(), ["eth0"], "{opening}: {outcome}");
        assert_eq!(lab.pod.default_routes(), before, "{opening}: {outcome}");
        lab.check();
        lab.del();
        lab.assert_nothing_left();
    }
    assert!(failed >= 3, "the fault came in {failed} runs only");
}
