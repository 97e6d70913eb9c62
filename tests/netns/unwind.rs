//! An ADD that fails leaves nothing, wherever it fails; and one that comes after an interrupted
//! one begins anew.

use std::fs;

use serde_json::json;

use crate::lab::Lab;

/// A lab with `count` ptp networks `n1`, `n2`, …, whose plugins record; the pod selects all.
fn lab_with(count: usize) -> Lab {
    let lab = Lab::new();
    let mut names = Vec::new();
    for number in 1..=count {
        let name = format!("n{number}");
        lab.recorder(
            &name,
            "ptp",
            &format!("[ -x $LAB/{name}.sh ] && . $LAB/{name}.sh"),
        );
        let mut config = lab.ptp(&format!("10.3{number}.0.0/24"));
        config["type"] = json!(name);
        lab.definition(&format!("demo/{name}"), &config);
        names.push(name);
    }
    lab.selects(&names.join(","));
    lab
}

/// Injects a fault into a plugin of [`lab_with`]: what it does instead on ADD.
fn inject(lab: &Lab, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = lab.write(
        &format!("{name}.sh"),
        &format!("if [ $CNI_COMMAND = ADD ]; then {script}\nfi"),
    );
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

const REFUSE: &str =
    r#"echo '{"cniVersion":"1.0.0","code":100,"msg":"no ports left","details":"of 48"}'; exit 1"#;
/// The plugin does its work and fails after that.
const ATTACH_AND_REFUSE: &str = r#"$REAL/ptp <<<"$stdin" >/dev/null; echo '{"cniVersion":"1.0.0","code":100,"msg":"no ports left"}'; exit 1"#;

// clause: NPWG-1.3 §7.2 setup fails
// clause: NPWG-1.3 §7.2 not attempted
// clause: CNI-1.1.0 §3 delete after failure
// clause: CNI-1.1.0 §3 delete follows
// clause: CNI-1.1.0 §4 add fails
// clause: CNI-1.1.0 §4 errors
#[test]
fn a_network_that_fails_takes_the_ones_before_it_along_in_reverse() {
    for (failing, undone) in [
        (1, vec!["DEL net1 n1"]),
        (2, vec!["DEL net2 n2", "DEL net1 n1"]),
        (3, vec!["DEL net3 n3", "DEL net2 n2", "DEL net1 n1"]),
    ] {
        for script in [REFUSE, ATTACH_AND_REFUSE] {
            let lab = lab_with(3);
            inject(&lab, &format!("n{failing}"), script);
            let network = format!("demo/n{failing} (net{failing})");
            lab.call("ADD")
                .fails(100, &[&network, "ADD", "no ports left"]);
            let calls = lab.log("calls");
            assert_eq!(calls[failing..], undone, "{calls:?}");
            lab.assert_nothing_left();
        }
    }
}

// clause: CNI-1.1.0 §5 Error: msg and details of the plugin that failed
#[test]
fn the_error_names_network_plugin_verb_and_what_the_plugin_said() {
    let lab = lab_with(1);
    inject(&lab, "n1", REFUSE);
    let line = lab.call("ADD").fails(
        100,
        &["network demo/n1 (net1): plugin n1: ADD: no ports left"],
    );
    assert!(
        line.contains("of 48") && line.contains("code 100"),
        "{line}"
    );
}

#[test]
fn try_again_later_of_a_delegate_is_passed_on() {
    let lab = lab_with(2);
    inject(
        &lab,
        "n2",
        r#"echo '{"cniVersion":"1.0.0","code":11,"msg":"starting"}'; exit 1"#,
    );
    lab.call("ADD").fails(11, &["demo/n2 (net2)", "starting"]);
    lab.assert_nothing_left();
}

#[test]
fn what_cannot_be_unwound_is_owed_and_the_next_del_settles_it() {
    let lab = lab_with(2);
    inject(&lab, "n2", REFUSE);
    // Injects a fault: the first network refuses DEL as long as a file is there.
    let name = "n1";
    let text = r#"[ $CNI_COMMAND = DEL ] && [ -e $LAB/stuck ] && { echo '{"cniVersion":"1.0.0","code":100,"msg":"controller away"}'; exit 1; }; true"#;
    let path = lab.write(&format!("{name}.sh"), text);
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    lab.write("stuck", "");
    let line = lab.call("ADD").fails(
        100,
        &[
            "demo/n2 (net2)",
            "no ports left",
            "still owed",
            "demo/n1 (net1)",
            "controller away",
        ],
    );
    assert!(
        !line.contains("eth0"),
        "the cluster network is not owed: {line}"
    );
    assert_eq!(lab.pod.links(), ["net1"]);
    fs::remove_file(lab.path("stuck")).unwrap();
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn an_add_after_a_failed_one_succeeds() {
    let lab = lab_with(2);
    inject(&lab, "n2", ATTACH_AND_REFUSE);
    lab.call("ADD").fails(100, &["no ports left"]);
    fs::remove_file(lab.path("n2.sh")).unwrap();
    lab.add();
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

/// Ends the plugin while a delegate runs, as the out-of-memory killer does: the record and what
/// was attached stay behind.
fn interrupted(lab: &Lab) {
    inject(lab, "n2", r#"kill -9 $PPID; $REAL/ptp <<<"$stdin"; exit"#);
    let outcome = lab.call("ADD");
    assert_ne!(outcome.exit, 0, "{outcome}");
    assert_eq!(outcome.stdout, "", "{outcome}");
    fs::remove_file(lab.path("n2.sh")).unwrap();
    assert!(lab.pod.links().contains(&"net1".to_owned()));
}

// clause: CNI-1.1.0 §3 delete follows: also after an interruption
#[test]
fn an_add_after_an_interrupted_one_detaches_what_was_left_and_succeeds() {
    let lab = lab_with(2);
    interrupted(&lab);
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net1", "net2"]);
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_del_after_an_interrupted_add_leaves_nothing() {
    let lab = lab_with(2);
    interrupted(&lab);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_check_after_an_interrupted_add_says_so() {
    let lab = lab_with(2);
    interrupted(&lab);
    lab.call("CHECK")
        .fails(109, &["interrupted", "DEL it and ADD it again"]);
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §2 ADD twice: is refused
#[test]
fn a_second_add_is_refused_and_harms_nothing() {
    let lab = lab_with(1);
    lab.add();
    let before = lab.leftovers();
    lab.call("ADD").fails(
        101,
        &[&lab.container(), "eth0", "attached already", "DEL first"],
    );
    assert_eq!(lab.leftovers(), before);
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

/// A runtime that lost its state makes a new sandbox under the same name.
#[test]
fn an_add_into_another_netns_of_the_same_name_begins_anew() {
    let mut lab = lab_with(1);
    lab.add();
    lab.renew_pod();
    lab.add();
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}
