//! What pods ask for may be anything. An invalid annotation is ignored and said, or refused, as
//! the node's administrator wants; what cannot be attached fails before anything runs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::lab::{Lab, POD};

/// Annotations that NPWG 1.3 §4.1.2.1 calls invalid, and what has to be named.
fn invalid() -> Vec<(String, Vec<&'static str>)> {
    let element = |key: &str, value: Value| json!([{ "name": "storage", key: value }]).to_string();
    let thousand: Vec<Value> = (0..1_000).map(|_| json!({ "name": "storage" })).collect();
    let deep = format!("[{}", "[".repeat(100_000));
    vec![
        ("[".into(), vec!["JSON"]),
        ("{}".into(), vec!["JSON list"]),
        ("[{\"name\":\"storage\"}".into(), vec!["JSON"]),
        ("[null]".into(), vec!["network 1", "null"]),
        ("[5]".into(), vec!["network 1", "5"]),
        ("[{}]".into(), vec!["network 1", "name"]),
        (deep, vec!["128 levels"]),
        (json!(thousand).to_string(), vec!["1000 networks", "64 are allowed"]),
        (vec!["storage"; 1_000].join(","), vec!["1000 networks", "64 are allowed"]),
        (
            format!("[{{\"name\":\"storage\",\"x\":\"{}\"}}]", "y".repeat(256 << 10)),
            vec!["262144 are allowed"],
        ),
        ("a".repeat((256 << 10) + 1), vec!["262145 bytes", "262144 are allowed"]),
        ("storage,,storage".into(), vec!["network 2", "name"]),
        ("a/b/c".into(), vec!["network 1", "a/b/c"]),
        ("Storage".into(), vec!["network 1", "Storage"]),
        ("../../etc/passwd".into(), vec!["network 1"]),
        (element("namespace", json!("a/b")), vec!["network 1 (storage)", "a/b"]),
        (element("interface", json!("sixteen-bytes-xx")), vec!["interface", "sixteen-bytes-xx"]),
        (element("interface", json!("a/b")), vec!["interface", "a/b"]),
        (element("ips", json!("10.0.0.1")), vec!["ips", "10.0.0.1"]),
        (element("ips", json!(["10.0.0.256"])), vec!["ips", "10.0.0.256"]),
        (element("ips", json!(["10.0.0.1/33"])), vec!["ips", "10.0.0.1/33"]),
        (element("mac", json!("02:00:00:00:20")), vec!["mac", "02:00:00:00:20"]),
        (element("mac", json!(5)), vec!["mac", "5"]),
        (element("infiniband-guid", json!("xx")), vec!["infiniband-guid", "xx"]),
        (
            element("portMappings", json!([{ "hostPort": 70_000, "containerPort": 1 }])),
            vec!["hostPort", "70000"],
        ),
        (
            element("portMappings", json!([{ "hostPort": 1, "containerPort": 1, "protocol": "icmp" }])),
            vec!["protocol", "icmp", "SCTP"],
        ),
        (element("bandwidth", json!({ "ingressBurst": 5 })), vec!["ingressBurst", "ingressRate"]),
        (element("cni-args", json!([])), vec!["cni-args"]),
        (element("default-route", json!(["nowhere"])), vec!["default-route", "nowhere"]),
        (element("default-route", json!("10.0.0.1")), vec!["default-route", "10.0.0.1"]),
        (
            json!([{ "name": "storage", "default-route": [] }, { "name": "storage", "default-route": [] }]).to_string(),
            vec!["networks 1 and 2", "default-route"],
        ),
    ]
}

fn lab() -> Lab {
    let lab = Lab::new();
    lab.definition("demo/storage", &lab.macvlan());
    lab
}

