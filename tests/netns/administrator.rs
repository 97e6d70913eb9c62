//! What the administrator's configuration adds to every pod, and what it keeps pods from: the keys
//! that Multus' users know.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{Lab, POD};

const DEFAULT: &str = "v1.multus-cni.io/default-network";

#[test]
fn every_element_of_delegates_is_attached_the_first_as_cluster_network() {
    let mut lab = Lab::new();
    let mut first = lab.bridge("cni0", "10.10.0.0/24");
    first["name"] = json!("first");
    first["cniVersion"] = json!("0.4.0");
    let second =
        json!({ "name": "second", "cniVersion": "1.0.0", "plugins": [lab.ptp("10.20.0.0/24")] });
    lab.configure("clusterNetwork", json!(null));
    lab.configure("delegates", json!([first, second]));
    lab.definition("demo/a", &lab.ptp("10.21.0.0/24"));
    lab.selects("a");
    let result = lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net1", "net2"]);
    assert_eq!(
        result["cniVersion"], "1.0.0",
        "the runtime's, whatever the delegate answered"
    );
    let status = lab.status();
    let names: Vec<_> = status.iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["first", "second", "demo/a"]);
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

/// A node with a chain for every pod, whose two plugins are recorded.
fn lab_with_a_chain() -> Lab {
    let mut lab = Lab::new();
    lab.configure("auxiliaryCNIChainName", json!("vendor-chain"));
    lab.bystander("vendor-a");
    lab.bystander("vendor-b");
    lab.write(
        "conf/vendor-chain/20-b.conf",
        r#"{"name":"b","type":"vendor-b","half":1.10}"#,
    );
    lab.write(
        "conf/vendor-chain/10-a.conf",
        r#"{"name":"a","type":"vendor-a"}"#,
    );
    lab.write("conf/vendor-chain/readme.txt", "{");
    lab
}

#[test]
fn an_auxiliary_chain_runs_for_every_pod_on_its_own_and_last() {
    let lab = lab_with_a_chain();
    lab.definition("demo/a", &lab.ptp("10.20.0.0/24"));
    lab.selects("a");
    let result = lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net1"]);
    assert_eq!(lab.log("calls"), ["ADD net2 vendor-a", "ADD net2 vendor-b"]);
    let told = &lab.recorded("vendor-a", "ADD")[0];
    assert_eq!(told["name"], "vendor-chain");
    assert_eq!(told["cniVersion"], "1.0.0");
    // Plugins that are written to be chained want a result in front of them, be it empty.
    assert_eq!(told["prevResult"]["cniVersion"], "1.0.0");
    assert!(
        told["prevResult"]
            .get("interfaces")
            .is_none_or(|it| it == &json!([]))
    );
    let text = fs::read_to_string(lab.path("log/vendor-b.ADD")).unwrap();
    assert!(text.contains("\"half\":1.10"), "as it was written: {text}");
    assert_eq!(lab.status().len(), 2, "it is no attachment of the pod's");
    assert_eq!(result["interfaces"][2]["name"], "eth0");
    lab.check();
    lab.del();
    assert!(lab.log("calls").ends_with(&[
        "DEL net2 vendor-b".to_owned(),
        "DEL net2 vendor-a".to_owned()
    ]));
    lab.assert_nothing_left();
}

#[test]
fn an_auxiliary_chain_may_be_empty_and_may_not_be_broken() {
    let lab = lab_with_a_chain();
    lab.write("conf/vendor-chain/30-c.conf", "{}");
    lab.call("ADD")
        .fails(102, &["auxiliaryCNIChainName", "30-c.conf", "type"]);
    lab.assert_nothing_left();
    fs::remove_dir_all(lab.path("conf/vendor-chain")).unwrap();
    lab.add();
    assert!(lab.log("calls").is_empty());
    lab.del();
}

#[test]
fn an_auxiliary_chain_that_fails_takes_the_pod_along() {
    let lab = lab_with_a_chain();
    lab.recorder(
        "vendor-b",
        "-",
        "[ $CNI_COMMAND = ADD ] && { echo '{\"code\":9,\"msg\":\"no\"}'; exit 1; }; exit 0",
    );
    lab.call("ADD").fails(100, &["vendor-chain", "vendor-b"]);
    lab.assert_nothing_left();
}

