//! What the cluster is told about a pod's attachments (NPWG 1.3 §5).

use serde_json::{Value, json};

use crate::lab::{Lab, POD};

fn by_interface<'a>(status: &'a [Value], interface: &str) -> &'a Value {
    status
        .iter()
        .find(|entry| entry["interface"] == interface)
        .unwrap_or_else(|| panic!("no entry of {interface} in {status:?}"))
}

/// The keys that NPWG 1.3 §5.3 defines, and `mtu`.
const KEYS: [&str; 9] = [
    "name",
    "interface",
    "ips",
    "mac",
    "mtu",
    "default",
    "dns",
    "default-route",
    "device-info",
];

// clause: NPWG-1.3 §5.3 keys: no other without a period
// clause: NPWG-1.3 §5 list: one map per attachment
// clause: NPWG-1.3 §5.1 source
// clause: NPWG-1.3 §5.3.1 name
// clause: NPWG-1.3 §5.3.1 namespace
// clause: NPWG-1.3 §5.2 entry
// clause: NPWG-1.3 §5.2 default
// clause: NPWG-1.3 §5.3.5 one
#[test]
fn each_attachment_has_an_entry_that_says_what_the_kernel_shows() {
    let lab = Lab::new();
    lab.definition("demo/storage", &lab.macvlan());
    let mut named = lab.ptp("10.30.0.0/24");
    named["dns"] = json!({ "nameservers": ["192.0.2.53"], "domain": "example.com", "search": ["a.example.com"] });
    lab.definition("default/management", &named);
    lab.selects_json(&json!([
        { "name": "storage", "ips": ["10.20.0.5/24", "2001:db8:20::5/64"], "mac": "02:00:00:00:20:05",
          "default-route": ["10.20.0.1"] },
        { "name": "management", "namespace": "default" },
    ]));
    lab.add();
    let status = lab.status();
    assert_eq!(status.len(), 3);
    for entry in &status {
        for key in entry.as_object().unwrap().keys() {
            assert!(
                KEYS.contains(&key.as_str()) || key == "io.jackfield.attached",
                "{key} in {entry}"
            );
        }
        let interface = entry["interface"].as_str().unwrap();
        let shown: Vec<String> = lab
            .pod
            .addresses(interface)
            .iter()
            .map(|address| address.split('/').next().unwrap().to_owned())
            .collect();
        assert_eq!(entry["ips"], json!(shown));
        assert_eq!(entry["mac"], json!(lab.pod.mac(interface)));
        assert_eq!(entry["default"], json!(interface == "eth0"));
        let link = lab.pod.show(&format!("link show dev {interface}"));
        assert_eq!(entry["mtu"], link[0]["mtu"]);
    }
    assert_eq!(by_interface(&status, "eth0")["name"], "cluster");
    let storage = by_interface(&status, "net1");
    assert_eq!(storage["name"], "demo/storage");
    assert_eq!(storage["default-route"], json!(["10.20.0.1"]));
    let management = by_interface(&status, "net2");
    assert_eq!(management["name"], "default/management");
    assert_eq!(management["dns"]["nameservers"], json!(["192.0.2.53"]));
    assert_eq!(management["dns"]["search"], json!(["a.example.com"]));
    assert!(management.get("default-route").is_none());
    lab.del();
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §5.3.2.1 interface: the first interface of the result with a sandbox
#[test]
fn the_entry_is_about_the_interface_in_the_pod_not_the_bridge() {
    let lab = Lab::new();
    lab.add();
    let status = lab.status();
    assert_eq!(status[0]["interface"], "eth0");
    assert_eq!(status[0]["mac"], json!(lab.pod.mac("eth0")));
    lab.del();
}

// clause: NPWG-1.3 §4.2 entry: the same network twice gives two
// clause: NPWG-1.3 §4.2.2
#[test]
fn a_network_attached_twice_has_two_entries() {
    let lab = Lab::new();
    let mut config = lab.macvlan();
    config["ipam"] = lab.host_local(&["10.21.0.0/24"], false);
    lab.definition("demo/one", &config);
    lab.selects("one,one");
    lab.add();
    let status = lab.status();
    assert_eq!(by_interface(&status, "net1")["name"], "demo/one");
    assert_eq!(by_interface(&status, "net2")["name"], "demo/one");
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn addresses_come_with_their_prefix_where_the_node_says_so() {
    let mut lab = Lab::new();
    lab.configure("statusAddresses", json!("prefix"));
    lab.add();
    assert_eq!(lab.status()[0]["ips"], json!(lab.pod.addresses("eth0")));
    lab.del();
}

// clause: NPWG-1.3 §5.1 others: may update the status
#[test]
fn what_others_wrote_into_the_status_stays() {
    let lab = Lab::new();
    lab.write(
        &format!("cluster/status/{POD}/network-status.json"),
        r#"[{"name":"cluster","interface":"eth0","default":true,"ips":["192.0.2.1"],"org.example.mark":1},
            {"name":"others/hot-plugged","interface":"hot0","default":false}]"#,
    );
    lab.add();
    let status = lab.status();
    let own = by_interface(&status, "eth0");
    assert_eq!(own["org.example.mark"], 1);
    assert_eq!(own["ips"], json!(["10.10.0.2"]));
    assert_eq!(by_interface(&status, "hot0")["name"], "others/hot-plugged");
    lab.del();
}

#[test]
fn one_event_lists_all_attachments() {
    let lab = Lab::new();
    lab.definition("demo/management", &lab.ptp("10.30.0.0/24"));
    lab.selects("management");
    lab.add();
    assert_eq!(
        lab.events(),
        [
            "Normal AddedInterface Add eth0 [10.10.0.2/24] from cluster; Add net1 [10.30.0.2/24] from demo/management"
        ]
    );
    lab.del();
}

// clause: NPWG-1.3 §5.1 source
#[test]
fn what_an_earlier_sandbox_of_the_pod_had_is_told_no_more() {
    let lab = Lab::new();
    for (name, subnet) in [("demo/a", "10.30.0.0/24"), ("demo/b", "10.31.0.0/24")] {
        lab.definition(name, &lab.ptp(subnet));
    }
    let attached = |networks: &Value| -> Vec<Value> {
        lab.selects_json(networks);
        lab.add();
        lab.del();
        let status = lab.status().into_iter();
        status.map(|mut entry| entry["interface"].take()).collect()
    };
    let both = attached(&json!([{ "name": "a" }, { "name": "b" }]));
    assert_eq!(both, ["eth0", "net1", "net2"]);
    let other = attached(&json!([{ "name": "a", "interface": "foo" }]));
    assert_eq!(other, ["eth0", "foo"]);
    assert_eq!(attached(&json!([])), ["eth0"]);
}

/// Without a status nobody learns of the attachment, so it does not stand.
#[test]
fn a_status_that_cannot_be_written_takes_the_attachment_back() {
    let mut lab = Lab::new();
    lab.definition("demo/management", &lab.ptp("10.30.0.0/24"));
    lab.selects("management");
    // Injects a fault: a file where the folder has to be.
    lab.write("cluster/status", "");
    lab.set_out();
    lab.call("ADD").fails(
        107,
        &["demo/web", "cluster/status", "make the folder writable"],
    );
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §5.1.1 minimal
#[test]
fn a_network_that_answers_nothing_has_a_minimal_entry() {
    let lab = Lab::new();
    lab.delegate("silent", "[ $CNI_COMMAND = ADD ] && echo '{}'; exit 0");
    lab.definition(
        "demo/silent",
        &json!({ "cniVersion": "1.0.0", "type": "silent" }),
    );
    lab.selects("silent");
    lab.add();
    let status = lab.status();
    let entry = status
        .iter()
        .find(|entry| entry["name"] == "demo/silent")
        .unwrap();
    assert_eq!(entry["default"], false);
    assert!(
        entry.get("ips").is_none() && entry.get("mac").is_none(),
        "{entry}"
    );
    lab.del();
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §5.3.3.1 before 0.3.0: of ip4 and ip6
#[test]
fn a_result_of_old_has_its_addresses_in_the_entry() {
    let lab = Lab::new();
    lab.delegate(
        "old",
        "cat >/dev/null\n\
         in_pod() { nsenter --net=$CNI_NETNS \"$@\"; }\n\
         if [ $CNI_COMMAND = DEL ]; then in_pod ip link del $CNI_IFNAME; exit 0; fi\n\
         in_pod ip link add $CNI_IFNAME type veth peer name peer0\n\
         in_pod ip link set peer0 up; in_pod ip link set $CNI_IFNAME up\n\
         in_pod ip addr add 10.60.0.5/24 dev $CNI_IFNAME\n\
         echo '{\"cniVersion\":\"0.2.0\",\"ip4\":{\"ip\":\"10.60.0.5/24\",\"gateway\":\"10.60.0.1\"}}'",
    );
    lab.definition("demo/old", &json!({ "cniVersion": "0.2.0", "type": "old" }));
    lab.selects("old");
    lab.add();
    let status = lab.status();
    let entry = status
        .iter()
        .find(|entry| entry["name"] == "demo/old")
        .unwrap();
    assert_eq!(entry["ips"], json!(["10.60.0.5"]));
    lab.check();
    lab.pod.ip("addr del 10.60.0.5/24 dev net1");
    lab.call("CHECK")
        .fails(105, &["demo/old (net1)", "10.60.0.5"]);
    lab.del();
    lab.assert_nothing_left();
}

#[test]
fn a_status_that_is_broken_is_replaced() {
    let lab = Lab::new();
    for broken in ["", "{", "null", "[1]"] {
        lab.write(&format!("cluster/status/{POD}/network-status.json"), broken);
        lab.add();
        assert_eq!(by_interface(&lab.status(), "eth0")["default"], true);
        lab.del();
    }
}
