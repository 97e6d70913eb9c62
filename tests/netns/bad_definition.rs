//! Definitions and configurations may be anything: whatever is wrong with one is said before the
//! first plugin runs.

use serde_json::{Value, json};

use crate::lab::Lab;

/// Broken configurations of `demo/bad`, and what has to be named.
fn broken(lab: &Lab) -> Vec<(String, Vec<&'static str>)> {
    let with = |key: &str, value: Value| {
        let mut config = lab.macvlan();
        config[key] = value;
        config.to_string()
    };
    let plugins =
        |list: Value| json!({ "cniVersion": "1.0.0", "name": "bad", "plugins": list }).to_string();
    vec![
        ("{".into(), vec!["JSON"]),
        ("[]".into(), vec!["object"]),
        ("null".into(), vec!["object"]),
        ("{}".into(), vec!["type"]),
        ("[".repeat(100_000), vec!["128 levels"]),
        (
            with("type", json!("../../../usr/bin/true")),
            vec!["type", "../../../usr/bin/true"],
        ),
        (
            with("type", json!("/usr/bin/true")),
            vec!["type", "/usr/bin/true"],
        ),
        (
            with("type", json!("sub/macvlan")),
            vec!["type", "sub/macvlan"],
        ),
        (with("type", json!("..")), vec!["type", ".."]),
        (with("type", json!("")), vec!["type"]),
        (with("type", json!(5)), vec!["type", "5"]),
        (
            with("type", json!("not-installed")),
            vec!["no binary named not-installed", "install the plugin"],
        ),
        (
            with("ipam", json!({ "type": "../static" })),
            vec!["ipam.type", "../static"],
        ),
        (
            with("ipam", json!({ "type": "not-there" })),
            vec!["no binary named not-there", "install the plugin"],
        ),
        (with("cniVersion", json!("7.0.0")), vec!["7.0.0", "1.1.0"]),
        (with("cniVersion", json!(1)), vec!["cniVersion", "1"]),
        (with("name", json!("a/b")), vec!["name", "a/b"]),
        (
            r#"{"cniVersion":"1.0.0","type":"macvlan","ipam":{"type":"host-local"},"ipam":{}}"#
                .into(),
            vec!["key \"ipam\" occurs more than once"],
        ),
        (
            r#"{"cniVersion":"1.0.0","plugins":[{"type":"macvlan","Type":null}]}"#.into(),
            vec!["key \"plugins[0].Type\" occurs more than once"],
        ),
        (
            r#"{"cniVersion":"1.0.0","type":"macvlan","ipam":{"a":[{"\u017fize":1,"size":2}]}}"#
                .into(),
            vec!["key \"ipam.a[0].size\" occurs more than once"],
        ),
        (with("type", Value::Null), vec!["no plugin"]),
        (plugins(json!([])), vec!["no plugin"]),
        (plugins(json!({})), vec!["plugins"]),
        (plugins(json!([null])), vec!["plugins"]),
        (
            plugins(json!([{ "type": "macvlan" }, {}])),
            vec!["plugin 2", "type"],
        ),
        (
            plugins(json!([{ "type": "macvlan" }, { "type": "gone" }])),
            vec!["no binary named gone", "install the plugin"],
        ),
    ]
}

// clause: CNI-1.1.0 §1 type: never a path
#[test]
fn a_broken_configuration_fails_before_anything_runs() {
    let all = broken(&Lab::new());
    for (config, words) in all {
        let lab = Lab::new();
        lab.recorder("seen", "bridge", "");
        let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
        bridge["type"] = json!("seen");
        lab.cluster_network("1.0.0", &[bridge]);
        lab.definition_text("demo/bad", &config);
        lab.selects("bad");
        let line = lab.call("ADD").fails(102, &words);
        assert!(line.contains("network demo/bad (net1): "), "{line}");
        assert!(
            line.contains("correct") || line.contains("install"),
            "no remedy: {line}"
        );
        assert!(line.len() < 1_024, "{line}");
        assert!(lab.log("calls").is_empty(), "nothing ran");
        lab.assert_nothing_left();
    }
}

#[test]
fn the_cluster_networks_configuration_may_be_broken_too() {
    let all = broken(&Lab::new());
    for (config, words) in all {
        if config.contains("\"name\":\"a/b\"") || !config.contains("type") {
            continue;
        }
        let lab = Lab::new();
        let path = lab.write("conf/10-cluster.conflist", &config);
        let line = lab.call("ADD").failure(102);
        for word in words {
            assert!(
                line.contains(word) || line.contains("has no name"),
                "{word:?} is missing in: {line}"
            );
        }
        assert!(line.contains("(eth0)"), "{line}");
        let _ = path;
        lab.assert_nothing_left();
    }
}

#[test]
fn a_cluster_network_that_is_not_there_is_named() {
    let mut lab = Lab::new();
    let cases = [
        json!("/nonexistent/10-x.conflist"),
        json!("nobody-knows-this"),
        json!(lab.path("log")),
    ];
    for cluster in cases {
        lab.configure("clusterNetwork", cluster.clone());
        let name = cluster.as_str().unwrap();
        lab.call("ADD").fails(102, &[name, "clusterNetwork"]);
        lab.assert_nothing_left();
    }
    lab.configure("clusterNetwork", json!("/dev/null"));
    lab.call("ADD")
        .fails(102, &["/dev/null", "not a regular file"]);
    lab.assert_nothing_left();
}

#[test]
fn a_file_that_is_no_program_is_not_run() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new();
    let path = lab.write("bin/no-program", "text");
    lab.definition(
        "demo/bad",
        &json!({ "cniVersion": "1.0.0", "type": "no-program" }),
    );
    lab.selects("bad");
    lab.call("ADD").fails(
        102,
        &[
            "demo/bad (net1)",
            "no-program is not executable",
            "chmod 755",
        ],
    );
    lab.assert_nothing_left();
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&path, everybody).unwrap();
    lab.call("ADD")
        .fails(102, &["written by every user", "chmod o-w"]);
    lab.assert_nothing_left();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, executable).unwrap();
    // Neither ELF nor a script: the kernel refuses it when it is to be run, on DEL as well.
    lab.call("ADD")
        .fails(100, &["demo/bad (net1)", "no-program", "cannot be started"]);
    std::fs::remove_file(&path).unwrap();
    lab.delegate("no-program", "exit 0");
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn manifests_that_are_broken_hide_no_others() {
    let lab = Lab::new();
    lab.write("cluster/00-broken.yaml", "kind: [unclosed\n---\n: : :\n");
    lab.write("cluster/01-broken.json", "{");
    lab.write("cluster/02-odd.json", r#"{"kind":"Pod","metadata":5}"#);
    lab.definition("demo/storage", &lab.macvlan());
    lab.selects_json(&json!([{ "name": "storage", "ips": ["10.20.0.5/24"] }]));
    lab.add();
    lab.del();
    lab.selects("absent");
    lab.call("ADD")
        .fails(102, &["demo/absent", "00-broken.yaml"]);
    lab.assert_nothing_left();
}

#[test]
fn a_default_network_that_is_not_there_is_the_administrators_fault() {
    let mut lab = Lab::new();
    lab.configure("defaultNetworks", json!(["nowhere"]));
    lab.call("ADD")
        .fails(102, &["nowhere (net1)", "correct defaultNetworks"]);
    lab.assert_nothing_left();
}
