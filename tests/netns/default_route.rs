//! `default-route`: the pod's default traffic takes the attachment that asks for it
//! (NPWG 1.3 §4.1.2.1.9).

use serde_json::{Value, json};

use crate::lab::{Lab, POD};

/// A lab with a dual-stack cluster network that has default routes of both families, and a
/// definition `storage`.
fn dual_stack() -> Lab {
    let lab = Lab::new();
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["ipam"] = lab.host_local(&["10.10.0.0/24", "2001:db8:10::/64"], true);
    lab.cluster_network("1.0.0", &[bridge]);
    lab.definition("demo/storage", &lab.macvlan());
    lab
}

fn select(lab: &Lab, gateways: &Value) {
    lab.selects_json(&json!([{ "name": "storage",
        "ips": ["10.20.0.5/24", "2001:db8:20::5/64"], "default-route": gateways }]));
}

const ETH0_V4: &str = "10.10.0.1 dev eth0 metric 0";
const ETH0_V6: &str = "2001:db8:10::1 dev eth0 metric 1024";

// clause: NPWG-1.3 §4.1.2.1.9 cleared
// clause: NPWG-1.3 §4.1.2.1.9 set
#[test]
fn gateways_replace_the_default_routes_of_their_families_only() {
    let cases: [(Value, &[&str]); 4] = [
        (
            json!(["10.20.0.1"]),
            &["10.20.0.1 dev net1 metric 0", ETH0_V6],
        ),
        (
            json!(["2001:db8:20::1"]),
            &[ETH0_V4, "2001:db8:20::1 dev net1 metric 1024"],
        ),
        (
            json!(["10.20.0.1", "2001:db8:20::1"]),
            &[
                "10.20.0.1 dev net1 metric 0",
                "2001:db8:20::1 dev net1 metric 1024",
            ],
        ),
        (json!([]), &[]),
    ];
    for (gateways, routes) in cases {
        let lab = dual_stack();
        select(&lab, &gateways);
        lab.add();
        assert_eq!(lab.pod.default_routes(), routes, "{gateways}");
        lab.check();
        lab.del();
        lab.assert_nothing_left();
    }
}

