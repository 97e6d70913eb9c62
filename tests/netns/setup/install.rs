//! What `install` puts on a node.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::{CLUSTER, OURS, Setup};
use crate::lab::{Call, real_plugins, run};

// clause: NPWG-1.3 §6.1.1 waits: in the directory that the cluster network shares
#[test]
fn binary_and_configuration_stand_in_front_of_the_cluster_network() {
    let setup = Setup::new();
    let outcome = setup.installed();
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome}");
    assert_eq!(setup.first(), OURS);
    let conf = setup.conf(OURS);
    let ours = &conf["plugins"][0];
    let file = setup.lab.path("net.d").join(CLUSTER);
    assert_eq!(ours["clusterNetwork"], json!(file));
    assert_eq!(ours["manifestDir"], json!(setup.lab.path("cluster")));
    assert_eq!(conf["cniVersions"][3], "1.1.0");
    let binary = setup.lab.path("cni-bin/jackfield");
    let same = fs::read(&binary).unwrap() == fs::read(env!("CARGO_BIN_EXE_jackfield")).unwrap();
    assert!(same);
    assert_eq!(
        fs::metadata(binary).unwrap().permissions().mode() & 0o777,
        0o755
    );
    // The runtime's own library takes it from there, STATUS included.
    setup
        .lab
        .definition("demo/a", &setup.lab.ptp("10.20.0.0/24"));
    setup.lab.selects("a");
    let file = setup.lab.path("net.d").join(OURS).display().to_string();
    for command in ["explain", "status"] {
        let pod = ["--pod", "demo/web"];
        let pod = if command == "explain" { &pod[..] } else { &[] };
        let outcome = setup
            .lab
            .cli(&[&[command, "--conf", &file], pod].concat())
            .run();
        assert_eq!(outcome.exit, 0, "the file as it lies there: {outcome}");
    }
    setup.runs("status");
    setup.runs("add");
    assert_eq!(setup.lab.pod.links(), ["eth0", "net1"]);
    setup.runs("check");
    setup.runs("del");
    setup.lab.assert_nothing_left();
}

// clause: NPWG-1.3 §6.1 readiness
// clause: NPWG-1.3 §6.1.1 waits
#[test]
fn it_waits_for_the_cluster_network_and_then_goes_on() {
    let setup = Setup::bare();
    let watching = setup.watch(&[]);
    watching.says("waiting for the cluster network's configuration");
    assert!(!setup.lab.path("net.d").join(OURS).exists());
    // Half a file is none.
    setup.lab.write("net.d/10-cluster.conflist", "{\"name\":");
    watching.says("10-cluster.conflist comes first and is not a configuration");
    assert!(!setup.lab.path("net.d").join(OURS).exists());
    setup.cluster_network(CLUSTER, "cluster");
    watching.says("installed");
    assert_eq!(setup.first(), OURS);
    assert_eq!(watching.end(), Some(0));
}

// Injects a fault: the watch is slow to begin.
#[test]
fn a_cluster_network_that_comes_before_it_is_watched_for_is_not_missed() {
    let setup = Setup::bare();
    let mut strace = Command::new("strace");
    strace
        .args(["--quiet=all", "--output=/dev/null"])
        .arg("--inject=inotify_init1:delay_enter=1s")
        .arg(env!("CARGO_BIN_EXE_jackfield"));
    let waiting = setup.start_by(strace, &["--wait", "1h"]);
    std::thread::sleep(Duration::from_millis(500));
    setup.cluster_network(CLUSTER, "cluster");
    let (exit, log) = waiting.gives_up();
    assert_eq!(exit, Some(0), "{log}");
    assert_eq!(setup.first(), OURS);
}

