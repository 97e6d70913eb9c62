//! What a pod asks for reaches the plugins that it concerns, and no other.

use serde_json::{Value, json};

use crate::lab::Lab;

// clause: NPWG-1.3 §4.1.2.1.6 passed
// clause: NPWG-1.3 §4.1.2.1.6.2 priority
#[test]
fn cni_args_of_the_pod_win_key_by_key_and_numbers_stay_as_written() {
    let lab = Lab::new();
    lab.recorder("argued", "macvlan", "");
    let mut config = lab.macvlan();
    config["type"] = json!("argued");
    config["args"] = json!({ "cni": { "ips": ["10.50.0.9/24"], "theirs": true } });
    lab.definition("demo/argued", &config);
    lab.selects(
        r#"[{ "name": "argued", "cni-args": { "ips": ["10.50.0.10/24"], "big": 18446744073709551617, "exact": 1.10 } }]"#,
    );
    lab.add();
    assert_eq!(lab.pod.addresses("net1"), ["10.50.0.10/24"]);
    let written = &lab.log("argued.ADD")[0];
    assert!(written.contains("18446744073709551617"), "{written}");
    assert!(written.contains("1.10"), "{written}");
    let args = &lab.recorded("argued", "ADD")[0]["args"]["cni"];
    assert_eq!(args["theirs"], true);
    lab.del();
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §4.1.2.1.7.2 runtimeConfig
// clause: NPWG-1.3 §4.1.2.1.7 configured: by the plugin that declares it
// clause: NPWG-1.3 §4.1.2.1.8.2 default bursts
// clause: NPWG-1.3 §4.1.2.1.8 configured: by the plugin that declares it
// clause: CNI-1.1.0 §3 declared capabilities
// clause: NPWG-1.3 §4.1.2.1.8.2 runtimeConfig
#[test]
fn port_mappings_and_bandwidth_reach_the_plugins_that_declare_them() {
    let lab = Lab::new();
    lab.bystander("mapper");
    lab.bystander("shaper");
    let mut first = lab.macvlan();
    first["capabilities"] = json!({ "ips": true });
    lab.definition(
        "demo/web",
        &json!({ "cniVersion": "1.0.0", "name": "web", "plugins": [
            first,
            { "type": "mapper", "capabilities": { "portMappings": true } },
            { "type": "shaper", "capabilities": { "bandwidth": true } } ] }),
    );
    lab.selects_json(&json!([{ "name": "web", "ips": ["10.20.0.5/24"],
        "portMappings": [{ "hostPort": 8080, "containerPort": 80 }],
        "bandwidth": { "ingressRate": 1_000_000 } }]));
    lab.add();
    let mapped = &lab.recorded("mapper", "ADD")[0]["runtimeConfig"];
    let mapping = json!([{ "hostPort": 8080, "containerPort": 80, "protocol": "tcp" }]);
    assert_eq!(*mapped, json!({ "portMappings": mapping }));
    let shaped = &lab.recorded("shaper", "ADD")[0]["runtimeConfig"]["bandwidth"];
    assert_eq!(shaped["ingressRate"], 1_000_000);
    assert!(shaped["ingressBurst"].as_u64().unwrap() > 0, "{shaped}");
    lab.del();
    let again = &lab.recorded("mapper", "DEL")[0]["runtimeConfig"];
    assert_eq!(again, mapped, "DEL is told what ADD was told");
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §7.5 the runtime's capability arguments are for the cluster network alone
#[test]
fn what_the_runtime_maps_goes_to_the_cluster_network_only() {
    let mut lab = Lab::new();
    for name in ["mapper", "other"] {
        lab.bystander(name);
    }
    let chain = |name: &str, first: Value| json!([first, { "type": name, "capabilities": { "portMappings": true } }]);
    let cluster = chain("mapper", lab.bridge("cni0", "10.10.0.0/24"));
    lab.cluster_network("1.0.0", cluster.as_array().unwrap());
    let mut first = lab.macvlan();
    first["capabilities"] = json!({ "ips": true });
    lab.definition(
        "demo/web",
        &json!({ "cniVersion": "1.0.0", "name": "web", "plugins": chain("other", first) }),
    );
    lab.selects_json(&json!([{ "name": "web", "ips": ["10.20.0.5/24"] }]));
    let mapping = json!([{ "hostPort": 8080, "containerPort": 80, "protocol": "tcp" }]);
    lab.configure("runtimeConfig", json!({ "portMappings": mapping }));
    lab.add();
    assert_eq!(
        lab.recorded("mapper", "ADD")[0]["runtimeConfig"]["portMappings"],
        mapping
    );
    let other = &lab.recorded("other", "ADD")[0];
    assert!(
        other.get("runtimeConfig").is_none_or(|it| it == &json!({})),
        "{other}"
    );
    lab.del();
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §4.1.2.1.11 ipam-claim-reference: the claim's addresses
#[test]
fn the_addresses_of_a_claim_go_the_way_of_ips() {
    let lab = Lab::new();
    lab.definition("demo/storage", &lab.macvlan());
    lab.write(
        "cluster/claim.yaml",
        "apiVersion: k8s.cni.cncf.io/v1alpha1\nkind: IPAMClaim\n\
         metadata: { name: mine, namespace: demo }\n\
         spec: { network: storage, interface: net1 }\n\
         status: { ips: [10.20.0.77/24] }\n",
    );
    lab.selects_json(&json!([{ "name": "storage", "ipam-claim-reference": "mine" }]));
    lab.add();
    assert_eq!(lab.pod.addresses("net1"), ["10.20.0.77/24"]);
    lab.del();
    lab.assert_nothing_left();
}

/// What comes with the call is kubelet's own view: it counts, not what the cluster has.
#[test]
fn annotations_that_come_with_the_call_are_believed() {
    let mut lab = Lab::new();
    lab.definition("demo/own", &lab.ptp("10.41.0.0/24"));
    lab.selects("absent-by-now");
    let annotations = |networks: &str| json!({ "io.kubernetes.cri.pod-annotations": { "k8s.v1.cni.cncf.io/networks": networks } });
    lab.configure("runtimeConfig", annotations("own"));
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net1"]);
    lab.del();
    lab.configure("runtimeConfig", annotations(""));
    std::fs::remove_file(lab.path("cluster/pod-demo-web.json")).unwrap();
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0"]);
    lab.del();
    lab.assert_nothing_left();
}

/// The real portmap (over nftables) and the real bandwidth plugin, behind a real interface.
#[test]
fn ports_and_bandwidth_are_real_and_go_again() {
    let lab = Lab::new();
    let plugins = json!([
        lab.ptp("10.30.0.0/24"),
        { "type": "portmap", "backend": "nftables", "capabilities": { "portMappings": true } },
        { "type": "bandwidth", "capabilities": { "bandwidth": true } },
    ]);
    lab.definition(
        "demo/web",
        &json!({ "cniVersion": "1.0.0", "name": "web", "plugins": plugins }),
    );
    lab.selects_json(&json!([{ "name": "web",
        "portMappings": [{ "hostPort": 8080, "containerPort": 80, "protocol": "TCP" }],
        "bandwidth": { "ingressRate": 1_000_000, "egressRate": 2_000_000 } }]));
    let node = lab.node.name().to_owned();
    let rules = || crate::lab::run("ip", &["netns", "exec", &node, "nft", "list", "ruleset"]);
    let shaped = || crate::lab::run("tc", &["-n", &node, "qdisc", "show"]).contains("tbf");
    lab.add();
    assert!(rules().contains("dport 8080"), "{}", rules());
    assert!(shaped());
    lab.check();
    lab.del();
    assert!(!rules().contains("8080"), "{}", rules());
    assert!(!shaped());
    lab.assert_nothing_left();
}

// clause: NPWG-1.0 §4.1.2 ips and mac go through args
#[test]
fn the_first_edition_passes_addresses_by_arguments() {
    let mut lab = Lab::new();
    lab.configure("npwgVersion", json!("1.0"));
    lab.recorder("argued", "macvlan", "");
    let mut config = lab.macvlan();
    config["type"] = json!("argued");
    config["capabilities"] = json!({});
    lab.definition("demo/argued", &config);
    lab.selects_json(&json!([
        { "name": "argued", "ips": ["10.20.0.5/24"], "mac": "02:00:00:00:20:05" }
    ]));
    lab.add();
    assert_eq!(lab.pod.addresses("net1"), ["10.20.0.5/24"]);
    assert_eq!(lab.pod.mac("net1"), "02:00:00:00:20:05");
    let args = &lab.recorded("argued", "ADD")[0]["args"]["cni"];
    assert_eq!(args["ips"], json!(["10.20.0.5/24"]));
    assert_eq!(args["mac"], "02:00:00:00:20:05");
    lab.del();
    lab.assert_nothing_left();
}
