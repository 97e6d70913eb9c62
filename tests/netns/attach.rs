//! A pod gets its cluster network and every network that it asks for.

use serde_json::{Value, json};

use crate::lab::{Lab, POD};

// clause: NPWG-1.3 §6 attached
// clause: CNI-1.1.0 §2 ADD creates
// clause: CNI-1.1.0 §2 DEL removes
#[test]
fn a_pod_that_asks_for_nothing_gets_the_cluster_network_and_goes_without_a_trace() {
    let lab = Lab::new();
    let result = lab.add();
    assert_eq!(lab.pod.links(), ["eth0"]);
    assert_eq!(
        json!(lab.pod.addresses("eth0")),
        json!([result["ips"][0]["address"]])
    );
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §4.1.1 the comma-delimited form, with a namespace where one is given
// clause: NPWG-1.3 §4.2 operation: each reference is an attachment of its own
#[test]
fn names_with_commas_select_networks_in_their_order() {
    let lab = Lab::new();
    let mut one = lab.macvlan();
    one["ipam"] = lab.host_local(&["10.21.0.0/24"], false);
    lab.definition("demo/one", &one);
    lab.definition("default/two", &lab.ptp("10.22.0.0/24"));
    lab.selects("one, default/two@data0 ,one");
    lab.add();
    assert_eq!(lab.pod.links(), ["data0", "eth0", "net1", "net3"]);
    let subnet = |link: &str| lab.pod.addresses(link)[0][..6].to_owned();
    assert_eq!(
        [subnet("net1"), subnet("data0"), subnet("net3")],
        ["10.21.", "10.22.", "10.21."]
    );
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §4.1.2.1.3 assigned
// clause: NPWG-1.3 §4.1.2.1.4 assigned
// clause: NPWG-1.3 §4.1.2.1.5 used
// clause: NPWG-1.3 §4.1.2.1.5.1
// clause: NPWG-1.3 §4.1.2.1.2
#[test]
fn the_list_form_gives_namespace_interface_addresses_and_mac() {
    let lab = Lab::new();
    lab.definition("default/storage", &lab.macvlan());
    lab.definition("demo/management", &lab.ptp("10.30.0.0/24"));
    lab.selects_json(&json!([
        { "name": "storage", "namespace": "default", "interface": "disk0",
          "ips": ["10.20.0.5/24", "2001:db8:20::5/64"], "mac": "02:00:00:00:20:05" },
        { "name": "management" },
    ]));
    let result = lab.add();
    assert_eq!(lab.pod.links(), ["disk0", "eth0", "net2"]);
    assert_eq!(
        lab.pod.addresses("disk0"),
        ["10.20.0.5/24", "2001:db8:20::5/64"]
    );
    assert_eq!(lab.pod.mac("disk0"), "02:00:00:00:20:05");
    assert_eq!(lab.pod.addresses("net2"), ["10.30.0.2/24"]);
    let names: Vec<&Value> = result["interfaces"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|link| link["sandbox"].as_str().is_some_and(|it| !it.is_empty()))
        .map(|link| &link["name"])
        .collect();
    assert_eq!(names, ["eth0"], "the runtime hears of its own network only");
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §5 ADD version: in each version
// clause: CNI-1.1.0 §5 output
// clause: CNI-1.1.0 §2 ADD result
// clause: CNI-1.1.0 §3 delete order: prevResult from 0.4.0 on
// clause: NPWG-1.3 §7.1 result version
#[test]
fn every_version_of_the_protocol_is_spoken_with_runtime_and_delegates() {
    for version in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let mut lab = Lab::new();
        lab.configure("cniVersion", json!(version));
        lab.recorder("bridge-of-old", "bridge", "");
        let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
        bridge["type"] = json!("bridge-of-old");
        lab.cluster_network(version, &[bridge]);
        let mut storage = lab.macvlan();
        storage["cniVersion"] = json!(version);
        lab.definition("demo/storage", &storage);
        lab.selects_json(&json!([{ "name": "storage", "ips": ["10.20.0.5/24"] }]));
        let result = lab.add();
        assert_eq!(result["cniVersion"], version);
        assert_eq!(
            result["ips"][0]["version"].is_string(),
            version.starts_with("0."),
            "{result}"
        );
        assert_eq!(lab.pod.addresses("net1"), ["10.20.0.5/24"]);
        match version {
            "0.3.1" => drop(lab.call("CHECK").fails(1, &["CHECK", "0.3.1"])),
            _ => lab.check(),
        }
        lab.del();
        let told = &lab.recorded("bridge-of-old", "DEL")[0];
        assert_eq!(told["cniVersion"], version);
        assert_eq!(told.get("prevResult").is_some(), version != "0.3.1");
        lab.assert_nothing_left();
    }
}

// clause: CNI-1.1.0 §5 ADD version: the runtime's, whatever the delegate's
// clause: NPWG-1.3 §7.1 result version
#[test]
fn a_network_may_speak_an_older_version_than_the_runtime() {
    let mut lab = Lab::new();
    lab.configure("cniVersion", json!("1.1.0"));
    let mut old = lab.macvlan();
    old["cniVersion"] = json!("0.3.1");
    lab.definition("demo/old", &old);
    lab.selects_json(&json!([{ "name": "old", "ips": ["10.20.0.5/24"] }]));
    assert_eq!(lab.add()["cniVersion"], "1.1.0");
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_dual_stack_pod_has_addresses_and_routes_of_both_families() {
    let lab = Lab::new();
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["ipam"] = lab.host_local(&["10.10.0.0/24", "2001:db8:10::/64"], true);
    lab.cluster_network("1.0.0", &[bridge]);
    lab.add();
    assert_eq!(
        lab.pod.addresses("eth0"),
        ["10.10.0.2/24", "2001:db8:10::2/64"]
    );
    assert_eq!(lab.pod.default_routes().len(), 2);
    assert_eq!(
        lab.status()[0]["ips"],
        json!(["10.10.0.2", "2001:db8:10::2"])
    );
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §3 add order
// clause: CNI-1.1.0 §3 delete order
// clause: CNI-1.1.0 §3 runtimeConfig: what a plugin declares
// clause: CNI-1.1.0 §4 every verb: CHECK and DEL
// clause: NPWG-1.3 §7.1 invoking
// clause: NPWG-1.3 §4.1.2.1.4.2 runtimeConfig
#[test]
fn a_chain_runs_in_its_order_and_is_taken_back_in_reverse() {
    let lab = Lab::new();
    lab.recorder("first", "macvlan", "");
    lab.recorder("second", "tuning", "");
    let mut first = lab.macvlan();
    first["type"] = json!("first");
    first["capabilities"] = json!({ "ips": true });
    lab.definition(
        "demo/chain",
        &json!({ "cniVersion": "1.0.0", "name": "chain", "plugins": [
            first, { "type": "second", "mtu": 1400, "capabilities": { "mac": true },
                     "dataDir": lab.path("tuning") } ] }),
    );
    lab.selects_json(&json!([
        { "name": "chain", "ips": ["10.20.0.5/24"], "mac": "02:00:00:00:20:06" }
    ]));
    lab.add();
    assert_eq!(lab.pod.mac("net1"), "02:00:00:00:20:06");
    let told = &lab.recorded("second", "ADD")[0];
    assert_eq!(told["prevResult"]["ips"][0]["address"], "10.20.0.5/24");
    assert_eq!(
        told["runtimeConfig"],
        json!({ "mac": "02:00:00:00:20:06" }),
        "a plugin gets the capabilities that it declares"
    );
    lab.check();
    lab.del();
    assert_eq!(
        lab.log("calls"),
        [
            "ADD net1 first",
            "ADD net1 second",
            "CHECK net1 first",
            "CHECK net1 second",
            "DEL net1 second",
            "DEL net1 first"
        ]
    );
    lab.assert_nothing_left();
}

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

// clause: NPWG-1.3 §3.4.2 a configuration without a name gets the definition's
// clause: NPWG-1.3 §3.4.3 not required: its own name stays
// clause: NPWG-1.3 §4.2.1 created: the name of the network
// clause: NPWG-1.3 §4.2.1 tuple: the name is the same for DEL
#[test]
fn a_network_is_called_by_its_configuration_else_by_its_definition() {
    let lab = Lab::new();
    for (definition, own, subnet) in [
        ("unnamed", None, "10.30.0.0/24"),
        ("named", Some("own-name"), "10.31.0.0/24"),
    ] {
        lab.recorder(definition, "ptp", "");
        let mut config = lab.ptp(subnet);
        config["type"] = json!(definition);
        if let Some(own) = own {
            config["name"] = json!(own);
        }
        lab.definition(&format!("demo/{definition}"), &config);
    }
    lab.selects("unnamed,named");
    lab.add();
    assert_eq!(lab.recorded("unnamed", "ADD")[0]["name"], "unnamed");
    assert_eq!(lab.recorded("named", "ADD")[0]["name"], "own-name");
    lab.del();
    assert_eq!(lab.recorded("named", "DEL")[0]["name"], "own-name");
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §3.4.1 on disk
// clause: NPWG-1.3 §3.2 no keys
#[test]
fn a_definition_without_configuration_is_found_on_disk_by_name() {
    let lab = Lab::new();
    let mut config = lab.ptp("10.30.0.0/24");
    config["name"] = json!("on-disk");
    lab.write("conf/whatever.conf", &config.to_string());
    lab.write(
        "cluster/nad.yaml",
        "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\n\
         metadata: { name: on-disk, namespace: demo }\n",
    );
    lab.selects("on-disk");
    lab.add();
    assert_eq!(lab.pod.addresses("net1"), ["10.30.0.2/24"]);
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

#[test]
fn default_networks_come_before_the_pods_own_and_not_to_system_pods() {
    let mut lab = Lab::new();
    lab.definition("kube-system/everyones", &lab.ptp("10.40.0.0/24"));
    lab.definition("demo/own", &lab.ptp("10.41.0.0/24"));
    lab.configure("defaultNetworks", json!(["everyones"]));
    lab.selects("own");
    lab.add();
    assert_eq!(lab.pod.addresses("net1"), ["10.40.0.2/24"]);
    assert_eq!(lab.pod.addresses("net2"), ["10.41.0.2/24"]);
    lab.del();
    lab.configure("systemNamespaces", json!(["demo"]));
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net1"]);
    assert_eq!(lab.pod.addresses("net1"), ["10.41.0.3/24"]);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_pod_may_replace_its_cluster_network() {
    let lab = Lab::new();
    lab.definition("demo/instead", &lab.ptp("10.42.0.0/24"));
    lab.pod_with(
        POD,
        json!({ "v1.multus-cni.io/default-network": "demo/instead" }),
    );
    let result = lab.add();
    assert_eq!(result["ips"][0]["address"], "10.42.0.2/24");
    assert_eq!(lab.pod.addresses("eth0"), ["10.42.0.2/24"]);
    let status = lab.status();
    assert_eq!(status[0]["name"], "demo/instead");
    assert_eq!(status[0]["default"], true);
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

#[test]
fn the_cluster_network_may_be_inline_or_the_first_of_a_directory() {
    let mut lab = Lab::new();
    let conf = lab.path("conf");
    lab.configure("clusterNetwork", json!(conf));
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0"]);
    lab.del();
    lab.configure("clusterNetwork", json!("cluster"));
    lab.add();
    lab.del();
    lab.configure("clusterNetwork", Value::Null);
    let mut inline = lab.ptp("10.43.0.0/24");
    inline["name"] = json!("inline");
    lab.configure("delegates", json!([inline]));
    lab.add();
    assert_eq!(lab.pod.addresses("eth0"), ["10.43.0.2/24"]);
    lab.del();
    lab.assert_nothing_left();
}

/// The container's name is a hint; the runtime's UID decides whether it is the same pod.
#[test]
fn a_pod_of_another_uid_is_another_pod() {
    let lab = Lab::new();
    lab.write(
        "cluster/pod-demo-web.json",
        &json!({ "kind": "Pod", "metadata": { "name": "web", "namespace": "demo", "uid": "new" } })
            .to_string(),
    );
    let args = |uid: &str| {
        format!("IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web;K8S_POD_UID={uid}")
    };
    let other = lab.plugin("ADD").env("CNI_ARGS", &args("old")).run();
    other.fails(107, &["demo/web", "old", "new"]);
    lab.assert_nothing_left();
    lab.plugin("ADD")
        .env("CNI_ARGS", &args("new"))
        .run()
        .success();
    lab.del();
    lab.assert_nothing_left();
}
