//! What a runtime may get wrong, at every verb: one line that names it, and nothing is touched.

use serde_json::{Value, json};

use crate::lab::Lab;

const VERBS: [&str; 5] = ["ADD", "DEL", "CHECK", "GC", "STATUS"];

/// Runs every verb with this configuration; each is to fail with `code` and these words.
fn each_verb_fails(lab: &Lab, conf: &str, code: u64, words: &[&str]) {
    for verb in VERBS {
        let outcome = lab.plugin(verb).stdin(conf.as_bytes()).run();
        outcome.fails(code, words);
    }
    lab.assert_nothing_left();
}

/// The lab's configuration in 1.1.0 with other values of some keys.
fn with(lab: &Lab, more: &str) -> String {
    let mut conf = lab.conf().clone();
    conf["cniVersion"] = json!("1.1.0");
    let more_keys: Value = serde_json::from_str(&format!("{{{more}}}")).unwrap();
    let more_keys = more_keys.as_object().unwrap();
    let is_free = |key: &str| more_keys.keys().all(|more| !more.eq_ignore_ascii_case(key));
    conf.as_object_mut().unwrap().retain(|key, _| is_free(key));
    let conf = conf.to_string();
    let conf = conf.trim_end_matches('}');
    format!("{conf},{more}}}")
}

#[test]
fn a_version_that_is_unknown_or_no_string_is_refused() {
    let lab = Lab::new();
    for (version, code, words) in [
        ("\"2.0.0\"", 1, &["2.0.0", "1.1.0"][..]),
        ("\"1.1\"", 1, &["1.1"]),
        ("\"one\"", 1, &["one"]),
        ("7", 6, &["cniVersion", "7"]),
        ("[\"1.1.0\"]", 6, &["cniVersion"]),
        ("{}", 6, &["cniVersion"]),
    ] {
        each_verb_fails(
            &lab,
            &with(&lab, &format!("\"cniVersion\":{version}")),
            code,
            words,
        );
    }
    let conf = with(&lab, "\"cniVersions\":\"1.1.0\"");
    each_verb_fails(&lab, &conf, 7, &["cniVersions"]);
}

