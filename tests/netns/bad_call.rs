//! What the runtime hands over may be anything: one line says what is wrong, and nothing is done.

use serde_json::{Value, json};

use crate::lab::Lab;

/// An ADD with `stdin` fails with `code` in one line that holds `words`, and leaves nothing.
fn refused(lab: &Lab, stdin: &[u8], code: u64, words: &[&str]) {
    let started = std::time::Instant::now();
    lab.plugin("ADD").stdin(stdin).run().fails(code, words);
    assert!(started.elapsed().as_secs() < 20);
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §5 Error: code 6 for what cannot be decoded, 5 for I/O
#[test]
fn stdin_that_is_no_configuration() {
    let lab = Lab::new();
    let conf = lab.conf().to_string();
    let cut = &conf[..conf.len() / 2];
    let deep = "[".repeat(100_000);
    let deep_inside = conf.replacen('{', &format!("{{\"x\":{deep}"), 1);
    let large_inside = conf.replacen('{', &format!("{{\"x\":\"{}\",", "y".repeat(10 << 20)), 1);
    let cases: Vec<(Vec<u8>, u64, &[&str])> = vec![
        (b"".to_vec(), 6, &["stdin", "empty"]),
        (b" \n\t ".to_vec(), 6, &["stdin", "empty"]),
        (cut.into(), 6, &["stdin", "JSON"]),
        (b"{".to_vec(), 6, &["stdin", "JSON"]),
        (b"[]".to_vec(), 6, &["stdin", "object"]),
        (b"null".to_vec(), 6, &["stdin", "object"]),
        (b"\"x\"".to_vec(), 6, &["stdin", "object"]),
        (b"\xff\xfe{}".to_vec(), 6, &["stdin", "UTF-8"]),
        (format!("{conf}{conf}").into_bytes(), 6, &["stdin", "JSON"]),
        (
            vec![b' '; 10 << 20],
            5,
            &["stdin", "4194304 bytes", "make it smaller"],
        ),
        (large_inside.into_bytes(), 5, &["stdin", "4194304 bytes"]),
        (
            deep.clone().into_bytes(),
            6,
            &["stdin", "128 levels", "flatten it"],
        ),
        (deep_inside.into_bytes(), 6, &["stdin", "128 levels"]),
        (
            "{\"a\":".repeat(100_000).into_bytes(),
            6,
            &["stdin", "128 levels"],
        ),
    ];
    for (stdin, code, words) in cases {
        refused(&lab, &stdin, code, words);
    }
}

// clause: CNI-1.1.0 §5 Error: code 7 for an invalid network configuration, 1 for its version
#[test]
fn a_configuration_with_a_wrong_value() {
    let cases: [(&str, Value, u64, &[&str]); 14] = [
        (
            "cniVersion",
            json!(1),
            6,
            &["cniVersion", "1", "as strings"],
        ),
        ("cniVersion", json!("9.9.9"), 1, &["9.9.9", "1.1.0"]),
        ("cniVersion", json!("latest"), 1, &["latest", "1.1.0"]),
        ("name", Value::Null, 7, &["name", "missing"]),
        ("name", json!("a/b"), 7, &["name", "a/b"]),
        ("name", json!(5), 7, &["name", "5"]),
        (
            "clusterNetwork",
            Value::Null,
            7,
            &["clusterNetwork", "missing", "delegates"],
        ),
        (
            "clusterNetwork",
            json!(["x"]),
            7,
            &["clusterNetwork", "[\"x\"]"],
        ),
        (
            "delegates",
            json!([{ "type": "bridge", "name": "x" }]),
            7,
            &["clusterNetwork", "delegates"],
        ),
        ("kubeconfig", json!("/x"), 7, &["manifestDir", "kubeconfig"]),
        ("verify", json!("maybe"), 7, &["verify", "maybe", "strict"]),
        (
            "deadlines",
            json!({ "add": "soon" }),
            7,
            &["deadlines", "soon"],
        ),
        (
            "namespaceIsolation",
            json!("perhaps"),
            7,
            &["namespaceIsolation", "perhaps"],
        ),
        (
            "invalidAnnotation",
            json!("shrug"),
            7,
            &["invalidAnnotation", "shrug", "ignore"],
        ),
    ];
    for (key, value, code, words) in cases {
        let mut lab = Lab::new();
        lab.configure(key, value);
        lab.call("ADD").fails(code, words);
        lab.assert_nothing_left();
    }
}

#[test]
fn an_unknown_key_is_one_line_on_stderr_and_no_failure() {
    let mut lab = Lab::new();
    lab.configure("clusterNetwrok", json!("x"));
    let outcome = lab.call("ADD");
    outcome.success();
    let about: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.contains("clusterNetwrok"))
        .collect();
    assert_eq!(about.len(), 1, "{outcome}");
    lab.del();
}

