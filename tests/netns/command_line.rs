//! `attach`, `check`, `detach`, `explain` as people and programs use them.

use serde_json::{Value, json};

use crate::lab::{Lab, Outcome};

/// A table's rows, each with its columns, the header left out.
fn rows(table: &str) -> Vec<Vec<String>> {
    let split = |line: &str| {
        let cells = line
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect()
    };
    table.lines().skip(1).map(split).collect()
}

#[test]
fn attach_and_check_print_a_table_of_what_is_attached_and_detach_prints_nothing() {
    let lab = Lab::with_two_networks();
    let attached = lab.command("attach", &[]).run().quiet();
    assert!(attached.starts_with("INTERFACE"), "{attached}");
    let table = rows(&attached);
    assert_eq!(table.len(), 3, "{attached}");
    assert_eq!(
        table[0][..3],
        ["eth0", "cluster (cluster network)", "10.10.0.2"]
    );
    assert_eq!(
        table[1][..4],
        ["net1", "demo/storage", "10.20.0.5", "02:00:00:00:20:05"]
    );
    assert_eq!(table[1].last().unwrap(), "10.20.0.1");
    assert_eq!(table[2][..3], ["mgmt0", "demo/management", "10.30.0.2"]);
    assert_eq!(lab.command("check", &[]).run().quiet(), attached);
    assert_eq!(lab.command("detach", &[]).run().quiet(), "");
    lab.assert_nothing_left();
}

#[test]
fn for_programs_it_is_the_status_list() {
    let lab = Lab::with_two_networks();
    let parse = |outcome: Outcome| -> Value { serde_json::from_str(&outcome.quiet()).unwrap() };
    let attached = parse(lab.command("attach", &["-o", "json"]).run());
    assert_eq!(attached, json!(lab.status()));
    assert_eq!(parse(lab.command("check", &["-o", "json"]).run()), attached);
    assert_eq!(
        parse(lab.command("detach", &["--output", "json"]).run()),
        json!([])
    );
    lab.assert_nothing_left();
}

#[test]
fn what_the_runtime_attached_the_command_line_checks_and_detaches() {
    let lab = Lab::with_two_networks();
    lab.add();
    lab.command("check", &[]).run().quiet();
    lab.command("detach", &[]).run().quiet();
    lab.assert_nothing_left();
}

#[test]
fn the_container_is_named_after_the_pod_unless_it_is_given() {
    let lab = Lab::with_two_networks();
    let conf = lab
        .write("own.conf", &lab.conf().to_string())
        .display()
        .to_string();
    let (netns, plugins) = (
        lab.pod.path().display().to_string(),
        crate::lab::real_plugins().display().to_string(),
    );
    let run = |command: &str| {
        lab.cli(&[
            command,
            "--conf",
            &conf,
            "--netns",
            &netns,
            "--pod",
            "demo/web",
            "--cni-path",
            &plugins,
            "--ifname",
            "pod0",
        ])
        .run()
    };
    run("attach").quiet();
    assert!(lab.path("journal/sandboxes/demo-web@pod0").exists());
    assert!(lab.pod.links().contains(&"pod0".to_owned()));
    run("detach").quiet();
    lab.assert_nothing_left();
}

/// One line on stderr, nothing on stdout, exit 1.
fn one_line(outcome: &Outcome, words: &[&str]) {
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (1, ""),
        "{outcome}"
    );
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
    for word in words {
        assert!(
            outcome.stderr.contains(word),
            "{word:?} is missing in: {outcome}"
        );
    }
}