/// `install && touch done`, or an init container: what was not done is no success.
#[test]
fn one_that_is_told_to_end_while_it_waits_has_failed() {
    let setup = Setup::bare();
    let before = setup.files();
    let waiting = setup.start(&["--wait", "1h"]);
    waiting.says("waiting for the cluster network's configuration");
    let log = waiting.log.clone();
    assert_eq!(waiting.end(), Some(1));
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("installed nothing"), "{log}");
    assert_eq!(setup.files(), before);
    // Who stays is ended by whoever started it, and that is all.
    let watching = setup.watch(&[]);
    watching.says("waiting for the cluster network's configuration");
    assert_eq!(watching.end(), Some(0));
}

// clause: NPWG-1.3 §6.1.1 directory
#[test]
fn a_directory_of_its_own_holds_ours_alone() {
    let setup = Setup::new();
    let own = setup.lab.path("own.d").display().to_string();
    let shared = setup.lab.path("net.d").display().to_string();
    let bin = setup.lab.path("cni-bin").display().to_string();
    let template = setup.lab.path("template.json").display().to_string();
    let place = ["--conf-dir", &own, "--bin-dir", &bin];
    let install = [
        &["install"],
        &place[..],
        &["--cluster-conf-dir", &shared, "--conf", &template],
    ]
    .concat();
    let outcome = setup.lab.cli(&install).run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    let text = fs::read_to_string(setup.lab.path("own.d").join(OURS)).unwrap();
    assert!(text.contains(&format!("{shared}/{CLUSTER}")), "{text}");
    assert_eq!(setup.first(), CLUSTER, "the shared one is as it was");
    // A runtime that reads it keeps a network when ours goes.
    let outcome = setup.lab.cli(&[&["uninstall"], &place[..]].concat()).run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(outcome.stderr.contains("copied "), "{outcome}");
    let copy = fs::read(setup.lab.path("own.d").join(CLUSTER)).unwrap();
    assert_eq!(
        copy,
        fs::read(setup.lab.path("net.d").join(CLUSTER)).unwrap()
    );
    assert_eq!(fs::read_dir(setup.lab.path("own.d")).unwrap().count(), 1);
}

#[test]
fn in_a_container_the_hosts_directories_are_below_its_root() {
    let setup = Setup::bare();
    let lab = &setup.lab;
    for folder in ["host/etc/cni/net.d", "host/opt/cni/bin"] {
        fs::create_dir_all(lab.path(folder)).unwrap();
    }
    lab.write(
        "host/etc/cni/net.d/10-a.conf",
        r#"{"cniVersion":"1.0.0","name":"a","type":"bridge"}"#,
    );
    let host = lab.path("host").display().to_string();
    let outcome = lab.cli(&["install", "--host-root", &host]).run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    let text = fs::read_to_string(lab.path("host/etc/cni/net.d").join(OURS)).unwrap();
    assert!(
        text.contains("\"clusterNetwork\": \"/etc/cni/net.d/10-a.conf\""),
        "{text}"
    );
    assert!(lab.path("host/opt/cni/bin/jackfield").exists());
    let outcome = lab.cli(&["uninstall", "--host-root", &host]).run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(!lab.path("host/opt/cni/bin/jackfield").exists());
}

#[test]
fn again_changes_nothing_and_another_template_replaces_the_keys() {
    let mut setup = Setup::new();
    setup.installed();
    let inode = |setup: &Setup| {
        fs::metadata(setup.lab.path("net.d").join(OURS))
            .unwrap()
            .ino()
    };
    let (files, before) = (setup.files(), inode(&setup));
    setup.installed();
    assert_eq!(
        (setup.files(), inode(&setup)),
        (files, before),
        "not even written anew"
    );
    setup.lab.configure("verify", json!("warn"));
    setup
        .lab
        .write("template.json", &setup.lab.conf().to_string());
    setup.installed();
    assert_eq!(setup.conf(OURS)["plugins"][0]["verify"], "warn");
}

