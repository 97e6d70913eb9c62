//! Pods that somebody else attached: Multus, whose cache is all that is left, or the cluster
//! network itself before Jackfield came to the node.

mod multus;

use std::fs;

use multus::Multus;
use serde_json::{Value, json};

use crate::lab::{Lab, Outcome};

/// A call without netns and prevResult, as runtimes repeat it.
fn late_del(lab: &Lab) -> Outcome {
    lab.plugin("DEL").env("CNI_NETNS", "").run()
}

fn silent(outcome: &Outcome) {
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (0, ""),
        "{outcome}"
    );
}

/// The files of a folder with their texts.
fn snapshot(lab: &Lab) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for folder in ["multus", "multus/results"] {
        for entry in fs::read_dir(lab.path(folder))
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry.path().is_file() {
                let text = fs::read_to_string(entry.path()).unwrap();
                files.push((entry.path().display().to_string(), text));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_pod_of_multus_is_detached_from_its_cache_which_stays_as_it_is() {
    let mut lab = Lab::new();
    let multus = Multus::attach(&mut lab);
    assert_eq!(lab.pod.links(), ["data0", "eth0", "net1"]);
    let cache = snapshot(&lab);
    silent(&lab.plugin("DEL").run());
    assert!(lab.pod.links().is_empty());
    multus.assert_leases_freed(&lab);
    assert_eq!(snapshot(&lab), cache, "cniDir is read only");
    let calls = lab.log("calls");
    assert_eq!(
        calls,
        [
            "DEL data0 mac-rec",
            "DEL net1 mac-rec",
            "DEL eth0 bridge-rec"
        ],
        "the last one first"
    );
    // What the plugins were told at ADD, they are told again.
    let told = lab.recorded("mac-rec", "DEL");
    assert_eq!(told[1]["runtimeConfig"]["mac"], "02:00:00:00:0a:01");
    assert_eq!(told[1]["prevResult"]["ips"][0]["address"], "10.9.0.5/24");
    // Runtimes repeat a DEL; the cache is still there, but has been seen to.
    silent(&late_del(&lab));
    silent(&late_del(&lab));
    assert_eq!(lab.log("calls").len(), 3);
}

#[test]
fn either_half_of_the_cache_does_and_damage_costs_only_what_it_hits() {
    type Damage = fn(&Lab);
    let damages: [(&str, Damage); 7] = [
        ("no delegates", |lab| {
            fs::remove_file(lab.path("multus").join(lab.container())).unwrap()
        }),
        ("no results", |lab| {
            fs::remove_dir_all(lab.path("multus/results")).unwrap()
        }),
        ("torn delegates", |lab| {
            multus::tear(&lab.path("multus").join(lab.container()))
        }),
        ("torn result", |lab| {
            multus::tear(&multus::result_of(lab, "net1"))
        }),
        ("every result torn", |lab| {
            for ifname in ["eth0", "net1", "data0"] {
                multus::tear(&multus::result_of(lab, ifname));
            }
        }),
        ("a result that is no result", |lab| {
            fs::write(multus::result_of(lab, "eth0"), "{\"result\":7}").unwrap();
        }),
        ("a config that is no config", |lab| {
            let path = multus::result_of(lab, "eth0");
            let mut result: Value =
                serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            result["config"] = json!("%%%");
            fs::write(path, result.to_string()).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let mut lab = Lab::new();
        let multus = Multus::attach(&mut lab);
        damage(&lab);
        let outcome = lab.plugin("DEL").run();
        assert_eq!(outcome.exit, 0, "{what}: {outcome}");
        assert!(lab.pod.links().is_empty(), "{what}");
        multus.assert_leases_freed(&lab);
        silent(&late_del(&lab));
    }
}

#[test]
fn a_cache_of_which_nothing_can_be_read_leaves_what_the_cluster_still_knows() {
    let mut lab = Lab::new();
    let multus = Multus::attach(&mut lab);
    for path in [
        lab.path("multus").join(lab.container()),
        multus::result_of(&lab, "eth0"),
    ] {
        fs::write(path, "\0\0\0").unwrap();
    }
    for ifname in ["net1", "data0"] {
        fs::remove_file(multus::result_of(&lab, ifname)).unwrap();
    }
    multus.definitions_as_attached(&lab);
    let outcome = lab.plugin("DEL").run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(outcome.stderr.contains("cache of Multus"), "{outcome}");
    assert!(lab.pod.links().is_empty());
    multus.assert_leases_freed(&lab);
}

#[test]
fn what_multus_attached_is_checked_against_its_cache() {
    let mut lab = Lab::new();
    Multus::attach(&mut lab);
    silent(&lab.plugin("CHECK").run());
    lab.pod.ip("addr del 10.9.0.5/24 dev net1");
    lab.plugin("CHECK").run().failure(100);
    lab.del();
}

#[test]
fn what_cannot_be_detached_of_multus_pod_is_owed_like_our_own() {
    let mut lab = Lab::new();
    let multus = Multus::attach(&mut lab);
    lab.recorder(
        "bridge-rec",
        "bridge",
        "echo '{\"code\":99,\"msg\":\"not now\"}'; exit 1",
    );
    lab.plugin("DEL").run().fails(106, &["eth0", "not now"]);
    assert_eq!(lab.pod.links(), ["eth0"]);
    lab.recorder("bridge-rec", "bridge", "");
    silent(&late_del(&lab));
    multus.assert_leases_freed(&lab);
    assert_eq!(
        lab.log("calls")
            .iter()
            .filter(|call| call.contains("net1"))
            .count(),
        1,
        "what was detached stays detached"
    );
}

#[test]
fn a_pod_of_multus_counts_as_attached_when_its_network_collects() {
    let mut lab = Lab::new();
    Multus::attach(&mut lab);
    lab.configure("cniVersion", json!("1.1.0"));
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("bridge-rec");
    lab.cluster_network("1.1.0", &[bridge]);
    lab.configure("cni.dev/valid-attachments", json!([]));
    silent(&lab.plugin("GC").run());
    let told = lab.recorded("bridge-rec", "GC");
    let list = told[0]["cni.dev/valid-attachments"].to_string();
    assert!(list.contains(&lab.container()), "{list}");
    assert_eq!(
        lab.pod.links(),
        ["data0", "eth0", "net1"],
        "nothing of it is touched"
    );
    lab.configure("cni.dev/valid-attachments", json!(null));
    lab.del();
}

/// The pod's eth0, attached by the cluster network's own plugin; its result.
fn older_pod(lab: &Lab) -> Value {
    lab.recorder("bridge-rec", "bridge", "");
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("bridge-rec");
    lab.cluster_network("1.0.0", &[bridge.clone()]);
    bridge["cniVersion"] = json!("1.0.0");
    bridge["name"] = json!("cluster");
    multus::plugin(lab, "ADD", "eth0", &bridge, "")
}

#[test]
fn a_pod_older_than_jackfield_is_detached_from_todays_cluster_network() {
    let mut lab = Lab::new();
    let result = older_pod(&lab);
    lab.configure("prevResult", result.clone());
    silent(&lab.plugin("CHECK").run());
    lab.del();
    lab.assert_nothing_left();
    let told = lab.recorded("bridge-rec", "DEL");
    assert_eq!(told.last().unwrap()["prevResult"]["ips"], result["ips"]);
    // Again and late: nothing is there any more, and nothing complains.
    lab.configure("prevResult", json!(null));
    silent(&late_del(&lab));
    silent(&late_del(&lab));
    lab.assert_nothing_left();
}

#[test]
fn an_older_pods_failed_del_is_owed_and_a_repeated_one_without_any_trace_is_not() {
    let mut lab = Lab::new();
    let result = older_pod(&lab);
    let fail = "[ $CNI_COMMAND = DEL ] && { echo '{\"code\":99,\"msg\":\"not now\"}'; exit 1; }";
    lab.recorder("bridge-rec", "bridge", fail);
    // Nothing says that anything is attached: the runtime is told no error, we try all the same.
    let outcome = late_del(&lab);
    silent(&outcome);
    assert!(outcome.stderr.contains("not now"), "{outcome}");
    lab.configure("prevResult", result);
    lab.plugin("DEL")
        .run()
        .fails(106, &["cluster (eth0)", "not now"]);
    assert_eq!(lab.leftovers().with("journal").len(), 2, "record and debt");
    lab.recorder("bridge-rec", "bridge", "");
    lab.del();
    lab.assert_nothing_left();
}

// After a reboot the netns is gone and the result is still there.
#[test]
fn a_del_after_a_reboot_frees_leases_with_the_result_and_no_netns() {
    let mut lab = Lab::new();
    lab.recorder("bridge-rec", "bridge", "");
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("bridge-rec");
    lab.cluster_network("1.0.0", &[bridge]);
    lab.definition("demo/a", &lab.ptp("10.20.0.0/24"));
    lab.selects("a");
    let result = lab.add();
    lab.pod.delete();
    lab.configure("prevResult", result);
    silent(&late_del(&lab));
    assert!(
        lab.leftovers().with("ipam").is_empty(),
        "{:?}",
        lab.leftovers()
    );
    assert!(lab.leftovers().with("journal").is_empty());
    assert!(lab.recorded("bridge-rec", "DEL")[0]["prevResult"].is_object());
}

#[test]
fn the_dels_of_a_sandbox_do_not_touch_its_successor() {
    let lab = Lab::new();
    lab.definition("demo/a", &lab.ptp("10.20.0.0/24"));
    lab.selects("a");
    lab.add();
    silent(&lab.plugin("DEL").run());
    // The successor has the pod's name and UID, and another container ID.
    let successor = |verb: &str| {
        let next = format!("{}-next", lab.container());
        lab.plugin(verb).env("CNI_CONTAINERID", &next).run()
    };
    successor("ADD").success();
    let there = lab.leftovers();
    silent(&late_del(&lab));
    assert_eq!(lab.leftovers(), there);
    silent(&successor("CHECK"));
    silent(&late_del(&lab));
    assert_eq!(lab.leftovers(), there);
    silent(&successor("CHECK"));
    silent(&successor("DEL"));
    lab.assert_nothing_left();
}

#[test]
fn a_lost_record_is_named_and_what_the_pod_selects_is_detached() {
    let lab = Lab::new();
    lab.definition("demo/a", &lab.ptp("10.20.0.0/24"));
    lab.selects("a");
    lab.add();
    for entry in fs::read_dir(lab.path("journal/sandboxes"))
        .unwrap()
        .flatten()
    {
        fs::write(entry.path(), "torn").unwrap();
    }
    // Whoever reads it first puts it aside; the DEL that comes later knows all the same.
    lab.plugin("CHECK").run().failure(109);
    silent(&lab.plugin("DEL").run());
    assert!(lab.pod.links().is_empty());
    let left = lab.leftovers();
    assert!(left.with("ipam").is_empty(), "{left:?}");
    assert_eq!(
        left.with("quarantine").len(),
        1,
        "for whoever wants to know: {left:?}"
    );
    silent(&late_del(&lab));
}