#[test]
fn a_failure_is_one_line_with_its_code_and_exit_1() {
    let lab = Lab::with_two_networks();
    lab.command("attach", &[]).run().quiet();
    lab.pod.ip("addr del 10.20.0.5/24 dev net1");
    // The reference plugin's own CHECK finds it first.
    one_line(
        &lab.command("check", &[]).run(),
        &["demo/storage (net1)", "10.20.0.5", "code 10"],
    );
    one_line(
        &lab.command("attach", &[]).run(),
        &["attached already", "code 101"],
    );
    lab.command("detach", &[]).run().quiet();
    lab.selects("absent");
    one_line(
        &lab.command("attach", &[]).run(),
        &["demo/absent (net1)", "code 102"],
    );
    one_line(
        &lab.command("check", &[]).run(),
        &["not on record", "code 109"],
    );
    one_line(
        &lab.cli(&[
            "detach",
            "--conf",
            "/nonexistent",
            "--netns",
            "/x",
            "--pod",
            "a/b",
        ])
        .run(),
        &["--conf /nonexistent"],
    );
    lab.assert_nothing_left();
}

#[test]
fn wrong_usage_is_exit_2_and_help_is_exit_0() {
    let lab = Lab::with_two_networks();
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["attach"],
        &["attach", "--conf", "x", "--netns", "y"],
        &["attach", "--conf", "x", "--netns", "y", "--pod", "no-slash"],
        &["attach", "--conf", "x", "--netns", "y", "--pod", "a/b/c"],
        &["explain", "--conf", "x", "--pod", "demo/Web"],
        &["explain", "--conf", "x", "--pod", "../web"],
        &[
            "detach",
            "--conf",
            "x",
            "--netns",
            "y",
            "--pod",
            "a/b",
            "--container-id",
            "a/b",
        ],
        &[
            "attach", "--conf", "x", "--netns", "y", "--pod", "a/b", "-o", "xml",
        ],
        &[
            "attach",
            "--conf",
            "x",
            "--netns",
            "y",
            "--pod",
            "a/b",
            "--ifname",
            "sixteen-bytes-xx",
        ],
        &["explain", "--conf", "x", "--pod", "a/b", "--netns", "y"],
        &["agent", "--node", "a,b"],
    ] {
        let outcome = lab.cli(arguments).run();
        assert_eq!(
            (outcome.exit, outcome.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {outcome}"
        );
        assert!(!outcome.stderr.is_empty(), "{arguments:?}");
    }
    for arguments in [
        &["--help"][..],
        &["attach", "--help"],
        &["explain", "-h"],
        &["--version"],
    ] {
        let outcome = lab.cli(arguments).run();
        assert_eq!(
            (outcome.exit, outcome.stderr.as_str()),
            (0, ""),
            "{arguments:?}: {outcome}"
        );
        assert!(
            outcome.stdout.contains("jackfield") || outcome.stdout.contains("Usage"),
            "{outcome}"
        );
    }
}

#[test]
fn output_that_is_lost_is_a_failure() {
    let lab = Lab::with_two_networks();
    for arguments in [&["man"][..], &["completions", "bash"], &["devices"]] {
        let full = ["sh", "-c", "exec \"$0\" \"$@\" >/dev/full"];
        let outcome = lab.cli(arguments).under(&full).run();
        assert_eq!(outcome.exit, 1, "{outcome}");
        assert!(outcome.stderr.contains("stdout: "), "{outcome}");
    }
}

/// A person who watches sees progress; stdout stays for the table.
#[test]
fn progress_is_for_a_terminal_only() {
    let lab = Lab::with_two_networks();
    let arguments = lab.command("attach", &[]).words();
    let seen = crate::lab::run(
        "ip",
        &[
            "netns",
            "exec",
            lab.node.name(),
            "script",
            "-qec",
            &arguments.join(" "),
            "/dev/null",
        ],
    );
    assert!(seen.contains("attaching demo/web"), "{seen}");
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let lab = Lab::with_two_networks();
    let arguments = lab.command("attach", &[]).words();
    let line = format!("set -o pipefail; {} | true", arguments.join(" "));
    crate::lab::run(
        "ip",
        &["netns", "exec", lab.node.name(), "bash", "-c", &line],
    );
    lab.del();
    lab.assert_nothing_left();
}
