//! What the node is reached by stays with it, whichever key of a configuration names it.

use serde_json::{Value, json};

use crate::lab::{Lab, UPLINK};

/// A host-device that takes what `keys` name, behind which nothing gives addresses.
fn host_device(keys: &Value) -> Value {
    let mut config = json!({ "cniVersion": "1.0.0", "type": "host-device" });
    for (key, value) in keys.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// A node that is reached by its uplink, with an interface to spare.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.node.ip(&format!("addr add 192.0.2.2/24 dev {UPLINK}"));
    lab.node
        .ip(&format!("route add default via 192.0.2.1 dev {UPLINK}"));
    for free in ["free0", "port0", "own0"] {
        lab.node
            .ip(&format!("link add {free} type veth peer name {free}-b"));
        lab.node.ip(&format!("link set {free} addrgenmode none"));
    }
    lab.node.ip("link add br7 type bridge");
    lab.node.ip("link set br7 addrgenmode none");
    lab.node.ip("link set port0 master br7");
    lab.node.ip("addr add 198.51.100.7/24 dev br7");
    lab.node.ip("addr add 203.0.113.7/32 dev own0");
    lab.node.ip(&format!(
        "link property add dev {UPLINK} altname the-way-out-of-this-node"
    ));
    lab.set_out();
    lab
}

#[test]
fn no_key_hands_what_the_node_is_reached_by_to_a_pod() {
    let lab = lab();
    let mac = lab.node.mac(UPLINK);
    for (keys, carried) in [
        (json!({ "device": UPLINK }), "default route"),
        (json!({ "Device": UPLINK }), "default route"),
        (
            json!({ "device": "the-way-out-of-this-node" }),
            "default route",
        ),
        (json!({ "hwaddr": mac.to_uppercase() }), "default route"),
        (
            json!({ "device": "own0" }),
            "address of this node (interface own0)",
        ),
        (
            json!({ "device": "br7" }),
            "address of this node (interface br7)",
        ),
        (
            json!({ "device": "port0" }),
            "address of this node (interface br7)",
        ),
    ] {
        lab.definition("demo/taken", &host_device(&keys));
        lab.selects("taken");
        lab.call("ADD")
            .fails(104, &["demo/taken", "cuts the node off", carried]);
        lab.assert_nothing_left();
    }
    let up = json!({ "pciBusID": format!("../../../class/net/{UPLINK}/device") });
    lab.definition("demo/taken", &host_device(&up));
    lab.call("ADD")
        .fails(104, &["pciBusID", "jackfield has not checked"]);
    lab.selects_json(&json!([{ "name": "taken", "cni-args": { "device": UPLINK } }]));
    lab.definition("demo/taken", &host_device(&json!({ "device": "free0" })));
    lab.call("ADD").fails(104, &["default route"]);
    lab.assert_nothing_left();
}

#[test]
fn what_the_node_does_not_need_is_given_and_its_uplink_is_shared() {
    let lab = lab();
    lab.definition("demo/free", &host_device(&json!({ "device": "free0" })));
    let mut shared = lab.macvlan_of_its_own();
    shared["name"] = json!("shared");
    lab.definition("demo/shared", &shared);
    lab.selects("free,shared");
    lab.add();
    assert_eq!(lab.pod.links(), ["eth0", "net1", "net2"]);
    lab.del();
    assert!(lab.node.links().contains(&"free0".to_owned()));
}

#[test]
fn the_administrators_own_networks_do_not_take_the_uplink_either() {
    let mut lab = lab();
    lab.definition(
        "kube-system/out",
        &host_device(&json!({ "device": UPLINK })),
    );
    lab.configure("defaultNetworks", json!(["out"]));
    lab.call("ADD")
        .fails(104, &["kube-system/out", "default route"]);
    lab.assert_nothing_left();
}
