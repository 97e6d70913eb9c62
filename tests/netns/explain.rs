//! `explain`: what an ADD would do, and every reason why it would fail, without running anything.

use serde_json::{Value, json};

use crate::lab::Lab;

#[test]
fn explain_shows_the_plan_and_runs_nothing() {
    let lab = Lab::with_two_networks();
    lab.recorder("seen", "bridge", "");
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("seen");
    lab.cluster_network("1.0.0", &[bridge]);
    let plan = lab.command("explain", &[]).run().quiet();
    for words in [
        "eth0",
        "cluster",
        "net1",
        "demo/storage",
        "macvlan",
        "10.20.0.5/24",
        "02:00:00:00:20:05",
        "10.20.0.1",
        "mgmt0",
        "demo/management",
        "ptp",
    ] {
        assert!(plan.contains(words), "{words:?} is missing in: {plan}");
    }
    let parsed: Value =
        serde_json::from_str(&lab.command("explain", &["-o", "json"]).run().quiet()).unwrap();
    assert_eq!(parsed["problems"], json!([]));
    assert_eq!(parsed["attachments"][1]["interface"], "net1");
    assert_eq!(parsed["attachments"][1]["ips"], json!(["10.20.0.5/24"]));
    assert!(lab.log("calls").is_empty());
    assert!(!lab.path("cluster/status").exists(), "no status, no event");
    lab.assert_nothing_left();
}

/// Text of others in every place that they can reach, on each way to people: no character that acts
/// on a terminal passes, and no line is begun.
#[test]
fn text_of_others_acts_on_no_terminal_and_begins_no_line() {
    let mut lab = Lab::new();
    let file = lab.path("jackfield.log");
    lab.configure("logFile", json!(file));
    let evil = "\u{1b}[2J\u{9b}31m\n2026 [error] forged\r\u{7f}\u{202e}\u{2066}\u{200b}\u{2028}";
    lab.definition("demo/net", &lab.macvlan_of_its_own());
    lab.selects_json(&json!([{
        "name": "net", "interface": "ok0", evil: 1,
        "cni-args": { evil: evil },
    }]));
    lab.delegate(
        "odd",
        &format!(
            "printf '%s' '{}' >&2; echo '{}'; exit 1",
            evil.replace('\n', ""),
            json!({ "cniVersion": "1.0.0", "code": 7, "msg": evil, "details": evil })
        ),
    );
    lab.definition("demo/odd", &json!({ "cniVersion": "1.0.0", "type": "odd" }));
    let is_fine = |text: &str| {
        let odd = |letter: &char| {
            letter.is_control() && *letter != '\n'
                || ('\u{2000}'..'\u{2070}').contains(letter) && *letter != '…'
        };
        text.chars().find(odd).is_none()
            && !text.lines().any(|line| line.starts_with("2026 [error]"))
    };
    for form in ["table", "json"] {
        let shown = lab.command("explain", &["-o", form]).run();
        assert!(shown.stdout.contains("forged"), "{shown}");
        assert!(is_fine(&shown.stdout) && is_fine(&shown.stderr), "{shown}");
    }
    lab.selects_json(&json!([{ "name": "odd", evil: 1 }]));
    let added = lab.call("ADD");
    assert_eq!(added.exit, 1, "{added}");
    let answer: Value = serde_json::from_str(&added.stdout).unwrap();
    for key in ["msg", "details"] {
        let text = answer[key].as_str().unwrap();
        assert!(is_fine(text) && !text.contains('\n'), "{key}: {text:?}");
    }
    assert!(is_fine(&added.stderr), "{added}");
    let log = std::fs::read_to_string(file).unwrap();
    assert!(log.contains("forged") && is_fine(&log), "{log:?}");
    for event in lab.events() {
        assert!(is_fine(&event), "{event:?}");
    }
    for verb in ["attach", "detach"] {
        let shown = lab.command(verb, &[]).run();
        assert!(is_fine(&shown.stdout) && is_fine(&shown.stderr), "{shown}");
    }
}

