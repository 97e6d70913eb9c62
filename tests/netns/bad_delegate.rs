//! Delegates may do anything: each fault ends in one line that names network and plugin, and in
//! nothing left.

use std::time::Duration;

use serde_json::json;

use crate::lab::{Lab, Outcome};

/// A lab whose network `demo/bad` is run by `bad`: the real ptp, but on ADD it does `fault`
/// instead.
fn lab_with(fault: &str) -> Lab {
    let mut lab = Lab::new();
    // Injects the fault of each test.
    lab.recorder(
        "bad",
        "ptp",
        &format!("if [ $CNI_COMMAND = ADD ]; then\n{fault}\nfi"),
    );
    let mut config = lab.ptp("10.30.0.0/24");
    config["type"] = json!("bad");
    lab.definition("demo/bad", &config);
    lab.selects("bad");
    lab.configure("deadlines", json!({ "delegate": "3s" }));
    lab
}

fn fails(lab: &Lab, words: &[&str]) -> Outcome {
    let outcome = lab.call("ADD");
    let line = outcome.fails(100, words);
    assert!(
        line.contains("network demo/bad (net1): plugin bad: ADD: "),
        "{line}"
    );
    assert!(line.len() < 4_096, "{} bytes", line.len());
    assert!(outcome.took < Duration::from_secs(20), "{:?}", outcome.took);
    lab.assert_nothing_left();
    outcome
}

#[test]
fn one_that_hangs_is_ended_with_its_grandchildren() {
    for fault in [
        "sleep 600",
        "trap '' TERM INT HUP; while :; do sleep 600; done",
        "(trap '' TERM; sleep 600) & sleep 600 & wait",
        "$REAL/ptp <<<\"$stdin\" >/dev/null; sleep 600",
        // It has answered and does not end.
        "$REAL/ptp <<<\"$stdin\"; sleep 600",
    ] {
        let lab = lab_with(fault);
        fails(&lab, &["no answer within", "deadlines"]);
    }
}

#[test]
fn one_that_leaves_a_child_with_its_stdout_is_not_waited_for() {
    let lab = lab_with("sleep 600 & $REAL/ptp <<<\"$stdin\"; exit");
    let outcome = lab.call("ADD");
    outcome.success();
    assert!(outcome.took < Duration::from_secs(10), "{:?}", outcome.took);
    lab.check();
    let again = lab.call("DEL");
    assert_eq!(again.exit, 0, "{again}");
    assert!(again.took < Duration::from_secs(10), "{:?}", again.took);
    lab.node.end_processes();
    lab.assert_nothing_left();
}

#[test]
fn one_that_floods_is_ended() {
    for fault in ["exec yes", "yes | head -c 300000000; exit"] {
        let lab = lab_with(fault);
        fails(&lab, &["wrote more than", "stdout"]);
    }
}

#[test]
fn one_that_floods_stderr_fails_in_one_line() {
    let lab = lab_with("yes 'no such thing' | head -c 30000000 >&2; exit 3");
    fails(&lab, &["exit status 3", "last output line \"no"]);
    let noisy = lab_with("yes | head -c 30000000 >&2");
    noisy.add();
    noisy.del();
    noisy.assert_nothing_left();
}

#[test]
fn one_that_crashes_is_said_to() {
    for (signal, name) in [
        ("SEGV", "SIGSEGV"),
        ("KILL", "SIGKILL"),
        ("ABRT", "SIGABRT"),
    ] {
        let lab = lab_with(&format!("kill -{signal} $$; sleep 5"));
        fails(&lab, &["crashed", name]);
    }
}

#[test]
fn one_that_writes_two_documents_is_not_believed() {
    for fault in [
        "$REAL/ptp <<<\"$stdin\"; echo '{}'; exit",
        "echo '{}'; $REAL/ptp <<<\"$stdin\"; exit",
    ] {
        let lab = lab_with(fault);
        fails(&lab, &["more than one JSON document"]);
    }
}

// clause: CNI-1.1.0 §2 exit: 0 without a result is no success
#[test]
fn one_that_writes_no_result_is_not_believed() {
    let cases: [(&str, &[&str]); 7] = [
        ("exit 0", &["no result on stdout"]),
        ("echo hello; exit 0", &["not JSON"]),
        (
            "$REAL/ptp <<<\"$stdin\" | head -c 20; exit 0",
            &["not JSON"],
        ),
        ("exit 7", &["exit status 7", "without a CNI error"]),
        (
            "echo 'ip: command not found' >&2; exit 127",
            &["exit status 127", "ip: command not found"],
        ),
        (r#"echo '{"cniVersion":"1.0.0","ips":5}'; exit 0"#, &["ips"]),
        (
            r#"echo '{"cniVersion":"1.0.0","code":7,"msg":"forgot to exit 1"}'; exit 0"#,
            &["forgot to exit 1"],
        ),
    ];
    for (fault, words) in cases {
        let lab = lab_with(fault);
        fails(&lab, words);
    }
}

#[test]
fn one_with_lines_in_its_words_fails_in_one_line() {
    let lab = lab_with(
        r#"echo '{"cniVersion":"1.0.0","code":100,"msg":"first\nsecond\u001b[31m","details":"a\nb"}'; exit 1"#,
    );
    let line = fails(&lab, &["first", "second"]);
    assert!(!line.stdout.contains('\u{1b}'), "{line}");
}

#[test]
fn one_that_answers_addresses_of_no_interface_is_not_believed() {
    let lab = lab_with(r#"$REAL/ptp <<<"$stdin" | jq -c '.ips[0].interface = 17'; exit"#);
    let outcome = lab.call("ADD");
    if outcome.exit == 0 {
        lab.check();
        lab.del();
    }
    lab.assert_nothing_left();
}

/// The time that one delegate takes is not taken from the unwinding.
#[test]
fn the_deadline_of_the_whole_add_keeps_time_for_unwinding() {
    let mut lab = lab_with("sleep 600");
    lab.configure("deadlines", json!({ "add": "3s", "delegate": "60s" }));
    let outcome = lab.call("ADD");
    outcome.fails(100, &["demo/bad (net1)", "no answer within"]);
    assert!(outcome.took < Duration::from_secs(6), "{:?}", outcome.took);
    lab.assert_nothing_left();
}

#[test]
fn a_hanging_del_is_owed_and_keeps_no_other_from_being_detached() {
    let mut lab = Lab::new();
    // Injects a fault: DEL hangs as long as a file is there.
    lab.recorder(
        "bad",
        "ptp",
        "[ $CNI_COMMAND = DEL ] && [ -e $LAB/stuck ] && sleep 600",
    );
    let mut config = lab.ptp("10.30.0.0/24");
    config["type"] = json!("bad");
    lab.definition("demo/bad", &config);
    lab.selects("bad");
    lab.add();
    lab.write("stuck", "");
    // Past either of them it is ended, and none of them is all the time that there is.
    for deadlines in [json!({ "delegate": "3s" }), json!({ "del": "4s" })] {
        lab.configure("deadlines", deadlines);
        lab.call("DEL")
            .fails(106, &["demo/bad (net1)", "no answer within"]);
        assert_eq!(lab.pod.links(), ["net1"]);
        std::fs::remove_file(lab.path("stuck")).unwrap();
        lab.del();
        lab.assert_nothing_left();
        lab.add();
        lab.write("stuck", "");
    }
    std::fs::remove_file(lab.path("stuck")).unwrap();
    lab.del();
}