// clause: NPWG-1.3 §4.1.2.1.3 invalid
// clause: NPWG-1.3 §4.1.2.1.4 invalid
// clause: NPWG-1.3 §4.1.2.1.5 invalid
// clause: NPWG-1.3 §4.1.2.1.7 invalid
// clause: NPWG-1.3 §4.1.2.1.8 invalid
// clause: NPWG-1.3 §4.1.2.1.9 once
// clause: NPWG-1.3 §4.1.2.1.10 invalid
#[test]
fn an_invalid_annotation_is_ignored_with_an_event_that_says_why() {
    for (annotation, words) in invalid() {
        let lab = lab();
        lab.selects(&annotation);
        lab.add();
        assert_eq!(lab.pod.links(), ["eth0"]);
        let events = lab.events();
        let warning = events
            .iter()
            .find(|event| event.starts_with("Warning InvalidAnnotation "))
            .unwrap_or_else(|| panic!("no warning in {events:?}"));
        assert!(warning.contains("k8s.v1.cni.cncf.io/networks"), "{warning}");
        for word in words {
            assert!(warning.contains(word), "{word:?} is missing in: {warning}");
        }
        assert!(
            warning.len() < 1_024 && !warning.contains('\n'),
            "{warning}"
        );
        assert_eq!(lab.status().len(), 1);
        lab.del();
        lab.assert_nothing_left();
    }
}

#[test]
fn an_invalid_annotation_is_refused_where_the_node_wants_that() {
    for (annotation, words) in invalid() {
        let mut lab = lab();
        lab.configure("invalidAnnotation", json!("fail"));
        lab.selects(&annotation);
        let outcome = lab.call("ADD");
        let line = outcome.fails(101, &words);
        assert!(line.contains("k8s.v1.cni.cncf.io/networks"), "{line}");
        assert!(line.len() < 1_024, "{line}");
        assert!(outcome.took < Duration::from_secs(20));
        lab.assert_nothing_left();
    }
}

#[test]
fn an_annotation_of_exactly_the_largest_size_is_read() {
    let lab = lab();
    let element = r#"[{"name":"storage","ips":["10.20.0.5/24"]}]"#;
    lab.selects(&format!(
        "{element}{}",
        " ".repeat((256 << 10) - element.len())
    ));
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net1"]);
    lab.del();
    lab.assert_nothing_left();
}

/// Refusals before anything runs, whatever `invalidAnnotation` says: what the pod selects, the
/// code, what has to be named.
fn impossible() -> Vec<(Value, u64, Vec<&'static str>)> {
    let one = |more: Value| {
        let mut element = json!({ "name": "storage" });
        for (key, value) in more.as_object().unwrap() {
            element[key] = value.clone();
        }
        json!([element])
    };
    vec![
        (
            json!([{ "name": "storage", "interface": "data0" }, { "name": "storage", "interface": "data0" }]),
            101,
            vec!["demo/storage (data0)", "already used", "choose another"],
        ),
        (
            one(json!({ "interface": "eth0" })),
            101,
            vec!["(eth0)", "already used", "choose another"],
        ),
        (
            json!([{ "name": "storage", "interface": "net2" }, { "name": "storage", "interface": "net2" }]),
            101,
            vec!["(net2)", "already used"],
        ),
        (
            one(json!({ "interface": "lo" })),
            101,
            vec!["(lo)", "choose another"],
        ),
        (
            one(json!({ "ips": ["10.20.0.5/24"], "ipam-claim-reference": "mine" })),
            101,
            vec!["ips", "ipam-claim-reference", "keep one"],
        ),
        (
            one(json!({ "ipam-claim-reference": "absent" })),
            102,
            vec!["IPAMClaim", "absent"],
        ),
        (
            json!([{ "name": "absent" }]),
            102,
            vec![
                "demo/absent (net1)",
                "NetworkAttachmentDefinition",
                "create it",
            ],
        ),
        (
            json!([{ "name": "plain", "ips": ["10.20.0.5/24"] }]),
            103,
            vec!["demo/plain (net1)", "ips", "macvlan", "capabilities"],
        ),
        (
            json!([{ "name": "plain", "mac": "02:00:00:00:20:05" }]),
            103,
            vec!["mac", "macvlan"],
        ),
        (
            json!([{ "name": "plain", "portMappings": [{ "hostPort": 80, "containerPort": 80 }] }]),
            103,
            vec!["portMappings"],
        ),
        (
            json!([{ "name": "plain", "bandwidth": { "ingressRate": 1000 } }]),
            103,
            vec!["bandwidth"],
        ),
        (
            json!([{ "name": "plain", "infiniband-guid": "24:8a:07:03:00:8d:ae:2f" }]),
            103,
            vec!["infiniband-guid", "infinibandGUID"],
        ),
        (
            json!([{ "name": "secret", "namespace": "other" }]),
            108,
            vec!["other/secret (net1)", "namespaceIsolation", "demo"],
        ),
    ]
}