// clause: NPWG-1.3 §4.1.2.1.9 metrics: in their order
#[test]
fn several_gateways_get_metrics_in_their_order() {
    let lab = dual_stack();
    select(
        &lab,
        &json!(["10.20.0.1", "10.20.0.2", "2001:db8:20::1", "10.20.0.3"]),
    );
    lab.add();
    let routes = lab.pod.default_routes();
    assert_eq!(routes.len(), 4, "{routes:?}");
    let metric = |gateway: &str| -> u64 {
        let route = routes
            .iter()
            .find(|route| route.starts_with(gateway))
            .unwrap();
        route.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(metric("10.20.0.1") < metric("10.20.0.2"), "{routes:?}");
    assert!(metric("10.20.0.2") < metric("10.20.0.3"), "{routes:?}");
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn result_and_status_say_where_the_default_route_went() {
    let lab = dual_stack();
    select(&lab, &json!(["10.20.0.1"]));
    let result = lab.add();
    let defaults: Vec<&Value> = result["routes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|route| &route["dst"])
        .collect();
    assert_eq!(defaults, ["::/0"], "{result}");
    assert!(result["ips"][0].get("gateway").is_none(), "{result}");
    assert_eq!(result["ips"][1]["gateway"], "2001:db8:10::1");
    let status = lab.status();
    assert_eq!(status[1]["default-route"], json!(["10.20.0.1"]));
    lab.del();
}

/// `v1.multus-cni.io/default-network`: the result that goes to the runtime is that of the network
/// which the default routes are made for.
#[test]
fn the_result_of_the_network_that_takes_the_default_routes_has_them() {
    let lab = Lab::new();
    let mut instead = lab.macvlan_of_its_own();
    instead["ipam"]["addresses"] = json!([{ "address": "10.20.0.9/24", "gateway": "10.20.0.254" }]);
    instead["ipam"]["routes"] = json!([{ "dst": "0.0.0.0/0" }, { "dst": "192.0.2.0/24" }]);
    lab.definition("demo/instead", &instead);
    for (gateways, routes, gateway) in [
        (json!([]), json!([]), None),
        (
            json!(["10.20.0.1"]),
            json!([{ "dst": "0.0.0.0/0", "gw": "10.20.0.1" }]),
            Some("10.20.0.1"),
        ),
    ] {
        let selected = json!([
            { "name": "instead", "namespace": "demo", "default-route": gateways }
        ]);
        lab.pod_with(
            POD,
            json!({ "v1.multus-cni.io/default-network": selected.to_string() }),
        );
        let result = lab.add();
        let mut answered = result["routes"].as_array().unwrap().clone();
        answered.retain(|route| route["dst"] == "0.0.0.0/0");
        assert_eq!(json!(answered), routes, "{result}");
        assert_eq!(result["ips"][0]["gateway"].as_str(), gateway, "{result}");
        assert_eq!(lab.pod.default_routes().len(), answered.len());
        lab.check();
        lab.del();
        lab.assert_nothing_left();
    }
}

// clause: NPWG-1.3 §4.1.2.1.9 set: those of any attachment without the key are flushed
#[test]
fn default_routes_that_a_later_network_brings_go_too() {
    let lab = dual_stack();
    let mut later = lab.ptp("10.30.0.0/24");
    later["ipam"] = lab.host_local(&["10.30.0.0/24"], true);
    lab.definition("demo/later", &later);
    for gateways in [json!([]), json!(["10.20.0.1"])] {
        lab.selects_json(&json!([
            { "name": "storage", "ips": ["10.20.0.5/24"], "default-route": gateways },
            { "name": "later" },
        ]));
        lab.add();
        let routes = lab.pod.default_routes();
        assert!(
            !routes.iter().any(|route| route.contains("net2")),
            "{routes:?}"
        );
        lab.check();
        lab.del();
        lab.assert_nothing_left();
    }
}

#[test]
fn a_gateway_out_of_reach_fails_the_attachment() {
    for gateway in ["192.0.2.1", "2001:db8:99::1"] {
        let lab = dual_stack();
        select(&lab, &json!([gateway]));
        lab.call("ADD")
            .fails(105, &["demo/storage (net1)", gateway]);
        lab.assert_nothing_left();
    }
}

/// The routes that an ADD takes away are back when it is unwound, before anything else runs.
#[test]
fn routes_that_were_removed_come_back_when_the_add_is_unwound() {
    let mut lab = dual_stack();
    lab.pod.ip("link add before0 type veth peer name behind0");
    for link in ["before0", "behind0"] {
        lab.pod.ip(&format!("link set {link} addrgenmode none"));
    }
    lab.pod.ip("link set behind0 up");
    lab.pod.ip("addr add 198.51.100.5/24 dev before0");
    lab.pod.ip("addr add 2001:db8:51::5/64 dev before0 nodad");
    lab.pod.ip("link set before0 up");
    lab.pod
        .ip("route add default via 198.51.100.1 dev before0 metric 7 proto static mtu 1400");
    lab.pod
        .ip("-6 route add default via 2001:db8:51::1 dev before0 metric 7");
    lab.set_out();
    let before = [
        lab.pod.ip("-4 route show default"),
        lab.pod.ip("-6 route show default"),
    ];
    // Injects a fault: the network behind the one with the default route says no.
    lab.delegate(
        "refuses",
        r#"echo '{"cniVersion":"1.0.0","code":100,"msg":"no"}'; exit 1"#,
    );
    lab.definition(
        "demo/refuses",
        &json!({ "cniVersion": "1.0.0", "type": "refuses" }),
    );
    for gateways in [
        json!([]),
        json!(["10.20.0.1", "10.20.0.2", "2001:db8:20::1"]),
    ] {
        lab.selects_json(&json!([
            { "name": "storage", "ips": ["10.20.0.5/24", "2001:db8:20::5/64"], "default-route": gateways },
            { "name": "refuses" },
        ]));
        // DEL of `refuses` fails too, so the unwinding is owed; the routes are back all the same.
        lab.call("ADD").fails(100, &["demo/refuses (net2)"]);
        let after = [
            lab.pod.ip("-4 route show default"),
            lab.pod.ip("-6 route show default"),
        ];
        assert_eq!(after, before, "{gateways}");
        lab.delegate("refuses", "exit 0");
        lab.del();
        lab.assert_nothing_left();
        lab.delegate(
            "refuses",
            r#"echo '{"cniVersion":"1.0.0","code":100,"msg":"no"}'; exit 1"#,
        );
    }
}

#[test]
fn the_same_gateway_as_before_is_no_trouble() {
    let lab = Lab::new();
    lab.definition("demo/instead", &lab.ptp("10.42.0.0/24"));
    lab.selects_json(&json!([{ "name": "instead", "default-route": ["10.42.0.1"] }]));
    lab.add();
    assert_eq!(lab.pod.default_routes(), ["10.42.0.1 dev net1 metric 0"]);
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}
