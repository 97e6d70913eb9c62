//! Jackfield is never its own delegate, by whatever way round.

use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::json;

use crate::lab::Lab;

const US: &str = env!("CARGO_BIN_EXE_jackfield");

#[test]
fn by_its_own_name() {
    let lab = Lab::new();
    symlink(US, lab.path("bin/jackfield")).unwrap();
    lab.definition("demo/loop", lab.conf());
    lab.selects("loop");
    lab.call("ADD").fails(
        102,
        &["demo/loop", "jackfield itself", "name another plugin"],
    );
    lab.assert_nothing_left();
}

#[test]
fn by_a_link_under_another_name() {
    let lab = Lab::new();
    symlink(US, lab.path("bin/innocent")).unwrap();
    std::fs::hard_link(US, lab.path("bin/hard")).ok();
    for name in ["innocent", "hard"] {
        if !lab.path("bin").join(name).exists() {
            // Hard links end at a file system's border; the symbolic one is always tried.
            continue;
        }
        lab.definition("demo/loop", &json!({ "cniVersion": "1.0.0", "type": name }));
        lab.selects("loop");
        lab.call("ADD")
            .fails(102, &["demo/loop", name, "jackfield itself"]);
        lab.assert_nothing_left();
    }
}

#[test]
fn as_cluster_network() {
    let lab = Lab::new();
    symlink(US, lab.path("bin/jackfield")).unwrap();
    lab.cluster_network("1.0.0", &[lab.conf().clone()]);
    lab.call("ADD")
        .fails(102, &["cluster (eth0)", "jackfield itself"]);
    lab.assert_nothing_left();
}

/// A copy is another file: the one below finds out by what the one above told it.
#[test]
fn by_a_copy_of_the_binary() {
    let lab = Lab::new();
    std::fs::copy(US, lab.path("bin/copy")).unwrap();
    let mut config = lab.conf().clone();
    config["type"] = json!("copy");
    // One that could run, and one that says nothing.
    for config in [config, json!({ "cniVersion": "1.0.0", "type": "copy" })] {
        lab.definition("demo/loop", &config);
        lab.selects("loop");
        let outcome = lab.call("ADD");
        outcome.fails(100, &["demo/loop (net1)", "copy", "delegate"]);
        assert!(
            outcome.took < Duration::from_secs(20),
            "no waiting for the lock: {:?}",
            outcome.took
        );
        lab.assert_nothing_left();
    }
}

/// A runtime's environment may have any value. A DEL that does nothing must not succeed.
#[test]
fn a_depth_that_is_no_number_fails_every_verb_and_is_named() {
    let lab = Lab::with_two_networks();
    lab.add();
    for verb in ["DEL", "CHECK"] {
        let call = lab.plugin(verb).env("JACKFIELD_DEPTH", "x");
        call.run()
            .fails(7, &["JACKFIELD_DEPTH \"x\" is not a number", "remove it"]);
    }
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

/// A → B → A: through another plugin that delegates.
#[test]
fn by_another_plugin_that_delegates_back() {
    let lab = Lab::new();
    lab.delegate("between", &format!("exec {US}"));
    let mut config = lab.conf().clone();
    config["type"] = json!("between");
    lab.definition("demo/loop", &config);
    lab.selects("loop");
    let outcome = lab.call("ADD");
    outcome.fails(100, &["demo/loop (net1)", "between"]);
    assert!(outcome.took < Duration::from_secs(20), "{:?}", outcome.took);
    lab.assert_nothing_left();
}
