//! DEL: it needs nothing but the record.

use std::fs;

use serde_json::json;

use crate::lab::Lab;

/// A lab whose pod has three networks.
fn attached() -> Lab {
    let lab = Lab::new();
    lab.definition("demo/storage", &lab.macvlan());
    lab.definition("demo/management", &lab.ptp("10.30.0.0/24"));
    lab.selects_json(&json!([
        { "name": "storage", "ips": ["10.20.0.5/24"] }, { "name": "management" }
    ]));
    lab.add();
    lab
}

// clause: CNI-1.1.0 §2 DEL missing: pod and definitions are gone
// clause: CNI-1.1.0 §3 store the result
#[test]
fn pod_definitions_and_all_manifests_may_be_gone() {
    let lab = attached();
    fs::remove_dir_all(lab.path("cluster")).unwrap();
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §3 same configuration: of the ADD
#[test]
fn the_cluster_networks_configuration_may_be_gone_or_another() {
    let lab = attached();
    let other = lab.bridge("cni9", "10.99.0.0/24");
    lab.cluster_network("1.0.0", &[other]);
    fs::remove_file(lab.path("conf/10-cluster.conflist")).unwrap();
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §3 same configuration: of the ADD, whatever was changed since
#[test]
fn definitions_that_were_changed_do_not_change_what_is_detached() {
    let lab = attached();
    lab.definition_text("demo/management", "{ broken");
    lab.selects("[broken");
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §2 DEL missing: the netns is gone
#[test]
fn the_netns_may_be_gone() {
    let lab = attached();
    let leases = lab.leftovers().with("ipam").len();
    assert_eq!(leases, 2);
    lab.pod.delete();
    lab.del();
    lab.assert_none_left(&["file", "veth"]);
}

// clause: CNI-1.1.0 §2 DEL missing: the record is gone, by hand
#[test]
fn what_is_still_in_the_pod_is_detached_although_its_record_was_removed() {
    let lab = Lab::new();
    for (name, subnet) in [("one", "10.31.0.0/24"), ("two", "10.32.0.0/24")] {
        lab.recorder(name, "ptp", "");
        let mut config = lab.ptp(subnet);
        config["type"] = json!(name);
        lab.definition(&format!("demo/{name}"), &config);
    }
    lab.selects("one,two@held");
    let result = lab.add();
    fs::remove_dir_all(lab.path("journal")).unwrap();
    // Nothing shows that the second is attached any more.
    lab.pod.ip("link delete held");
    fs::remove_dir_all(lab.path("log")).unwrap();
    fs::create_dir(lab.path("log")).unwrap();
    let mut conf = lab.conf().clone();
    conf["prevResult"] = result;
    let deleted = lab.plugin("DEL").stdin(conf.to_string().as_bytes()).run();
    assert_eq!(
        (deleted.exit, deleted.stdout.as_str()),
        (0, ""),
        "{deleted}"
    );
    assert_eq!(lab.log("calls"), ["DEL net1 one"]);
    assert_eq!(lab.pod.links(), [""; 0]);
    // Nor does it have to name a result where its version has none.
    lab.selects("one");
    let mut conf = lab.conf().clone();
    conf["cniVersion"] = json!("0.3.1");
    let call = |verb: &str| lab.plugin(verb).stdin(conf.to_string().as_bytes()).run();
    call("ADD").success();
    fs::remove_dir_all(lab.path("journal")).unwrap();
    assert_eq!(call("DEL").exit, 0);
    assert_eq!(lab.pod.links(), [""; 0]);
    // Whom the runtime does not know as attached is not looked into.
    lab.pod.ip("link add net1 type veth peer name other");
    lab.del();
    assert!(lab.pod.links().contains(&"net1".to_owned()));
}

// clause: CNI-1.1.0 §2 DEL missing: an unknown container, in a netns that is on record as another's
#[test]
fn a_stranger_takes_nothing_from_whom_the_netns_is() {
    let lab = attached();
    let links = lab.pod.links();
    let mut conf = lab.conf().clone();
    for prev_result in [json!(null), json!({ "cniVersion": "1.0.0" })] {
        conf["prevResult"] = prev_result;
        let call = lab.plugin("DEL").stdin(conf.to_string().as_bytes());
        let outcome = call.env("CNI_CONTAINERID", "stranger").run();
        assert_eq!(outcome.exit, 0, "{outcome}");
        assert_eq!(lab.pod.links(), links);
    }
    lab.check();
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §2 environment: CNI_NETNS is optional for DEL
#[test]
fn the_netns_may_be_unnamed() {
    for netns in [None, Some("")] {
        let lab = attached();
        let call = lab.plugin("DEL").without("CNI_NETNS");
        let outcome = match netns {
            None => call.run(),
            Some(empty) => call.env("CNI_NETNS", empty).run(),
        };
        assert_eq!(
            (outcome.exit, outcome.stdout.as_str()),
            (0, ""),
            "{outcome}"
        );
        // The pod is still there, and its netns is on record.
        assert_eq!(lab.pod.links(), [""; 0]);
        lab.assert_none_left(&["file"]);
    }
}

// clause: CNI-1.1.0 §2 DEL again: also of an unknown container
#[test]
fn twice_and_never_attached_are_successes() {
    let lab = attached();
    lab.del();
    lab.del();
    lab.assert_nothing_left();
    let stranger = Lab::new();
    stranger.del();
    stranger.assert_nothing_left();
}

#[test]
fn the_last_attachment_goes_first() {
    let lab = Lab::new();
    for name in ["one", "two"] {
        lab.recorder(name, "ptp", "");
    }
    for (name, subnet) in [("one", "10.31.0.0/24"), ("two", "10.32.0.0/24")] {
        let mut config = lab.ptp(subnet);
        config["type"] = json!(name);
        lab.definition(&format!("demo/{name}"), &config);
    }
    lab.selects("one,two");
    lab.add();
    lab.del();
    let calls = lab.log("calls");
    assert_eq!(calls[2..], ["DEL net2 two", "DEL net1 one"]);
    lab.assert_nothing_left();
}

// clause: NPWG-1.3 §7.2 all torn down: one that fails keeps no other
// clause: NPWG-1.3 §7.2 final error
#[test]
fn what_cannot_be_detached_stays_owed_and_the_rest_goes() {
    let lab = Lab::new();
    // Injects a fault: a plugin that refuses DEL as long as a file is there.
    let refuse = r#"[ $CNI_COMMAND = DEL ] && [ -e $LAB/stuck ] && { echo '{"cniVersion":"1.0.0","code":100,"msg":"controller away"}'; exit 1; }"#;
    lab.recorder("sticky", "ptp", refuse);
    let mut config = lab.ptp("10.31.0.0/24");
    config["type"] = json!("sticky");
    lab.definition("demo/sticky", &config);
    lab.definition("demo/management", &lab.ptp("10.30.0.0/24"));
    lab.selects("sticky,management");
    lab.add();
    lab.write("stuck", "");
    lab.call("DEL")
        .fails(106, &["demo/sticky (net1)", "sticky", "controller away"]);
    assert_eq!(lab.pod.links(), ["net1"], "eth0 and net2 are detached");
    lab.call("DEL").fails(106, &["demo/sticky (net1)"]);
    fs::remove_file(lab.path("stuck")).unwrap();
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §3 executable: also for DEL
// clause: NPWG-1.3 §7.2 final error
#[test]
fn a_plugin_that_is_not_installed_any_more_is_owed_until_it_is_back() {
    let lab = Lab::new();
    lab.recorder("vanishing", "ptp", "");
    let mut config = lab.ptp("10.31.0.0/24");
    config["type"] = json!("vanishing");
    lab.definition("demo/vanishing", &config);
    lab.selects("vanishing");
    lab.add();
    let (there, away) = (lab.path("bin/vanishing"), lab.path("away"));
    fs::rename(&there, &away).unwrap();
    lab.call("DEL").fails(
        106,
        &[
            "demo/vanishing (net1)",
            "no binary named vanishing",
            "install the plugin",
        ],
    );
    fs::rename(&away, &there).unwrap();
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §3 attachment parameters: container and interface name an attachment
#[test]
fn two_interfaces_of_one_container_are_two_attachments() {
    let lab = Lab::new();
    lab.add();
    lab.plugin("ADD").env("CNI_IFNAME", "eth1").run().success();
    assert_eq!(lab.pod.links(), ["eth0", "eth1"]);
    lab.del();
    assert_eq!(lab.pod.links(), ["eth1"]);
    let second = lab.plugin("DEL").env("CNI_IFNAME", "eth1").run();
    assert_eq!(second.exit, 0, "{second}");
    lab.assert_nothing_left();
}

/// A DEL in the plugin's own netns would be about the node's interfaces.
#[test]
fn the_plugins_own_netns_is_refused_and_nothing_runs() {
    let lab = attached();
    let before = lab.leftovers();
    for path in ["/proc/self/ns/net", "/proc/thread-self/ns/net"] {
        let outcome = lab.plugin("DEL").env("CNI_NETNS", path).run();
        outcome.fails(8, &[path, "CNI_NETNS_OVERRIDE"]);
    }
    assert_eq!(lab.leftovers().with(""), before.with(""));
    lab.del();
    lab.assert_nothing_left();
}

// clause: CNI-1.1.0 §3 store the result: of this container, whoever has its path by now
#[test]
fn a_late_del_touches_nobody_who_has_the_path_by_now() {
    let mut lab = attached();
    lab.renew_pod();
    let successor = format!("{}-successor", lab.container());
    let call = |verb: &str| {
        let call = lab.plugin(verb).env("CNI_CONTAINERID", &successor).run();
        assert_eq!(call.exit, 0, "{verb}: {call}");
    };
    call("ADD");
    let links = lab.pod.links();
    lab.del();
    assert_eq!(lab.pod.links(), links);
    call("CHECK");
    call("DEL");
    lab.assert_nothing_left();
}

#[test]
fn a_path_that_leads_to_the_nodes_namespace_by_now_is_that_of_a_pod_that_is_gone() {
    let lab = attached();
    lab.pod.delete();
    // The number of the pod's process belongs to another process of the node by now.
    let call = lab.plugin("DEL").env("CNI_NETNS", "/proc/self/ns/net");
    let outcome = call.run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    lab.assert_none_left(&["file", "veth"]);
    let unknown = lab.plugin("DEL").env("CNI_NETNS", "/proc/self/ns/net");
    unknown.run().fails(8, &["/proc/self/ns/net"]);
}