// clause: CNI-1.1.0 §5 code 4
#[test]
fn variables_that_are_missing_or_wrong() {
    let long = "c".repeat(300);
    let cases: [(&str, Option<&str>, &[&str]); 14] = [
        (
            "CNI_COMMAND",
            Some("ATTACH"),
            &["CNI_COMMAND", "ATTACH", "ADD"],
        ),
        ("CNI_COMMAND", Some("add"), &["CNI_COMMAND", "add", "ADD"]),
        ("CNI_CONTAINERID", None, &["CNI_CONTAINERID"]),
        ("CNI_CONTAINERID", Some(""), &["CNI_CONTAINERID"]),
        (
            "CNI_CONTAINERID",
            Some("../../etc"),
            &["CNI_CONTAINERID", "../../etc"],
        ),
        ("CNI_CONTAINERID", Some("-rf"), &["CNI_CONTAINERID", "-rf"]),
        ("CNI_IFNAME", None, &["CNI_IFNAME"]),
        (
            "CNI_IFNAME",
            Some("sixteen-bytes-xx"),
            &["CNI_IFNAME", "sixteen-bytes-xx"],
        ),
        ("CNI_IFNAME", Some("a/b"), &["CNI_IFNAME", "a/b"]),
        ("CNI_IFNAME", Some(".."), &["CNI_IFNAME", ".."]),
        ("CNI_NETNS", None, &["CNI_NETNS"]),
        ("CNI_PATH", None, &["CNI_PATH"]),
        ("CNI_ARGS", Some("no-pair"), &["CNI_ARGS", "no-pair"]),
        ("CNI_CONTAINERID", Some("a b"), &["CNI_CONTAINERID", "a b"]),
    ];
    let lab = Lab::new();
    for (name, value, words) in cases {
        let call = lab.plugin("ADD").without(name);
        let call = match value {
            Some(value) => call.env(name, value),
            None => call,
        };
        call.run().fails(4, words);
        lab.assert_nothing_left();
    }
    // Long, and allowed: it has to fit into file names all the same.
    let call = |verb: &str| lab.plugin(verb).env("CNI_CONTAINERID", &long).run();
    call("ADD").success();
    assert_eq!(call("DEL").exit, 0);
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §2 VERSION
// clause: CNI-1.1.0 §5 VERSION: cniVersion and supportedVersions
#[test]
fn version_answers_whatever_is_on_stdin() {
    let lab = Lab::new();
    for stdin in ["", "{", r#"{"cniVersion":"0.4.0"}"#, "[]"] {
        let call = lab.plugin("VERSION").stdin(stdin.as_bytes());
        let call = call
            .without("CNI_CONTAINERID")
            .without("CNI_NETNS")
            .without("CNI_IFNAME");
        let answer = call.without("CNI_PATH").run().success();
        for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
            let supported = answer["supportedVersions"].as_array().unwrap();
            assert!(supported.iter().any(|it| it == version), "{answer}");
        }
        let spoken = answer["cniVersion"].as_str().unwrap();
        assert_eq!(
            spoken,
            if stdin.contains("0.4.0") {
                "0.4.0"
            } else {
                "1.1.0"
            }
        );
    }
}

// clause: CNI-1.1.0 §5 Error: cniVersion is that of the configuration
#[test]
fn an_error_speaks_the_runtimes_version() {
    for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let mut lab = Lab::new();
        lab.configure("cniVersion", json!(version));
        lab.configure("verify", json!("maybe"));
        let outcome = lab.call("ADD");
        outcome.fails(7, &["maybe"]);
        assert_eq!(outcome.json()["cniVersion"], version);
    }
}

/// The pod's name becomes part of a path.
#[test]
fn a_pods_name_that_is_none_is_refused() {
    let lab = Lab::new();
    for (namespace, name, bad) in [
        ("demo", "../../../etc", "../../../etc"),
        ("..", "web", "\"..\""),
        ("demo", "a/b", "a/b"),
        ("demo", "Web", "Web"),
    ] {
        let args = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}");
        lab.plugin("ADD")
            .env("CNI_ARGS", &args)
            .run()
            .fails(4, &["CNI_ARGS", bad]);
        lab.assert_nothing_left();
    }
}