#[test]
fn a_name_that_a_pod_asks_for_is_not_taken_by_the_auxiliary_chain() {
    let lab = lab_with_a_chain();
    lab.definition("demo/a", &lab.ptp("10.20.0.0/24"));
    lab.selects("a@net2");
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net2"]);
    assert_eq!(lab.log("calls")[0], "ADD net3 vendor-a");
    lab.del();
}

// clause: CNI-1.1.0 §1 aggregation: the sibling folder is appended
// clause: CNI-1.1.0 §1 inlined plugins
#[test]
fn plugins_in_the_folder_of_a_list_are_appended_to_it() {
    let lab = Lab::new();
    lab.bystander("vendor-a");
    lab.write("conf/cluster/10-a.conf", r#"{"type":"vendor-a"}"#);
    lab.add();
    assert_eq!(lab.log("calls"), ["ADD eth0 vendor-a"]);
    assert!(lab.recorded("vendor-a", "ADD")[0]["prevResult"]["ips"].is_array());
    lab.del();
    let text = fs::read_to_string(lab.path("conf/10-cluster.conflist")).unwrap();
    let mut list: Value = serde_json::from_str(&text).unwrap();
    list["loadOnlyInlinedPlugins"] = json!(true);
    lab.write("conf/10-cluster.conflist", &list.to_string());
    lab.add();
    assert_eq!(lab.recorded("vendor-a", "ADD").len(), 1, "not again");
    lab.del();
    lab.assert_nothing_left();
}

/// A definition of another namespace, named in each way that a pod has.
fn lab_with_a_stranger() -> Lab {
    let lab = Lab::new();
    lab.definition("secret/a", &lab.ptp("10.20.0.0/24"));
    lab
}

const WAYS: [(&str, &str); 5] = [
    ("k8s.v1.cni.cncf.io/networks", "secret/a"),
    ("k8s.v1.cni.cncf.io/networks", "secret/a@net7"),
    (
        "k8s.v1.cni.cncf.io/networks",
        r#"[{"name":"a","namespace":"secret"}]"#,
    ),
    (DEFAULT, "secret/a"),
    (DEFAULT, r#"[{"name":"a","namespace":"secret"}]"#),
];

// clause: NPWG-1.3 §7.4 a definition that the pod may not use fails the pod network operation
#[test]
fn isolation_holds_on_every_way_a_definition_can_be_named() {
    let mut lab = lab_with_a_stranger();
    for (key, value) in WAYS {
        lab.pod_with(POD, json!({ key: value }));
        lab.call("ADD")
            .fails(108, &["secret/a", "namespaceIsolation", "globalNamespaces"]);
        lab.assert_nothing_left();
        // The same when the runtime hands the annotation over.
        let mut conf = lab.conf().clone();
        conf["runtimeConfig"] = json!({ "io.kubernetes.cri.pod-annotations": { key: value } });
        let outcome = lab.plugin("ADD").stdin(conf.to_string().as_bytes()).run();
        outcome.fails(108, &["secret/a"]);
        lab.assert_nothing_left();
    }
    for (key, value) in [
        ("namespaceIsolation", json!(false)),
        ("globalNamespaces", json!("default, secret")),
    ] {
        lab.configure(key, value);
        for (annotation, value) in WAYS {
            lab.pod_with(POD, json!({ annotation: value }));
            lab.add();
            lab.del();
        }
        lab.configure(key, json!(null));
    }
    lab.assert_nothing_left();
}

#[test]
fn isolation_tells_nothing_about_what_it_hides() {
    let lab = Lab::new();
    lab.definition_text("secret/broken", r#"{"password":"hunter2"#);
    let mut lines = Vec::new();
    for name in ["broken", "absent"] {
        lab.selects(&format!("secret/{name}"));
        lines.push(lab.call("ADD").failure(108).replace(name, "NAME"));
    }
    assert_eq!(lines[0], lines[1], "there or not, broken or not");
    assert!(!lines[0].contains("hunter2"));
}

#[test]
fn a_policy_says_which_plugins_networks_and_keys_a_namespace_may_use() {
    let mut lab = Lab::new();
    lab.definition("demo/a", &lab.ptp("10.20.0.0/24"));
    let mut ptp = lab.ptp("10.21.0.0/24");
    ptp["SysCtl"] = json!({ "net.ipv4.ip_forward": "1" });
    lab.definition("demo/b", &ptp);
    let refused = |lab: &mut Lab, rule: Value, network: &str, words: &[&str]| {
        lab.configure(
            "policy",
            json!({ "namespaces": { "*": { "types": ["none"] }, "demo": rule } }),
        );
        for annotations in [
            json!({ "k8s.v1.cni.cncf.io/networks": network }),
            json!({ DEFAULT: format!("demo/{network}") }),
        ] {
            lab.pod_with(POD, annotations);
            lab.call("ADD").fails(108, words);
            lab.assert_nothing_left();
        }
    };
    refused(
        &mut lab,
        json!({ "types": ["macvlan", "static"] }),
        "a",
        &["demo/a", "plugin ptp", "types"],
    );
    refused(&mut lab, json!({ "types": ["ptp"] }), "a", &["host-local"]);
    refused(
        &mut lab,
        json!({ "networks": ["demo/b"] }),
        "a",
        &["demo/a", "networks"],
    );
    refused(
        &mut lab,
        json!({ "denyKeys": ["ipam.dataDir"] }),
        "a",
        &["ipam.dataDir"],
    );
    refused(
        &mut lab,
        json!({ "denyKeys": ["sysctl"] }),
        "b",
        &["sysctl"],
    );
    // Its own rule replaces the one for all; the administrator's own networks are exempt.
    lab.configure(
        "policy",
        json!({ "namespaces": { "*": { "types": ["none"] }, "demo": {} } }),
    );
    lab.configure("defaultNetworks", json!(["demo/b"]));
    lab.selects("a");
    lab.add();
    lab.del();
    lab.configure(
        "policy",
        json!({ "namespaces": { "*": { "types": ["none"] } } }),
    );
    lab.selects("");
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net1"]);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_policys_denied_keys_hold_for_the_pods_own_arguments_too() {
    let mut lab = Lab::new();
    lab.definition("demo/a", &lab.ptp("10.20.0.0/24"));
    lab.configure(
        "policy",
        json!({ "namespaces": { "*": { "denyKeys": ["args.cni.trust"] } } }),
    );
    lab.selects_json(&json!([{ "name": "a", "cni-args": { "Trust": "on" } }]));
    lab.call("ADD").fails(108, &["demo/a", "args.cni.trust"]);
    lab.selects_json(&json!([{ "name": "a", "cni-args": { "other": "on" } }]));
    lab.add();
    lab.del();
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §6.1.2 attachment is blocked until the cluster network is ready
#[test]
fn an_add_waits_for_the_cluster_network() {
    let mut lab = Lab::new();
    let ready = lab.path("ready");
    lab.configure("readinessindicatorfile", json!(ready));
    lab.configure("deadlines", json!({ "add": "1s" }));
    lab.call("ADD")
        .fails(11, &["not ready", &ready.display().to_string()]);
    lab.assert_nothing_left();
    lab.configure("deadlines", json!(null));
    let add = lab.plugin("ADD");
    std::thread::scope(|scope| {
        let add = scope.spawn(move || add.run());
        std::thread::sleep(Duration::from_secs(1));
        assert!(!add.is_finished());
        fs::write(&ready, "").unwrap();
        add.join().unwrap().success();
    });
    lab.del();
}

// clause: NPWG-1.0 §4.1.2.1.3.2 args
#[test]
fn version_1_0_passes_ips_and_mac_as_arguments() {
    let mut lab = Lab::new();
    lab.configure("npwgVersion", json!("1.0"));
    lab.recorder("ptp-rec", "ptp", "echo \"$CNI_ARGS\" >>$LAB/log/args");
    let mut ptp = lab.ptp("10.20.0.0/24");
    ptp["type"] = json!("ptp-rec");
    lab.definition("demo/a", &ptp);
    lab.selects_json(&json!([{ "name": "a", "ips": ["10.20.0.9"] }]));
    lab.add();
    let told = &lab.recorded("ptp-rec", "ADD")[0];
    assert_eq!(told["args"]["cni"]["ips"], json!(["10.20.0.9"]));
    assert!(told.get("runtimeConfig").is_none());
    assert!(lab.log("args")[0].contains(";IP=10.20.0.9"));
    assert_eq!(lab.pod.addresses("net1"), ["10.20.0.9/24"]);
    lab.check();
    lab.del();
    let told = &lab.recorded("ptp-rec", "DEL")[0];
    assert_eq!(
        told["args"]["cni"]["ips"],
        json!(["10.20.0.9"]),
        "as at ADD"
    );
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §2 CHECK gives prevResult
// clause: CNI-1.1.0 §3 check parameters: capability arguments too
// clause: CNI-1.1.0 §3 delete order: the final result of the ADD
#[test]
fn del_and_check_are_told_what_add_was_told() {
    let lab = Lab::new();
    lab.recorder(
        "mac-rec",
        "macvlan",
        "echo \"$CNI_COMMAND $CNI_ARGS\" >>$LAB/log/args",
    );
    let mut macvlan = lab.macvlan();
    macvlan["type"] = json!("mac-rec");
    lab.definition("demo/a", &macvlan);
    lab.selects_json(
        &json!([{ "name": "a", "ips": ["10.20.0.9/24"], "mac": "02:00:00:00:00:09",
                               "cni-args": { "n": 1 } }]),
    );
    lab.add();
    lab.check();
    lab.del();
    let added = &lab.recorded("mac-rec", "ADD")[0];
    assert!(added.get("prevResult").is_none());
    assert_eq!(added["runtimeConfig"]["mac"], "02:00:00:00:00:09");
    for verb in ["CHECK", "DEL"] {
        let told = &lab.recorded("mac-rec", verb)[0];
        for key in ["runtimeConfig", "args", "name", "cniVersion", "master"] {
            assert_eq!(told[key], added[key], "{verb} {key}");
        }
        assert_eq!(
            told["prevResult"]["ips"][0]["address"], "10.20.0.9/24",
            "{verb}"
        );
    }
    let args = lab.log("args");
    let of = |line: &String| line.split_once(' ').unwrap().1.to_owned();
    assert!(args.iter().all(|line| of(line) == of(&args[0])), "{args:?}");
}

#[test]
fn explain_names_what_is_surprising_about_the_default_network() {
    let mut lab = lab_with_a_stranger();
    lab.configure("multusNamespace", json!("secret"));
    lab.pod_with(POD, json!({ DEFAULT: "a" }));
    let outcome = lab.command("explain", &[]).run();
    assert_eq!(outcome.exit, 0, "the namespace is there for it: {outcome}");
    assert!(
        outcome
            .stdout
            .contains("looked up in multusNamespace secret"),
        "{outcome}"
    );
    assert!(
        outcome
            .stdout
            .contains("1. eth0 ◀ secret/a, the cluster network"),
        "{outcome}"
    );
    assert!(
        outcome
            .stdout
            .contains("replaces the configured cluster network"),
        "{outcome}"
    );
    lab.pod_with(
        POD,
        json!({ DEFAULT: r#"[{"name":"a","interface":"net9"}]"# }),
    );
    let outcome = lab.command("explain", &[]).run();
    assert!(
        outcome.stdout.contains("interface net9 is ignored"),
        "{outcome}"
    );
    lab.assert_nothing_left();
}

#[test]
fn explain_shows_the_auxiliary_chain_and_runs_nothing() {
    let lab = lab_with_a_chain();
    let outcome = lab.command("explain", &[]).run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(
        outcome
            .stdout
            .contains("vendor-chain, named by auxiliaryCNIChainName"),
        "{outcome}"
    );
    assert!(outcome.stdout.contains("bin/vendor-b"), "{outcome}");
    assert!(lab.log("calls").is_empty());
    lab.assert_nothing_left();
}
