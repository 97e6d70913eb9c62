//! `install --watch`: what others do to the runtime's directory, and what is done about it.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::{CLUSTER, OURS, Setup, Watching, eventually};

/// A node on which it watches and everything is right.
fn watched() -> (Setup, Watching) {
    let setup = Setup::new();
    let watching = setup.watch(&[]);
    watching.says("installed");
    (setup, watching)
}

fn is_there(setup: &Setup) -> bool {
    setup.lab.path("net.d").join(OURS).exists()
}

#[test]
fn what_is_removed_or_broken_is_put_back() {
    let (setup, watching) = watched();
    let ours = setup.lab.path("net.d").join(OURS);
    let text = fs::read(&ours).unwrap();
    fs::remove_file(&ours).unwrap();
    watching.says("repairing the installation (1 of at most 3 repairs within 10 minutes)");
    eventually("it is back", || is_there(&setup), || watching.log());
    fs::write(&ours, "{").unwrap();
    watching.says("was changed and is not a configuration");
    let program = setup.lab.path("cni-bin/jackfield");
    eventually(
        "it is right",
        || fs::read(&ours).unwrap() == text,
        || watching.log(),
    );
    fs::remove_file(&program).unwrap();
    watching.says("repairing the installation (3 of at most 3 repairs within 10 minutes)");
    eventually("the binary is back", || program.exists(), || watching.log());
    setup.runs("add");
    setup.runs("del");
    assert_eq!(watching.end(), Some(0));
}

