//! Upgrade and downgrade with pods attached: the previous release and this one share a node's journal.

use std::path::Path;

use serde_json::json;

use crate::collect::{KEY, call_of_gc, ours};
use crate::lab::{Call, Lab};
use crate::owed::{call_of_other_del, is_due, is_settled};

/// Runs a test as an upgrade and as a downgrade, with the binary before and the one after it. Without
/// the previous release (`need_previous_release` in scripts/lib/setup.sh) there is nothing to run.
fn both_ways(test: impl Fn(&Path, &Path)) {
    let Some(previous) = std::env::var_os("JACKFIELD_PREVIOUS") else {
        return;
    };
    let (previous, current) = (
        Path::new(&previous),
        Path::new(env!("CARGO_BIN_EXE_jackfield")),
    );
    test(previous, current);
    test(current, previous);
}

/// A call that is to succeed and to say nothing.
fn succeeds(call: Call) {
    let outcome = call.run();
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (0, ""),
        "{outcome}"
    );
}

/// A lab whose pod `before` has attached to two further networks, one with the default route.
fn attached(before: &Path) -> Lab {
    let mut lab = Lab::with_two_networks();
    lab.configure("cniVersion", json!("1.1.0"));
    lab.plugin("ADD").program(before).run().success();
    assert_eq!(lab.pod.links(), ["eth0", "mgmt0", "net1"]);
    assert_eq!(lab.pod.default_routes(), ["10.20.0.1 dev net1 metric 0"]);
    lab
}

#[test]
fn what_one_release_attached_the_other_checks_keeps_and_detaches() {
    both_ways(|before, after| {
        let lab = attached(before);
        let attached = lab.leftovers();
        succeeds(lab.plugin("CHECK").program(after));
        succeeds(call_of_gc(&lab, KEY, &ours(&lab)).program(after));
        assert_eq!(lab.leftovers(), attached, "GC keeps what it is to keep");
        succeeds(lab.plugin("DEL").program(after));
        lab.assert_nothing_left();
    });
}

#[test]
fn what_one_release_attached_the_other_collects() {
    both_ways(|before, after| {
        let lab = attached(before);
        succeeds(call_of_gc(&lab, KEY, "[]").program(after));
        lab.assert_nothing_left();
    });
}

#[test]
fn what_a_failed_add_of_one_release_owes_the_other_settles() {
    both_ways(|before, after| {
        let lab = Lab::new();
        let fails = |verb: &str| {
            let error = r#"{"cniVersion":"1.0.0","code":100,"msg":"controller away"}"#;
            format!("[ $CNI_COMMAND = {verb} ] && {{ echo '{error}'; exit 1; }}; true")
        };
        for (name, verb, subnet) in [
            ("stuck", "DEL", "10.30.0.0/24"),
            ("refuses", "ADD", "10.31.0.0/24"),
        ] {
            lab.recorder(name, "ptp", &fails(verb));
            let mut config = lab.ptp(subnet);
            config["type"] = json!(name);
            lab.definition(&format!("demo/{name}"), &config);
        }
        lab.selects("stuck,refuses");
        let add = lab.plugin("ADD").program(before).run();
        add.fails(
            100,
            &["demo/refuses (net2)", "still owed", "demo/stuck (net1)"],
        );
        assert_eq!(lab.pod.links(), ["net1"]);
        lab.recorder("stuck", "ptp", "");
        is_due(&lab);
        succeeds(call_of_other_del(&lab).program(after));
        is_settled(&lab);
        lab.assert_nothing_left();
    });
}

/// This release makes the changes. The previous release makes none.
#[test]
fn networks_of_a_pod_of_the_previous_release_change_and_the_previous_release_detaches_them() {
    let Some(previous) = std::env::var_os("JACKFIELD_PREVIOUS") else {
        return;
    };
    let previous = Path::new(&previous);
    let lab = attached(previous);
    lab.definition("demo/extra", &lab.ptp("10.40.0.0/24"));
    let conf = lab.write("jackfield.conf", &lab.conf().to_string());
    let conf = conf.display().to_string();
    let plugins = crate::lab::real_plugins().display().to_string();
    let reconcile = |expected: &[&str]| {
        let arguments = ["reconcile", "--conf", &conf, "--cni-path", &plugins];
        let outcome = lab.cli(&arguments).run();
        assert_eq!(outcome.exit, 0, "{outcome}");
        let changes = outcome
            .stdout
            .lines()
            .filter_map(|line| line.split_once("pod demo/web: "));
        let changes: Vec<&str> = changes.map(|(_, change)| change).collect();
        assert_eq!(changes, expected, "{outcome}");
    };
    reconcile(&[]);
    let management = json!({ "name": "management", "interface": "mgmt0" });
    lab.selects_json(&json!([management, { "name": "extra" }]));
    reconcile(&[
        "detach network demo/storage (net1)",
        "attach network demo/extra (net2)",
    ]);
    assert_eq!(lab.pod.links(), ["eth0", "mgmt0", "net2"]);
    succeeds(lab.plugin("CHECK").program(previous));
    lab.selects("extra");
    reconcile(&["detach network demo/management (mgmt0)"]);
    lab.selects_json(&json!([management, { "name": "extra" }]));
    reconcile(&["attach network demo/management (mgmt0)"]);
    succeeds(lab.plugin("DEL").program(previous));
    lab.assert_nothing_left();
}
