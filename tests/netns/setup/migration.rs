//! `install --watch` on a node that is Multus': it waits, takes over, and gives the node back, and it
//! never ends meanwhile. The real Multus stands in `tests/node`.

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::takeover::{MULTUS, thin};
use super::{CLUSTER, OURS, Setup, Watching, eventually};
use crate::lab::real_plugins;

/// The installer of a DaemonSet that moves nodes.
fn moving(setup: &Setup, more: &[&str]) -> Watching {
    let plugins = real_plugins().display().to_string();
    let flags = ["--from-multus", "--node", "here", "--cni-path", &plugins];
    setup.watch(&[&flags[..], more].concat())
}

/// Waits until a file of the runtime's directory is there, or is not.
#[track_caller]
fn there(setup: &Setup, name: &str, is_there: bool, watching: &Watching) {
    let file = setup.lab.path("net.d").join(name);
    let is_so = || file.exists() == is_there;
    eventually(name, is_so, || watching.log());
}

#[test]
fn without_a_word_about_multus_it_waits_until_multus_is_gone() {
    let setup = thin();
    let before = setup.files();
    let mut watching = setup.watch(&[]);
    watching.says("00-multus.conf is the configuration of Multus; take it over with");
    std::thread::sleep(Duration::from_secs(2));
    assert!(watching.is_running(), "{}", watching.log());
    assert_eq!(setup.files(), before);
    assert_eq!(watching.log().lines().count(), 1, "{}", watching.log());
    fs::remove_file(setup.lab.path("net.d").join(MULTUS)).unwrap();
    there(&setup, OURS, true, &watching);
    assert_eq!(watching.end(), Some(0));
}

#[test]
fn it_takes_over_as_soon_as_no_pod_would_fail_and_says_so_until_then() {
    let setup = thin();
    setup.lab.selects("nowhere");
    let before = setup.files();
    let mut watching = moving(&setup, &[]);
    watching.says("pod demo/web would fail: network demo/nowhere");
    watching.says("1 of this node's pods would fail with jackfield, so Multus stays");
    assert_eq!(setup.files(), before);
    // One that is at work by hand is not in its way, nor it in theirs.
    let outcome = setup.take_over(&["--dry-run"]);
    assert_eq!(outcome.exit, 1, "{outcome}");
    setup
        .lab
        .definition("demo/nowhere", &setup.lab.ptp("10.20.0.0/24"));
    there(&setup, OURS, true, &watching);
    there(&setup, MULTUS, false, &watching);
    assert!(watching.is_running(), "{}", watching.log());
    assert_eq!(setup.conf(OURS)["name"], "multus-cni-network");
    // From now on it keeps what it installed.
    fs::remove_file(setup.lab.path("net.d").join(OURS)).unwrap();
    watching.says("repairing the installation (1 of at most 3");
    there(&setup, OURS, true, &watching);
    assert_eq!(watching.end(), Some(0));
}

#[test]
fn what_cannot_be_found_out_or_read_is_waited_for_too() {
    // Nobody tells of the pods.
    let setup = thin();
    fs::rename(setup.lab.path("cluster"), setup.lab.path("away")).unwrap();
    let watching = moving(&setup, &[]);
    watching.says("cannot find out whether pods would fail");
    fs::rename(setup.lab.path("away"), setup.lab.path("cluster")).unwrap();
    there(&setup, MULTUS, false, &watching);
    assert_eq!(watching.end(), Some(0));
    // Another file comes first, and Multus' own cannot be read.
    let setup = thin();
    setup.cluster_network("00-a.conflist", "first");
    let watching = moving(&setup, &[]);
    watching.says("00-a.conflist comes before");
    fs::remove_file(setup.lab.path("net.d/00-a.conflist")).unwrap();
    there(&setup, MULTUS, false, &watching);
    assert_eq!(watching.end(), Some(0));
    // It is forced.
    let setup = thin();
    setup.lab.selects("nowhere");
    let watching = moving(&setup, &["--force"]);
    there(&setup, MULTUS, false, &watching);
    assert_eq!(watching.end(), Some(0));
}

#[test]
fn a_node_is_given_back_and_taken_again_and_in_the_end_has_what_it_had() {
    let setup = thin();
    let before = setup.files();
    let watching = moving(&setup, &[]);
    there(&setup, MULTUS, false, &watching);
    watching.says("installed");
    assert_eq!(watching.end(), Some(0));
    for edited in [false, true] {
        let mut back = moving(&setup, &["--back"]);
        there(&setup, MULTUS, true, &back);
        there(&setup, OURS, false, &back);
        back.says("Multus is the node's network again");
        let binary = setup.lab.path("cni-bin/jackfield");
        assert!(binary.exists() && back.is_running(), "{}", back.log());
        // Started again it changes nothing, nor does one that was told nothing of Multus.
        assert_eq!(back.end(), Some(0));
        for more in [&["--from-multus", "--back"][..], &[]] {
            let watching = setup.watch(more);
            watching.says("Multus");
            std::thread::sleep(Duration::from_secs(1));
            assert_eq!(setup.first(), MULTUS, "{}", watching.log());
            assert_eq!(watching.end(), Some(0));
        }
        if edited {
            break;
        }
        let text = fs::read_to_string(setup.lab.path("net.d").join(MULTUS)).unwrap();
        setup.multus(&format!("{text}\n\n"));
        let watching = moving(&setup, &[]);
        there(&setup, MULTUS, false, &watching);
        assert!(!watching.log().contains("repairing"), "{}", watching.log());
        assert_eq!(watching.end(), Some(0));
    }
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    let text = fs::read_to_string(setup.lab.path("net.d").join(MULTUS)).unwrap();
    assert!(text.ends_with("}\n\n\n"), "what stood there last: {text:?}");
    setup.multus(text.trim_end_matches("\n\n"));
    setup.multus(&format!("{}\n", text.trim_end()));
    assert!(setup.files() == before);
}

#[test]
fn a_node_that_never_was_multus_is_jackfields_whichever_way_the_fleet_goes() {
    let setup = Setup::new();
    let watching = moving(&setup, &[]);
    watching.says("installed");
    assert_eq!(watching.end(), Some(0));
    let watching = moving(&setup, &["--back"]);
    watching.says("no configuration of Multus to go back to, so jackfield stays");
    watching.says("installed");
    assert_eq!(setup.first(), OURS);
    assert_eq!(watching.end(), Some(0));
    // Where nothing is installed, going back installs nothing.
    let setup = Setup::new();
    let watching = moving(&setup, &["--back"]);
    watching.says("jackfield is not installed, so the node stays as it is");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(setup.first(), CLUSTER);
    assert_eq!(watching.end(), Some(0));
}

#[test]
fn a_pod_on_the_hosts_network_is_no_pod_of_a_rehearsal() {
    let setup = thin();
    setup.lab.pod_with("demo/well", json!({}));
    let manifest = json!({
        "apiVersion": "v1", "kind": "Pod", "spec": { "hostNetwork": true },
        "metadata": { "name": "on-host", "namespace": "demo",
                      "annotations": { "k8s.v1.cni.cncf.io/networks": "nowhere" } },
    });
    setup
        .lab
        .write("cluster/on-host.json", &manifest.to_string());
    let outcome = setup.take_over(&["--dry-run"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(outcome.stdout.contains("2 pods and"), "{outcome}");
}