#[test]
fn what_istio_appended_stays_through_an_upgrade() {
    let setup = Setup::new();
    setup.installed();
    let mut conf = setup.conf(OURS);
    conf["plugins"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "type": "istio-cni", "kubernetes": {} }));
    setup
        .lab
        .write("net.d/00-jackfield.conflist", &conf.to_string());
    let other = setup.lab.path("template.json");
    let text = fs::read_to_string(&other)
        .unwrap()
        .replacen('{', "{\"verify\":\"warn\",", 1);
    fs::write(other, text).unwrap();
    setup.installed();
    let conf = setup.conf(OURS);
    assert_eq!(conf["plugins"][0]["verify"], "warn");
    assert_eq!(conf["plugins"][1]["type"], "istio-cni");
}

#[test]
fn a_configuration_made_by_hand_is_taken_as_it_is() {
    let setup = Setup::new();
    let mut by_hand = setup.lab.conf().clone();
    by_hand["clusterNetwork"] = json!(setup.lab.path("net.d").join(CLUSTER));
    setup
        .lab
        .write("net.d/00-jackfield.conf", &by_hand.to_string());
    let before = setup.files();
    let outcome = setup.command("install", &["--wait", "0s"]).run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(setup.first(), "00-jackfield.conf");
    assert_eq!(setup.conf("00-jackfield.conf"), by_hand);
    setup.runs("add");
    setup.runs("del");
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(setup.files(), before);
}

/// A plugin that runs while its binary is replaced goes on; opening it for writing would be
/// refused ("text file busy").
#[test]
fn the_binary_of_a_running_plugin_is_replaced() {
    let setup = Setup::new();
    let lab = &setup.lab;
    let program = lab.path("cni-bin/jackfield");
    // Not the same bytes, and runs all the same.
    let mut other = fs::read(env!("CARGO_BIN_EXE_jackfield")).unwrap();
    other.extend_from_slice(b"another release");
    // Another process writes the program. Otherwise a child that another test starts meanwhile could
    // still have it open for writing, and the kernel would refuse to run it.
    let written = lab.write("other-release", "");
    fs::write(&written, &other).unwrap();
    run(
        "cp",
        &[written.to_str().unwrap(), program.to_str().unwrap()],
    );
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    lab.recorder(
        "slow",
        "ptp",
        "touch $LAB/log/runs; while [ ! -e $LAB/log/go ]; do sleep 0.02; done",
    );
    let mut slow = lab.ptp("10.20.0.0/24");
    slow["type"] = json!("slow");
    lab.definition("demo/slow", &slow);
    lab.selects("slow");
    let mut conf = lab.conf().clone();
    conf["clusterNetwork"] = json!(lab.path("net.d").join(CLUSTER));
    let path = format!("{}:{}", lab.path("bin").display(), real_plugins().display());
    let call = |verb: &str| -> Call {
        lab.plugin(verb)
            .program(&program)
            .env("CNI_PATH", &path)
            .stdin(conf.to_string().as_bytes())
    };
    std::thread::scope(|scope| {
        let add = scope.spawn(|| call("ADD").run());
        super::eventually(
            "a running plugin",
            || lab.path("log/runs").exists(),
            String::new,
        );
        setup.installed();
        assert_ne!(fs::read(&program).unwrap(), other);
        fs::write(lab.path("log/go"), "").unwrap();
        add.join().unwrap().success();
    });
    let outcome = call("DEL").run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(outcome.took < Duration::from_secs(20));
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(
        fs::read(&program).unwrap(),
        other,
        "what was there before is back"
    );
}

#[test]
fn completions_and_the_manual_know_every_command() {
    let setup = Setup::bare();
    for command in [
        &["completions", "bash"][..],
        &["completions", "zsh"],
        &["man"],
    ] {
        let outcome = setup.lab.cli(command).run();
        assert_eq!(
            (outcome.exit, outcome.stderr.as_str()),
            (0, ""),
            "{outcome}"
        );
        for word in ["install", "uninstall", "attach", "cluster-conf-dir"] {
            let found = outcome.stdout.replace('\\', "");
            assert!(found.contains(word), "{command:?} lacks {word}");
        }
    }
}