/// An ADD with an annotation that is ignored succeeds, and is not what its author wants.
#[test]
fn explain_fails_where_an_annotation_would_be_ignored() {
    let lab = Lab::new();
    lab.definition("demo/storage", &lab.macvlan());
    lab.selects_json(&json!([{ "name": "storage", "ips": ["10.20.0.256"] }]));
    let explained = lab.command("explain", &[]).run();
    assert_eq!(explained.exit, 1, "{explained}");
    for words in ["would start without", "10.20.0.256", "eth0"] {
        assert!(explained.stdout.contains(words), "{words}: {explained}");
    }
    let explained = lab.command("explain", &["-o", "json"]).run();
    assert_eq!(explained.exit, 1, "{explained}");
    let parsed: Value = serde_json::from_str(&explained.stdout).unwrap();
    assert_eq!(parsed["problems"], json!([]));
    let ignored = parsed["ignored"].as_array().unwrap();
    assert_eq!(ignored.len(), 1, "{parsed}");
    assert!(ignored[0].as_str().unwrap().contains("10.20.0.256"));
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0"]);
    lab.del();
    lab.assert_nothing_left();
}

/// An ADD waits for the cluster network 45 seconds; a question does not.
#[test]
fn explain_says_at_once_that_the_cluster_network_is_not_ready() {
    let mut lab = Lab::with_two_networks();
    let indicator = lab.path("ready");
    lab.configure("readinessindicatorfile", json!(indicator));
    let asked = std::time::Instant::now();
    let explained = lab.command("explain", &["-o", "json"]).run();
    assert!(asked.elapsed() < std::time::Duration::from_secs(20));
    let parsed: Value = serde_json::from_str(&explained.stdout).unwrap();
    let problems = parsed["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{parsed}");
    let problem = problems[0].as_str().unwrap();
    assert!(
        problem.contains(&indicator.display().to_string()),
        "{problem}"
    );
    assert_eq!(parsed["attachments"].as_array().unwrap().len(), 3);
}

/// Every reason that ADD gives, `explain` gives in the same words, and all of them at once.
#[test]
fn explain_finds_what_add_finds() {
    let mut lab = Lab::with_two_networks();
    let mut plain = lab.macvlan();
    plain["capabilities"] = json!({});
    lab.definition("demo/plain", &plain);
    lab.definition(
        "demo/gone",
        &json!({ "cniVersion": "1.0.0", "type": "not-installed" }),
    );
    lab.definition_text("demo/broken", "{");
    lab.definition("other/secret", &lab.macvlan());
    lab.configure("invalidAnnotation", json!("fail"));
    let findings = [
        json!([{ "name": "absent" }]),
        json!([{ "name": "broken" }]),
        json!([{ "name": "gone" }]),
        json!([{ "name": "plain", "mac": "02:00:00:00:20:05" }]),
        json!([{ "name": "secret", "namespace": "other" }]),
        json!([{ "name": "storage", "interface": "eth0" }]),
        json!([null]),
    ];
    for networks in &findings {
        lab.selects_json(networks);
        let outcome = lab.call("ADD");
        let said = outcome.json()["msg"].as_str().unwrap().to_owned();
        let code = outcome.json()["code"].to_string();
        let explained = lab.command("explain", &[]).run();
        assert_eq!(explained.exit, 1, "{explained}");
        assert!(
            explained.stdout.contains(&said),
            "{said:?} is missing in: {explained}"
        );
        assert!(explained.stdout.contains(&code), "{explained}");
    }
    lab.selects_json(&json!([{ "name": "absent" }, { "name": "gone" }, { "name": "plain", "mac": "02:00:00:00:20:05" }]));
    let outcome = lab.command("explain", &["-o", "json"]).run();
    let explained: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        explained["problems"].as_array().unwrap().len(),
        3,
        "{explained}"
    );
    lab.assert_nothing_left();
}

/// What is wrong with the node is found as well.
#[test]
fn explain_finds_a_journal_that_cannot_be_written() {
    let mut lab = Lab::with_two_networks();
    // Injects a fault: a file in the directory's place.
    lab.write("journal", "");
    lab.set_out();
    let said = lab.call("ADD").failure(109);
    let explained = lab.command("explain", &[]).run();
    assert_eq!(explained.exit, 1, "{explained}");
    assert!(
        explained.stdout.contains("(code 109)"),
        "{said}: {explained}"
    );
    lab.assert_nothing_left();
}
