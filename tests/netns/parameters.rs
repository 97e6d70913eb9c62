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

// clause: CNI-1.1.0 §2 ADD exists
// clause: NPWG-1.3 §4.1.2.1.5 taken: by somebody else in the pod
#[test]
fn an_interface_that_is_there_already_fails_before_anything_runs() {
    for taken in ["eth0", "net1"] {
        let mut lab = Lab::new();
        lab.recorder("recorded", "ptp", "");
        let mut config = lab.ptp("10.30.0.0/24");
        config["type"] = json!("recorded");
        lab.definition("demo/own", &config);
        lab.selects("own");
        lab.pod
            .ip(&format!("link add {taken} type veth peer name other0"));
        lab.set_out();
        lab.call("ADD").fails(101, &[taken, "is already there"]);
        assert!(lab.log("calls").is_empty(), "nothing has run");
        lab.assert_nothing_left();
    }
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

// clause: CNI-1.1.0 §2 VERSION
// clause: CNI-1.1.0 §5 VERSION: cniVersion as it was asked, and all that are supported
#[test]
fn version_lists_what_is_spoken_whatever_is_asked() {
    let lab = Lab::new();
    for (stdin, echoed) in [
        (r#"{"cniVersion":"0.4.0"}"#, "0.4.0"),
        (
            r#"{"cniVersion":"1.1.0","name":"x","type":"jackfield"}"#,
            "1.1.0",
        ),
        (r#"{"cniVersion":"9.9.9"}"#, "9.9.9"),
        ("", "1.1.0"),
        ("{", "1.1.0"),
    ] {
        let call = lab.cli(&[]).env("CNI_COMMAND", "VERSION");
        let answer = call.stdin(stdin.as_bytes()).run().success();
        assert_eq!(answer["cniVersion"], echoed, "{stdin}");
        assert_eq!(
            answer["supportedVersions"],
            json!([
                "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"
            ])
        );
    }
}