/// As Cilium does with `cni.exclusive`: every other configuration is renamed, at once and again.
#[test]
fn who_renames_ours_is_answered_three_times_and_then_named() {
    let (setup, watching) = watched();
    let dir = setup.lab.path("net.d");
    let rename = || fs::rename(dir.join(OURS), dir.join(format!("{OURS}.cilium_bak"))).unwrap();
    for number in 1..=3 {
        rename();
        watching.says(&format!(
            "repairing the installation ({number} of at most 3"
        ));
        let bak = dir.join(format!("{OURS}.cilium_bak"));
        let is_back = || is_there(&setup) && !bak.exists();
        eventually("it is back", is_back, || watching.log());
    }
    rename();
    let (exit, log) = watching.gives_up();
    assert_eq!(exit, Some(1));
    let last = log.lines().last().unwrap();
    for words in [
        "was renamed to 00-jackfield.conflist.cilium_bak",
        "repaired 3 times within 10 minutes",
        "set cni.exclusive to false",
    ] {
        assert!(last.contains(words), "{words:?} in {last}");
    }
    assert_eq!(setup.first(), CLUSTER, "the node has its network");
    // A restart does not begin anew.
    let (exit, log) = setup.watch(&[]).gives_up();
    assert_eq!((exit, log.lines().count()), (Some(1), 1), "{log}");
    assert!(!is_there(&setup));
    // Ten minutes later it tries again.
    let manifest = setup.lab.path("net.d/.jackfield/manifest.json");
    let mut long_ago: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    let hour = |time: &serde_json::Value| json!(time.as_u64().unwrap() - 3600);
    let repairs: Vec<_> = long_ago["repairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(hour)
        .collect();
    long_ago["repairs"] = json!(repairs);
    fs::write(&manifest, long_ago.to_string()).unwrap();
    let watching = setup.watch(&[]);
    watching.says("repairing the installation (1 of at most 3");
    eventually("it is back", || is_there(&setup), || watching.log());
}

#[test]
fn the_cluster_network_is_followed_when_it_is_renamed() {
    let (setup, watching) = watched();
    let dir = setup.lab.path("net.d");
    fs::rename(dir.join(CLUSTER), dir.join("05-cluster.conflist")).unwrap();
    watching.says("05-cluster.conflist, but its key \"clusterNetwork\" is");
    let named = || setup.conf(OURS)["plugins"][0]["clusterNetwork"].clone();
    eventually(
        "it is followed",
        || named() == json!(dir.join("05-cluster.conflist")),
        || watching.log(),
    );
    setup.runs("add");
    setup.runs("del");
    // Gone altogether: ours stays, so that pods can be stopped, and it is said.
    fs::rename(dir.join("05-cluster.conflist"), setup.lab.path("kept")).unwrap();
    watching.says("pods wait until the configuration is back");
    assert!(is_there(&setup));
    let output = setup.runtime("status");
    assert!(!output.status.success());
    fs::rename(setup.lab.path("kept"), dir.join(CLUSTER)).unwrap();
    eventually(
        "it is followed",
        || named() == json!(dir.join(CLUSTER)),
        || watching.log(),
    );
    setup.runs("status");
}

/// The cluster network's own business: nobody undoes anything, so nothing is used up of the repairs.
#[test]
fn a_network_whose_file_is_renamed_as_it_is_costs_no_repair() {
    let (setup, watching) = watched();
    let dir = setup.lab.path("net.d");
    let mut name = CLUSTER.to_owned();
    let named = |setup: &Setup| setup.conf(OURS)["plugins"][0]["clusterNetwork"].clone();
    let follows = |to: &str, watching: &Watching| {
        let is_followed = || named(&setup) == json!(dir.join(to));
        eventually("it is followed", is_followed, || watching.log());
    };
    for number in 0..5 {
        let next = format!("{number}5-cluster.conflist");
        fs::rename(dir.join(&name), dir.join(&next)).unwrap();
        name = next;
        follows(&name, &watching);
    }
    // Written anew in its place, then renamed.
    setup.cluster_network(&name, "anew");
    std::thread::sleep(std::time::Duration::from_secs(5));
    fs::rename(dir.join(&name), dir.join("70-cluster.conflist")).unwrap();
    follows("70-cluster.conflist", &watching);
    assert!(!watching.log().contains("repairing"), "{}", watching.log());
    assert_eq!(watching.end(), Some(0));
    // While nobody watches.
    fs::rename(dir.join("70-cluster.conflist"), dir.join(CLUSTER)).unwrap();
    let watching = setup.watch(&[]);
    follows(CLUSTER, &watching);
    assert!(!watching.log().contains("repairing"), "{}", watching.log());
    // Another network is somebody's change.
    setup.cluster_network("05-other.conflist", "other");
    watching.says("repairing the installation (1 of at most 3");
    follows("05-other.conflist", &watching);
    setup.runs("add");
    setup.runs("del");
}

/// As Istio does: it appends itself to the runtime's first list, and watches that it stays.
#[test]
fn a_plugin_behind_ours_is_accepted() {
    let (setup, watching) = watched();
    let mut conf = setup.conf(OURS);
    let istio = json!({ "type": "istio-cni", "kubernetes": { "cni_bin_dir": "/opt/cni/bin" } });
    conf["plugins"].as_array_mut().unwrap().push(istio);
    setup.lab.write("elsewhere/istio", &conf.to_string());
    fs::rename(
        setup.lab.path("elsewhere/istio"),
        setup.lab.path("net.d").join(OURS),
    )
    .unwrap();
    watching
        .says("00-jackfield.conflist: other programs appended plugins, and jackfield accepts them: istio-cni");
    assert_eq!(setup.conf(OURS), conf);
    assert!(!watching.log().contains("repairing"), "{}", watching.log());
}

#[test]
fn whoever_comes_first_later_is_overtaken() {
    let (setup, watching) = watched();
    setup.cluster_network("00-early.conflist", "early");
    watching.says("00-early.conflist comes before 00-jackfield.conflist");
    eventually(
        "ours is first",
        || setup.first() == "0-jackfield.conflist" && !is_there(&setup),
        || watching.log(),
    );
    let named = setup.conf("0-jackfield.conflist")["plugins"][0]["clusterNetwork"].clone();
    assert_eq!(named, json!(setup.lab.path("net.d/00-early.conflist")));
    assert_eq!(watching.end(), Some(0));
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(setup.first(), "00-early.conflist");
}

#[test]
fn a_release_that_comes_with_another_template_is_no_repair() {
    let (setup, watching) = watched();
    assert_eq!(watching.end(), Some(0));
    let template = setup.lab.path("template.json");
    let text = fs::read_to_string(&template)
        .unwrap()
        .replacen('{', "{\"verify\":\"warn\",", 1);
    fs::write(template, text).unwrap();
    let watching = setup.watch(&[]);
    watching.says("installed");
    assert_eq!(setup.conf(OURS)["plugins"][0]["verify"], "warn");
    assert!(!watching.log().contains("repairing"), "{}", watching.log());
}

/// Somebody clears the runtime's directory, and the cluster network comes back.
#[test]
fn a_directory_that_was_made_anew_gets_ours_again() {
    let setup = Setup::new();
    // Injects a pause between the installation and the guard's first look.
    let mut paused = Command::new("strace");
    paused.args(["-D", "-qq", "-o", "/dev/null"]);
    paused.args(["-e", "trace=inotify_init1"]);
    paused.args(["-e", "inject=inotify_init1:delay_enter=3000000"]);
    paused.arg(env!("CARGO_BIN_EXE_jackfield"));
    let watching = setup.start_by(paused, &["--watch"]);
    watching.says("installed");
    let dir = setup.lab.path("net.d");
    let conf = setup.conf(OURS);
    fs::remove_dir_all(&dir).unwrap();
    watching.says("net.d does not exist");
    fs::create_dir(&dir).unwrap();
    setup.cluster_network(CLUSTER, "cluster");
    eventually("it is back", || is_there(&setup), || watching.log());
    assert_eq!(setup.conf(OURS), conf);
    watching.says("repairing the installation (1 of at most 3");
    // It is still its turn.
    let outcome = setup.command("uninstall", &[]).run();
    assert!(outcome.stderr.contains("is running there"), "{outcome}");
    assert_eq!(watching.end(), Some(0));
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(setup.first(), CLUSTER);
}

#[test]
fn a_signal_during_the_installation_ends_the_watch_after_it() {
    let setup = Setup::new();
    // Injects a pause between the creation of the lock file and the installation.
    let mut paused = Command::new("strace");
    paused.args(["-D", "-qq", "-o", "/dev/null", "-e", "trace=flock"]);
    paused.args(["-e", "inject=flock:delay_enter=3000000"]);
    paused.arg(env!("CARGO_BIN_EXE_jackfield"));
    let watching = setup.start_by(paused, &["--watch"]);
    let lock = setup.lab.path("net.d/.jackfield/lock");
    eventually("it has begun", || lock.exists(), || watching.log());
    assert!(!is_there(&setup));
    assert_eq!(watching.end(), Some(0));
    assert!(is_there(&setup));
}

#[test]
fn two_do_not_install_at_once() {
    let (setup, watching) = watched();
    for command in ["install", "uninstall"] {
        let outcome = setup.command(command, &[]).run();
        assert_eq!(outcome.exit, 1, "{outcome}");
        assert!(
            outcome
                .stderr
                .contains("another jackfield install or uninstall is running"),
            "{outcome}"
        );
    }
    assert!(is_there(&setup));
    assert_eq!(watching.end(), Some(0));
}
