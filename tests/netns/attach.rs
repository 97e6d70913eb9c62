//! A pod gets its cluster network and every network that it asks for.

use serde_json::{Value, json};

use crate::lab::Lab;

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

#[test]
fn a_runtime_without_pods_gets_the_cluster_network_alone() {
    let mut lab = Lab::new();
    lab.definition("kube-system/everyones", &lab.ptp("10.40.0.0/24"));
    lab.configure("defaultNetworks", json!(["everyones"]));
    lab.selects("absent");
    for args in ["", "IgnoreUnknown=1", "IgnoreUnknown=1;K8S_POD_NAME=web"] {
        lab.plugin("ADD").env("CNI_ARGS", args).run().success();
        assert_eq!(lab.pod.links(), ["eth0"]);
        lab.del();
        lab.assert_nothing_left();
    }
    assert!(
        !lab.path("cluster/status").exists(),
        "there is nobody to tell it of"
    );
}

#[test]
fn an_annotation_with_nothing_in_it_asks_for_nothing() {
    for annotation in ["", " \n", "[]"] {
        let lab = Lab::new();
        lab.selects(annotation);
        lab.add();
        assert_eq!(lab.pod.links(), ["eth0"]);
        assert_eq!(lab.events().len(), 1, "no warning: {:?}", lab.events());
        lab.del();
    }
}

#[test]
fn as_many_networks_as_are_allowed_are_attached() {
    let lab = Lab::new();
    let mut many = lab.macvlan();
    many["ipam"] = lab.host_local(&["10.21.0.0/24"], false);
    lab.definition("demo/many", &many);
    lab.selects(&["many"; 64].join(","));
    lab.add();
    assert_eq!(lab.pod.links().len(), 65);
    assert_eq!(lab.status().len(), 65);
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

/// The runtime knows what it does: the sandbox is the host's own namespace.
// clause: CNI-1.1.0 §3 network namespace: CNI_NETNS_OVERRIDE allows the plugin's own
#[test]
fn the_nodes_own_namespace_is_attached_where_the_runtime_insists() {
    let lab = Lab::new();
    lab.cluster_network("1.0.0", &[lab.macvlan_of_its_own()]);
    let call = |verb: &str| {
        let netns = lab.node.path().display().to_string();
        let call = lab.plugin(verb).env("CNI_NETNS", &netns);
        call.env("CNI_NETNS_OVERRIDE", "1").run()
    };
    call("ADD").success();
    assert!(lab.node.links().contains(&"eth0".to_owned()));
    assert_eq!(call("DEL").exit, 0);
    lab.assert_nothing_left();
}

#[test]
fn a_result_that_the_runtimes_version_cannot_say_is_taken_back_and_not_told() {
    let mut lab = Lab::new();
    lab.configure("cniVersion", json!("0.2.0"));
    lab.cluster_network("1.0.0", &[json!({ "type": "bridge", "bridge": "cni0" })]);
    lab.definition("demo/further", &lab.macvlan_of_its_own());
    lab.selects("further");
    let words = [
        "no address",
        "0.2.0",
        "raise cniVersion in the node configuration to 0.3.1",
    ];
    lab.call("ADD").fails(1, &words);
    assert!(lab.events().is_empty(), "{:?}", lab.events());
    assert!(lab.pod.links().is_empty());
    lab.assert_nothing_left();
}