// clause: NPWG-1.3 §4.1.2.1.5 taken
// clause: NPWG-1.3 §4.1.2.1.3.2 declared
#[test]
fn what_cannot_be_attached_fails_before_anything_runs() {
    for strictness in ["ignore", "fail"] {
        for (networks, code, words) in impossible() {
            let mut lab = lab();
            lab.configure("invalidAnnotation", json!(strictness));
            let mut plain = lab.macvlan();
            plain["capabilities"] = json!({});
            lab.definition("demo/plain", &plain);
            lab.definition("other/secret", &lab.macvlan());
            lab.recorder("seen", "bridge", "");
            let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
            bridge["type"] = json!("seen");
            lab.cluster_network("1.0.0", &[bridge]);
            lab.selects_json(&networks);
            lab.call("ADD").fails(code, &words);
            assert!(lab.log("calls").is_empty(), "nothing ran");
            lab.assert_nothing_left();
        }
    }
}

// clause: CNI-1.1.0 §2 ADD exists
// clause: NPWG-1.3 §4.1.2.1.5 taken: by somebody else in the pod
#[test]
fn a_name_that_the_netns_already_has_fails_before_anything_runs() {
    let mut lab = lab();
    lab.pod.ip("link add net1 type veth peer name peer");
    lab.set_out();
    lab.selects_json(&json!([{ "name": "storage", "ips": ["10.20.0.5/24"] }]));
    lab.call("ADD")
        .fails(101, &["demo/storage (net1)", "already", "choose another"]);
    lab.assert_nothing_left();
    // An alternative name is taken as well: the kernel finds the other link by it.
    lab.pod.ip("link set net1 name other");
    lab.pod.ip("link property add dev other altname net1");
    lab.set_out();
    lab.call("ADD")
        .fails(101, &["demo/storage (net1)", "already", "choose another"]);
    lab.assert_nothing_left();
}

#[test]
fn what_the_policy_denies_fails_before_anything_runs() {
    let cases: [(Value, &[&str]); 3] = [
        (
            json!({ "types": ["bridge"] }),
            &["demo", "macvlan", "types"],
        ),
        (json!({ "networks": ["demo/other"] }), &["demo", "networks"]),
        (
            json!({ "denyKeys": ["ipam.dataDir", "mode"] }),
            &["demo", "mode"],
        ),
    ];
    for (rule, words) in cases {
        let mut lab = lab();
        lab.configure("policy", json!({ "namespaces": { "*": rule } }));
        lab.selects_json(&json!([{ "name": "storage", "ips": ["10.20.0.5/24"] }]));
        let line = lab.call("ADD").fails(108, words);
        assert!(line.contains("demo/storage (net1)"), "{line}");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_pod_that_the_cluster_does_not_know_is_refused() {
    let lab = lab();
    std::fs::remove_file(lab.path("cluster/pod-demo-web.json")).unwrap();
    let folder = lab.path("cluster").display().to_string();
    lab.call("ADD")
        .fails(107, &["demo/web", &folder, "create the pod there first"]);
    lab.assert_nothing_left();
    std::fs::remove_dir_all(lab.path("cluster")).unwrap();
    lab.call("ADD").fails(107, &["manifestDir", &folder]);
    lab.assert_nothing_left();
}

#[test]
fn a_replaced_cluster_network_is_held_to_the_same_rules() {
    let lab = lab();
    lab.definition("other/secret", &lab.ptp("10.42.0.0/24"));
    let replaced =
        |name: &str| lab.pod_with(POD, json!({ "v1.multus-cni.io/default-network": name }));
    replaced("other/secret");
    lab.call("ADD")
        .fails(108, &["other/secret (eth0)", "namespaceIsolation"]);
    lab.assert_nothing_left();
    replaced("demo/absent");
    lab.call("ADD").fails(102, &["demo/absent (eth0)"]);
    lab.assert_nothing_left();
    replaced("storage,storage");
    lab.add();
    assert!(
        lab.events()
            .iter()
            .any(|event| event.contains("v1.multus-cni.io/default-network")
                && event.contains("exactly one"))
    );
    lab.del();
    lab.assert_nothing_left();
}
