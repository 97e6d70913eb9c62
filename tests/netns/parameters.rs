//! What goes over the border between runtime, Jackfield and delegates: CNI 1.1.0 §2 and §5.

use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use crate::lab::Lab;

// clause: CNI-1.1.0 §2 CHECK parameters
// clause: CNI-1.1.0 §3 check parameters
// clause: CNI-1.1.0 §2 networking domain: the node's own
// clause: NPWG-1.3 §4.2.1 tuple: container, network and interface are the same for every verb
#[test]
fn a_delegate_is_told_the_same_by_every_verb_on_the_node_itself() {
    let lab = Lab::new();
    let note = "env | grep ^CNI_ | grep -v ^CNI_COMMAND= | sort >>$LAB/log/$CNI_COMMAND.env
        readlink /proc/self/ns/net >>$LAB/log/netns";
    lab.recorder("witness", "ptp", note);
    let mut config = lab.ptp("10.30.0.0/24");
    config["type"] = json!("witness");
    lab.definition("demo/seen", &config);
    lab.selects("seen@seen0");
    lab.add();
    lab.check();
    lab.del();
    let told = lab.log("ADD.env");
    for variable in [
        format!("CNI_CONTAINERID={}", lab.container()),
        format!("CNI_NETNS={}", lab.pod.path().display()),
        "CNI_IFNAME=seen0".to_owned(),
    ] {
        assert!(told.contains(&variable), "{variable} is not in {told:?}");
    }
    assert_eq!(lab.log("CHECK.env"), told);
    assert_eq!(lab.log("DEL.env"), told);
    for verb in ["ADD", "CHECK", "DEL"] {
        assert_eq!(lab.recorded("witness", verb)[0]["name"], "seen");
    }
    let node = std::fs::metadata(lab.node.path()).unwrap().ino();
    let here = format!("net:[{node}]");
    assert_eq!(lab.log("netns"), [&here[..], &here, &here]);
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §2 ADD prevResult: the cluster network's plugins stand behind it
// clause: CNI-1.1.0 §5 prevResult
#[test]
fn behind_another_plugin_its_result_goes_on_and_comes_out_again() {
    let mut lab = Lab::new();
    lab.pod.ip("link add eth0 type bridge");
    lab.pod.ip("addr add 10.77.0.5/24 dev eth0");
    lab.pod.ip("link set eth0 up");
    lab.cluster_network("1.0.0", &[json!({ "type": "tuning", "mtu": 1400 })]);
    let previous = json!({ "cniVersion": "1.0.0",
        "interfaces": [{ "name": "eth0", "sandbox": lab.pod.path() }],
        "ips": [{ "address": "10.77.0.5/24", "interface": 0 }],
        "dns": { "domain": "example.org" } });
    lab.configure("prevResult", json!({ "ips": [{ "address": "none" }] }));
    lab.call("ADD").fails(6, &["prevResult", "none"]);
    lab.configure("prevResult", previous.clone());
    let result = lab.add();
    assert_eq!(result["ips"], previous["ips"], "{result}");
    assert_eq!(result["dns"], previous["dns"], "{result}");
    assert_eq!(result["interfaces"][0]["name"], "eth0", "{result}");
    assert!(lab.pod.ip("link show eth0").contains("mtu 1400"));
    lab.del();
    lab.pod.ip("link del eth0");
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §5 sandbox: the value of CNI_NETNS
// clause: CNI-1.1.0 §2 ADD result
// clause: CNI-1.1.0 §5 ADD: interfaces, ips and routes
#[test]
fn the_result_says_where_the_interface_is() {
    let lab = Lab::new();
    let result = lab.add();
    let links = result["interfaces"].as_array().unwrap();
    let own: Vec<&Value> = links.iter().filter(|link| link["name"] == "eth0").collect();
    assert_eq!(own.len(), 1, "{result}");
    assert_eq!(own[0]["sandbox"], json!(lab.pod.path()));
    let index = result["ips"][0]["interface"].as_u64().unwrap() as usize;
    assert_eq!(links[index]["name"], "eth0");
    assert_eq!(result["routes"][0]["dst"], "0.0.0.0/0");
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §2 STATUS not relied on: it was never called
// clause: CNI-1.1.0 §2 STATUS others go on
#[test]
fn a_pod_is_attached_checked_and_detached_whatever_status_says() {
    let mut lab = Lab::new();
    lab.configure("cniVersion", json!("1.1.0"));
    // Injects a fault: a plugin that says it is not available.
    let unwell =
        r#"[ $CNI_COMMAND = STATUS ] && { echo '{"code":51,"msg":"no uplink"}'; exit 1; }"#;
    lab.recorder("unwell", "bridge", unwell);
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("unwell");
    lab.cluster_network("1.1.0", &[bridge]);
    lab.add();
    lab.call("STATUS").fails(51, &["no uplink"]);
    lab.check();
    lab.del();
    lab.call("STATUS").fails(51, &["no uplink"]);
    lab.add();
    lab.del();
    lab.assert_nothing_left();
}