// clause: CNI-1.1.0 §1 version
// clause: NPWG-1.3 §7.1 result version
#[test]
fn the_version_that_is_supplied_is_spoken_else_the_highest_that_both_know() {
    let lab = Lab::new();
    for (versions, spoken) in [
        (
            r#""cniVersion":"0.3.1","cniVersions":["0.4.0","1.0.0","9.9.9"]"#,
            "0.3.1",
        ),
        (
            r#""cniVersion":"9.9.9","cniVersions":["0.4.0","1.0.0"]"#,
            "1.0.0",
        ),
        (r#""cniVersion":"1.0.0","cniVersions":["0.3.1"]"#, "1.0.0"),
        (r#""cniVersion":null,"cniVersions":["1.1.0"]"#, "1.1.0"),
        (r#""CniVersion":"0.4.0","cniversions":[]"#, "0.4.0"),
    ] {
        let conf = with(&lab, versions);
        let run = |verb| lab.plugin(verb).stdin(conf.as_bytes()).run();
        assert_eq!(run("ADD").success()["cniVersion"], spoken, "{versions}");
        assert_eq!(run("DEL").exit, 0);
    }
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §1 version: verbs exist from the version that brought them
#[test]
fn a_verb_that_the_version_does_not_have_is_refused() {
    let lab = Lab::new();
    for (verb, newest_without) in [("CHECK", "0.3.1"), ("GC", "1.0.0"), ("STATUS", "1.0.0")] {
        let conf = with(&lab, &format!("\"cniVersion\":\"{newest_without}\""));
        let outcome = lab.plugin(verb).stdin(conf.as_bytes()).run();
        outcome.fails(1, &[newest_without, verb]);
    }
    // A configuration for one may be called with the version that every runtime knows.
    let versions = r#""cniVersion":"1.0.0","cniVersions":["1.0.0","1.1.0"]"#;
    let outcome = lab
        .plugin("STATUS")
        .stdin(with(&lab, versions).as_bytes())
        .run();
    assert_eq!(outcome.exit, 0, "{outcome}");
}

#[test]
fn what_is_no_configuration_is_refused() {
    let lab = Lab::new();
    for (text, code) in [
        ("", 6),
        ("  \n", 6),
        ("{", 6),
        ("[]", 6),
        ("\"text\"", 6),
        ("null", 6),
        ("{} {}", 6),
        (r#"{"cniVersion":"1.1.0","type":"jackfield"}"#, 7),
        (
            r#"{"cniVersion":"1.1.0","name":"a/b","type":"jackfield"}"#,
            7,
        ),
        (r#"{"cniVersion":"1.1.0","name":7,"type":"jackfield"}"#, 7),
    ] {
        each_verb_fails(&lab, text, code, &[]);
    }
    let deep = "[".repeat(200) + &"]".repeat(200);
    each_verb_fails(&lab, &format!("{{\"deep\":{deep}}}"), 6, &["128"]);
}

#[test]
fn a_wrong_value_is_named_with_its_key() {
    let lab = Lab::new();
    for (more, words) in [
        (
            r#""deadlines":{"add":"soon"}"#,
            &["deadlines", "add", "soon"][..],
        ),
        (r#""deadlines":{"del":"0s"}"#, &["deadlines", "del", "0s"]),
        (r#""deadlines":{"gc":"-1s"}"#, &["deadlines", "gc", "-1s"]),
        (r#""deadlines":{"status":2}"#, &["deadlines", "2"]),
        (r#""deadlines":"2s""#, &["deadlines", "2s"]),
        (r#""clusterNetwork":7"#, &["clusterNetwork", "7"]),
        (r#""clusterNetwork":null"#, &["clusterNetwork"]),
        (
            r#""delegates":[{"type":"bridge"}]"#,
            &["clusterNetwork", "delegates"],
        ),
        (
            r#""clusterNetwork":null,"delegates":[]"#,
            &["clusterNetwork", "delegates"],
        ),
        (
            r#""clusterNetwork":null,"delegates":[null]"#,
            &["delegates[0]"],
        ),
        (
            r#""clusterNetwork":null,"delegates":[{"name":"a"}]"#,
            &["delegates[0]", "type"],
        ),
        (
            r#""clusterNetwork":null,"delegates":{"name":"a"}"#,
            &["delegates"],
        ),
        (r#""defaultNetworks":"a""#, &["defaultNetworks"]),
        (r#""defaultNetworks":[1]"#, &["defaultNetworks"]),
        (r#""systemNamespaces":"kube-system""#, &["systemNamespaces"]),
        (
            r#""namespaceIsolation":"maybe""#,
            &["namespaceIsolation", "maybe"],
        ),
        (
            r#""binDir":"relative/dir""#,
            &["binDir", "relative/dir", "absolute"],
        ),
        (r#""journalDir":7"#, &["journalDir", "7"]),
        (
            r#""agentSocket":"/run/x.sock""#,
            &["manifestDir", "agentSocket"],
        ),
        (r#""kubeconfig":"/etc/x""#, &["manifestDir", "kubeconfig"]),
        (
            r#""verify":"sometimes""#,
            &["verify", "sometimes", "strict"],
        ),
        (r#""undeclared":true"#, &["undeclared"]),
        (r#""npwgVersion":"2.0""#, &["npwgVersion", "2.0", "1.3"]),
        (
            r#""invalidAnnotation":"drop""#,
            &["invalidAnnotation", "drop"],
        ),
        (r#""statusAddresses":"both""#, &["statusAddresses", "both"]),
        (r#""statusNeedsAgent":"yes""#, &["statusNeedsAgent", "yes"]),
        (
            r#""policy":{"node":{"types":["a/b"]}}"#,
            &["policy", "node"],
        ),
        (
            r#""policy":{"node":{},"Node":{}}"#,
            &["policy.Node", "more than once"],
        ),
        (
            r#""policy":{},"policy":null"#,
            &["policy", "more than once"],
        ),
        (r#""policy":[]"#, &["policy"]),
        (r#""policy":{"namespaces":[]}"#, &["policy"]),
        (r#""policy":{"namespaces":{"*":[]}}"#, &["policy"]),
        (r#""deadlines":[]"#, &["deadlines"]),
        (
            r#""policy":{"namespaces":{"*":{"types":"macvlan"}}}"#,
            &["policy"],
        ),
        (
            r#""auxiliaryCNIChainName":"../etc""#,
            &["auxiliaryCNIChainName", "../etc"],
        ),
        (
            r#""auxiliaryCNIChainName":["a"]"#,
            &["auxiliaryCNIChainName"],
        ),
    ] {
        each_verb_fails(&lab, &with(&lab, more), 7, words);
    }
}

#[test]
fn nulls_and_other_spellings_of_keys_are_as_good_as_the_documented_ones() {
    let lab = Lab::new();
    let conf = with(
        &lab,
        r#""defaultNetworks":null,"systemNamespaces":null,"policy":null,"deadlines":null,
           "prevResult":null,"runtimeConfig":null,"NamespaceIsolation":false,"READINESSINDICATORFILE":"""#,
    );
    for verb in ["STATUS", "ADD", "CHECK"] {
        let outcome = lab.plugin(verb).stdin(conf.as_bytes()).run();
        assert_eq!(outcome.exit, 0, "{verb}: {outcome}");
        assert!(!outcome.stderr.contains("unknown key"), "{outcome}");
    }
    assert_eq!(lab.plugin("DEL").stdin(conf.as_bytes()).run().exit, 0);
    lab.assert_nothing_left();
}

#[test]
fn keys_without_effect_are_named_once_and_harm_nothing() {
    let mut lab = Lab::new();
    lab.configure("retryDeleteOnError", json!(true));
    lab.configure("socketDir", json!("/run/multus"));
    lab.configure("colour", json!("blue"));
    let outcome = lab.call("ADD");
    assert_eq!(outcome.exit, 0, "{outcome}");
    for key in ["retryDeleteOnError", "socketDir"] {
        let line = format!("key {key:?} of the node configuration has no effect in Jackfield");
        assert_eq!(outcome.stderr.matches(&line).count(), 1, "{outcome}");
    }
    assert!(
        outcome.stderr.contains("unknown key \"colour\""),
        "{outcome}"
    );
    lab.del();
}

#[test]
fn the_log_file_has_a_line_for_each_call_and_stderr_is_quiet_on_demand() {
    let mut lab = Lab::new();
    let file = lab.path("not/there/yet/jackfield.log");
    lab.configure("logFile", json!(file));
    lab.configure("logLevel", json!("Debug"));
    lab.configure("logToStderr", json!(false));
    lab.configure(
        "logOptions",
        json!({ "maxSize": 5, "MaxAge": 5, "compress": true }),
    );
    lab.configure("colour", json!("blue"));
    for (verb, exit) in [("ADD", 0), ("ADD", 1), ("DEL", 0)] {
        let outcome = lab.call(verb);
        assert_eq!((outcome.exit, &*outcome.stderr), (exit, ""), "{outcome}");
    }
    let log = std::fs::read_to_string(&file).unwrap();
    let of = format!(
        "pod demo/web, container {}, interface eth0:",
        lab.container()
    );
    for line in log.lines() {
        assert!(line.contains(&of), "{line}");
    }
    for (line, times) in [
        ("interface eth0: unknown key \"colour\"", 3),
        ("[debug] ADD pod demo/web", 1),
        ("[verbose] ADD pod demo/web", 1),
        (
            "is attached already; the runtime must send DEL first (code 101)",
            1,
        ),
        ("[verbose] DEL pod demo/web", 1),
    ] {
        assert_eq!(log.matches(line).count(), times, "{line}: {log}");
    }
    lab.assert_nothing_left();
}

#[test]
fn a_log_file_that_cannot_be_written_is_said_once_and_stands_in_nobodys_way() {
    let mut lab = Lab::new();
    let dir = lab.path("");
    lab.configure("logFile", json!(dir));
    lab.configure("logLevel", json!("debug"));
    for verb in ["ADD", "CHECK", "DEL"] {
        let outcome = lab.call(verb);
        assert_eq!(outcome.exit, 0, "{outcome}");
        assert_eq!(outcome.stderr.matches("logFile ").count(), 1, "{outcome}");
    }
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §2 ADD result: without it, the ADD has failed
#[test]
fn an_answer_that_cannot_be_written_is_a_failure_and_a_del_takes_everything_back() {
    let lab = Lab::new();
    let full = ["sh", "-c", "exec \"$0\" \"$@\" >/dev/full"];
    let outcome = lab.plugin("ADD").under(&full).run();
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(
        outcome.stderr.contains("cannot be written to stdout"),
        "{outcome}"
    );
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_configuration_as_large_as_an_object_is_read_and_a_flood_is_not() {
    let lab = Lab::new();
    let large = with(
        &lab,
        &format!("\"org.example/note\":{:?}", "x".repeat(1536 << 10)),
    );
    for verb in ["STATUS", "ADD", "CHECK", "DEL"] {
        let outcome = lab.plugin(verb).stdin(large.as_bytes()).run();
        assert_eq!(outcome.exit, 0, "{verb}");
    }
    lab.assert_nothing_left();
    let flood = with(
        &lab,
        &format!("\"org.example/note\":{:?}", "x".repeat(5 << 20)),
    );
    each_verb_fails(&lab, &flood, 5, &["larger than 4194304 bytes"]);
}

#[test]
fn a_chain_that_is_empty_or_endless_is_refused_before_anything_runs() {
    let lab = Lab::new();
    let endless = json!({ "cniVersion": "1.0.0", "plugins": vec![json!({ "type": "ptp" }); 100] });
    for (config, words) in [
        (
            json!({ "cniVersion": "1.0.0", "plugins": [] }),
            &["demo/a", "no plugin"][..],
        ),
        (json!({ "cniVersion": "1.0.0" }), &["demo/a", "no plugin"]),
        (
            json!({ "cniVersion": "1.0.0", "plugins": [{}] }),
            &["demo/a", "plugin 1", "type"],
        ),
        (endless, &["demo/a", "100 plugins", "64"]),
        (
            json!({ "cniVersion": "3.0.0", "type": "ptp" }),
            &["demo/a", "3.0.0"],
        ),
        (
            json!({ "cniVersion": 1, "type": "ptp" }),
            &["demo/a", "cniVersion"],
        ),
        (
            json!({ "cniVersion": "1.0.0", "type": "../../bin/sh" }),
            &["demo/a", "../../bin/sh"],
        ),
    ] {
        lab.definition("demo/a", &config);
        lab.selects("a");
        lab.call("ADD").fails(102, words);
        lab.assert_nothing_left();
    }
}

/// NPWG 1.3 §4.1.2.1: "If the value is invalid, the Network Attachment Selection Annotation shall
/// be invalid and ignored by the implementation", a row each.
// clause: NPWG-1.3 §4.1.2.1.3 invalid
// clause: NPWG-1.3 §4.1.2.1.4 invalid
// clause: NPWG-1.3 §4.1.2.1.5 invalid
// clause: NPWG-1.3 §4.1.2.1.7 invalid
// clause: NPWG-1.3 §4.1.2.1.8 invalid
// clause: NPWG-1.3 §4.1.2.1.9 once
// clause: NPWG-1.3 §4.1.2.1.10 invalid
#[test]
fn every_invalid_value_of_an_annotation_is_ignored_or_refused_as_the_node_says() {
    let mut lab = Lab::new();
    lab.definition("demo/a", &lab.macvlan());
    let rows = [
        (r#""ips":["10.1.1.300"]"#, "ips"),
        (r#""ips":["10.1.1.1/33"]"#, "ips"),
        (r#""ips":"10.1.1.1""#, "ips"),
        (r#""mac":"02:00:00:00:00""#, "mac"),
        (r#""mac":"no mac""#, "mac"),
        (r#""mac":7"#, "mac"),
        (
            r#""mac":"00:00:00:00:fe:80:00:00:00:00:00:00:02:00:00:00:00:00:00:01""#,
            "mac",
        ),
        (r#""interface":"a-name-too-long-to-be-one""#, "interface"),
        (r#""interface":"a/b""#, "interface"),
        (r#""portMappings":[{"hostPort":80}]"#, "portMappings"),
        (
            r#""portMappings":[{"hostPort":0,"containerPort":80}]"#,
            "portMappings",
        ),
        (
            r#""portMappings":[{"hostPort":65536,"containerPort":80}]"#,
            "portMappings",
        ),
        (
            r#""portMappings":[{"hostPort":80,"containerPort":80,"protocol":"icmp"}]"#,
            "portMappings",
        ),
        (r#""portMappings":[[8080,80]]"#, "portMappings"),
        (r#""bandwidth":[10]"#, "bandwidth"),
        (r#""bandwidth":{"ingressRate":0}"#, "bandwidth"),
        (r#""bandwidth":{"ingressBurst":10}"#, "bandwidth"),
        (r#""bandwidth":{"egressBurst":10}"#, "bandwidth"),
        (
            r#""infiniband-guid":"24:8a:07:03:00:8d:ae""#,
            "infiniband-guid",
        ),
        (
            r#""infiniband-guid":"zz:8a:07:03:00:8d:ae:2f""#,
            "infiniband-guid",
        ),
        (r#""default-route":["gateway"]"#, "default-route"),
        (r#""default-route":"10.0.0.1""#, "default-route"),
        (
            r#""default-route":[]},{"name":"a","default-route":[]"#,
            "default-route",
        ),
        (r#""cni-args":[]"#, "cni-args"),
        (r#""namespace":"No Namespace""#, "No Namespace"),
        (
            r#""ipam-claim-reference":"Not A Name""#,
            "ipam-claim-reference",
        ),
    ];
    for (key, named) in rows {
        lab.selects(&format!(r#"[{{"name":"a",{key}}}]"#));
        lab.configure("invalidAnnotation", json!("fail"));
        lab.call("ADD")
            .fails(101, &["k8s.v1.cni.cncf.io/networks", named]);
        lab.assert_nothing_left();
        lab.configure("invalidAnnotation", json!("ignore"));
        lab.add();
        assert_eq!(lab.pod.links(), ["eth0"], "{key}");
        let events = lab.events();
        let said = |event: &&String| {
            event.starts_with("Warning InvalidAnnotation ") && event.contains(named)
        };
        assert!(events.iter().any(|event| said(&event)), "{key}: {events:?}");
        lab.del();
    }
    for whole in [
        "[{}]",
        "[null]",
        "[7]",
        "{",
        "a b",
        "a,,b",
        "@a",
        "a/",
        "[{\"name\":\"\"}]",
    ] {
        lab.selects(whole);
        lab.configure("invalidAnnotation", json!("fail"));
        lab.call("ADD").fails(101, &["k8s.v1.cni.cncf.io/networks"]);
    }
}
