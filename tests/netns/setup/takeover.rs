//! `install --from-multus`: nobody is taken over who would fail, nothing is half done, and there
//! is a way back. The real Multus stands in `multus.rs`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use super::refusal::{Mount, refused};
use super::{CLUSTER, OURS, Setup};
use crate::lab::{Outcome, POD, real_plugins};

/// What Multus' file is called.
pub(super) const MULTUS: &str = "00-multus.conf";

/// A node with Multus (thin) in front of the cluster network.
pub(super) fn thin() -> Setup {
    let setup = Setup::new();
    let conf = json!({
        "cniVersion": "1.0.0", "name": "multus-cni-network", "type": "multus",
        "clusterNetwork": setup.lab.path("net.d").join(CLUSTER), "logLevel": "error",
    });
    setup.multus(&format!("{conf}\n"));
    setup
}

impl Setup {
    /// Writes Multus' configuration.
    pub(super) fn multus(&self, text: &str) {
        self.lab.write(&format!("net.d/{MULTUS}"), text);
    }

    /// `install --from-multus` with the lab's cluster.
    pub(super) fn take_over(&self, more: &[&str]) -> Outcome {
        let plugins = real_plugins().display().to_string();
        let mut arguments = vec!["--from-multus", "--node", "here", "--cni-path", &plugins];
        arguments.extend(more);
        self.install(&arguments)
    }

    /// The lab's pod selects what is not there.
    fn misguided(&self) {
        self.lab.selects("nowhere");
    }
}

#[test]
fn a_thin_configuration_gives_way_and_comes_back_byte_for_byte() {
    let setup = thin();
    setup
        .lab
        .definition("demo/a", &setup.lab.ptp("10.20.0.0/24"));
    setup.lab.selects("a");
    let before = setup.files();
    let outcome = setup.take_over(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(
        outcome.stderr.contains("1 pods and 2 networks"),
        "{outcome}"
    );
    assert_eq!(setup.first(), OURS);
    assert!(!setup.lab.path("net.d").join(MULTUS).exists());
    let conf = setup.conf(OURS);
    assert_eq!(
        conf["name"], "multus-cni-network",
        "the runtime's cache goes by it"
    );
    let ours = &conf["plugins"][0];
    assert_eq!(ours["namespaceIsolation"], false);
    assert_eq!(ours["undeclared"], "args");
    assert_eq!(ours["invalidAnnotation"], "fail", "as Multus");
    assert_eq!(ours["logLevel"], "error");
    setup.runs("add");
    assert_eq!(setup.lab.pod.links(), ["eth0", "net1"]);
    setup.runs("check");
    setup.runs("del");
    // A DaemonSet says so each time that it starts.
    let again = setup.take_over(&[]);
    assert_eq!(again.exit, 0, "{again}");
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(setup.files(), before);
    setup.lab.assert_nothing_left();
}

/// Multus refuses a pod whose annotation is invalid; so does what takes over, unless it is told
/// otherwise, and then the pods that would start without their networks are named all the same.
#[test]
fn a_pod_whose_annotation_would_be_ignored_stands_in_the_way() {
    let setup = thin();
    let lab = &setup.lab;
    lab.definition("demo/a", &lab.ptp("10.20.0.0/24"));
    let template = fs::read_to_string(lab.path("template.json")).unwrap();
    let mut ignoring: serde_json::Value = serde_json::from_str(&template).unwrap();
    ignoring["invalidAnnotation"] = json!("ignore");
    let ignoring = ignoring.to_string();
    for (annotation, words) in [
        (r#"[{"name":"a","ips":["10.20.0.300"]}]"#, "10.20.0.300"),
        (r#"[{"name":"a","bandwidth":{"rate":1}}]"#, "rate"),
        ("a,,a", "network 2"),
    ] {
        lab.selects(annotation);
        for template in [&template, &ignoring] {
            lab.write("template.json", template);
            let outcome = setup.take_over(&["--dry-run"]);
            assert_eq!(outcome.exit, 1, "{outcome}");
            for words in [words, "pod demo/web would fail", "1 pods would fail"] {
                assert!(outcome.stdout.contains(words), "{words}: {outcome}");
            }
        }
    }
    let empty = json!([{
        "name": "a", "interface": "", "mac": "", "ips": [], "portMappings": [], "bandwidth": {},
        "infiniband-guid": "",
    }]);
    lab.selects(&empty.to_string());
    lab.write("template.json", &template);
    let outcome = setup.take_over(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    setup.runs("add");
    assert_eq!(setup.lab.pod.links(), ["eth0", "net1"]);
    setup.runs("del");
}

/// Multus' DaemonSet takes the first configuration that is not its own for the cluster network's.
#[test]
fn a_configuration_of_multus_around_ours_gives_way_to_the_one_of_before() {
    let setup = thin();
    let before = setup.files();
    let original = fs::read_to_string(setup.lab.path("net.d").join(MULTUS)).unwrap();
    assert_eq!(setup.take_over(&[]).exit, 0);
    setup.multus(&original.replace(CLUSTER, OURS));
    setup
        .lab
        .write("net.d/01-multus.conf", &original.replace(CLUSTER, OURS));
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    let named = "01-multus.conf makes Multus delegate to jackfield, but `uninstall` removes jackfield's configuration";
    assert!(outcome.stderr.contains(named), "{outcome}");
    fs::remove_file(setup.lab.path("net.d/01-multus.conf")).unwrap();
    assert_eq!(setup.files(), before);
}

#[test]
fn in_a_container_pods_are_looked_up_where_the_host_says() {
    let setup = Setup::bare();
    let lab = &setup.lab;
    lab.definition("demo/a", &lab.ptp("10.20.0.0/24"));
    lab.selects("a");
    for folder in ["host/etc/cni/net.d", "host/opt/cni"] {
        fs::create_dir_all(lab.path(folder)).unwrap();
    }
    symlink(lab.path("cluster"), lab.path("host/etc/cluster")).unwrap();
    symlink(real_plugins(), lab.path("host/opt/cni/bin")).unwrap();
    let multus = json!({
        "cniVersion": "1.0.0", "name": "multus-cni-network", "type": "multus",
        "delegates": [{ "cniVersion": "1.0.0", "name": "a", "type": "bridge", "bridge": "cni0" }],
    });
    lab.write(&format!("host/etc/cni/net.d/{MULTUS}"), &multus.to_string());
    let template = lab.write("template.json", r#"{"manifestDir":"/etc/cluster"}"#);
    let (host, template) = (lab.path("host"), template.display().to_string());
    let outcome = lab
        .cli(&["install", "--host-root", &host.display().to_string()])
        .arguments(&[
            "--from-multus",
            "--dry-run",
            "--node",
            "here",
            "--conf",
            &template,
        ])
        .run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    let total = "1 pods and 2 networks were examined, 0 pods would fail";
    assert!(outcome.stdout.contains(total), "{outcome}");
}

#[test]
fn a_thick_configuration_with_its_daemons_words() {
    let setup = Setup::new();
    let network = setup.lab.path("net.d").join(CLUSTER);
    let conf = json!({
        "cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus-shim",
        "clusterNetwork": format!("/host{}", network.display()),
        "daemonSocketDir": "/run/multus", "logToStderr": true,
    });
    setup.multus(&conf.to_string());
    let daemon = json!({
        "chrootDir": "/hostroot", "cniConfigDir": "/host/etc/cni/net.d", "socketDir": "/host/run/multus",
        "confDir": "/somewhere", "globalNamespaces": "shared", "multusAutoconfigDir": "/host/etc/cni/net.d",
    });
    setup
        .lab
        .write("net.d/multus.d/daemon-config.json", &daemon.to_string());
    let before = setup.files();
    let outcome = setup.take_over(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    let conf = setup.conf(OURS);
    let ours = &conf["plugins"][0];
    assert_eq!(
        ours["clusterNetwork"],
        json!(network),
        "without the daemon's root"
    );
    assert_eq!(ours["globalNamespaces"], "shared");
    assert_eq!(
        conf["cniVersion"], "1.0.0",
        "the given configuration goes before"
    );
    assert!(ours.get("socketDir").is_none() && ours.get("chrootDir").is_none());
    setup.runs("add");
    setup.runs("del");
    // Its ConfigMap, as a file somewhere else.
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(setup.files(), before);
    fs::remove_dir_all(setup.lab.path("net.d/multus.d")).unwrap();
    let elsewhere = setup
        .lab
        .write("daemon.json", r#"{"globalNamespaces":"other"}"#);
    let elsewhere = elsewhere.display().to_string();
    let outcome = setup.take_over(&["--multus-daemon-config", &elsewhere]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(setup.conf(OURS)["plugins"][0]["globalNamespaces"], "other");
}

/// The container `install` of the DaemonSet: it starts with whatever its ConfigMap says, each time
/// that the node or the container does.
#[test]
fn what_multus_was_told_survives_every_start_of_the_daemonset() {
    let setup = thin();
    let mut multus = setup.conf(MULTUS);
    multus["globalNamespaces"] = json!("shared");
    multus["kubeconfig"] = json!("/etc/cni/net.d/multus.d/multus.kubeconfig");
    setup.multus(&multus.to_string());
    let before = setup.files();
    let outcome = setup.take_over(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    for (says, isolation, kubeconfig) in [
        (json!({}), false, true),
        (json!({}), false, true),
        (
            json!({ "verify": "warn", "name": "jackfield", "namespaceIsolation": true }),
            true,
            true,
        ),
        (json!({ "kubeconfig": null }), false, false),
        (json!({}), false, true),
    ] {
        setup.lab.write("template.json", &says.to_string());
        let watching = setup.watch(&[]);
        watching.says("installed");
        let conf = setup.conf(OURS);
        let ours = &conf["plugins"][0];
        assert_eq!(conf["name"], "multus-cni-network", "{says}");
        assert_eq!(ours["namespaceIsolation"], isolation, "{says}");
        assert_eq!(ours["undeclared"], "args", "{says}");
        assert_eq!(ours["globalNamespaces"], "shared", "{says}");
        assert_eq!(ours["logLevel"], "error", "{says}");
        assert_eq!(ours.get("kubeconfig").is_some(), kubeconfig, "{says}");
        assert_eq!(ours.get("verify"), says.get("verify"), "{says}");
        assert!(!watching.log().contains("repairing"), "{}", watching.log());
        // What is repaired is the same.
        fs::remove_file(setup.lab.path("net.d").join(OURS)).unwrap();
        let is_back = || setup.lab.path("net.d").join(OURS).exists();
        super::eventually("it is back", is_back, || watching.log());
        assert_eq!(setup.conf(OURS), conf, "{says}");
        assert_eq!(watching.end(), Some(0));
        forget_repairs(&setup);
    }
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(setup.files(), before);
}

/// Ten minutes pass.
fn forget_repairs(setup: &Setup) {
    let manifest = setup.lab.path("net.d/.jackfield/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut read: serde_json::Value = serde_json::from_str(&text).unwrap();
    read["repairs"] = json!([]);
    fs::write(manifest, read.to_string()).unwrap();
}

#[test]
fn one_that_takes_over_and_stays_says_the_same_each_time() {
    let setup = thin();
    let plugins = real_plugins().display().to_string();
    let flags = ["--from-multus", "--node", "here", "--cni-path", &plugins];
    let watching = setup.watch(&flags);
    watching.says("installed");
    assert_eq!(watching.end(), Some(0));
    let conf = setup.conf(OURS);
    assert_eq!(conf["plugins"][0]["namespaceIsolation"], false);
    let watching = setup.watch(&flags);
    watching.says("installed");
    setup.cluster_network("20-another.conflist", "another");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(!watching.log().contains("repairing"), "{}", watching.log());
    assert_eq!(watching.end(), Some(0));
    assert_eq!(setup.conf(OURS), conf);
    // Looking again changes nothing, whatever the words are by now.
    let mut words = setup.lab.conf().clone();
    words["verify"] = json!("warn");
    setup.lab.write("template.json", &words.to_string());
    let before = setup.files();
    let outcome = setup.take_over(&["--dry-run"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(outcome.stdout.contains("0 pods would fail"), "{outcome}");
    assert_eq!(setup.files(), before);
}

#[test]
fn a_dry_run_lists_who_would_fail_and_why_and_changes_nothing() {
    let setup = thin();
    setup
        .lab
        .definition("demo/unused", &json!({ "type": "nope" }));
    setup.misguided();
    setup.lab.pod_with("demo/well", json!({}));
    let before = setup.files();
    let outcome = setup.take_over(&["--dry-run"]);
    assert_eq!(outcome.exit, 1, "{outcome}");
    for line in [
        "pod demo/web would fail: network demo/nowhere",
        "(code 102)",
        "network demo/unused cannot be used: no binary named nope",
        "2 pods and 2 networks were examined, 1 pods would fail",
    ] {
        assert!(outcome.stdout.contains(line), "{line}: {outcome}");
    }
    assert!(!outcome.stdout.contains("demo/well"), "{outcome}");
    assert_eq!(setup.files(), before);
    // Without a dry run they stand in the way, unless somebody insists.
    refused(
        &setup.take_over(&[]),
        &["1 of this node's pods would fail", "--force"],
    );
    assert_eq!(setup.files(), before);
    setup.lab.selects("");
    let outcome = setup.take_over(&["--dry-run"]);
    assert_eq!(
        outcome.exit, 0,
        "an unused definition is nobody's failure: {outcome}"
    );
    assert_eq!(setup.files(), before);
    setup.misguided();
    let outcome = setup.take_over(&["--force"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(
        outcome.stderr.contains("pod demo/web would fail"),
        "{outcome}"
    );
    assert_eq!(setup.first(), OURS);
}

#[test]
fn a_cluster_that_does_not_answer() {
    let setup = thin();
    fs::rename(setup.lab.path("cluster"), setup.lab.path("away")).unwrap();
    let before = setup.files();
    let words = [
        "cannot find out whether pods would fail",
        "manifestDir",
        "--force",
    ];
    refused(&setup.take_over(&[]), &words);
    refused(&setup.take_over(&["--dry-run"]), &words);
    assert_eq!(setup.files(), before);
    let outcome = setup.take_over(&["--force"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
}

#[test]
fn keys_that_are_unknown_are_named_and_left_behind() {
    let setup = thin();
    let mut conf = setup.conf(MULTUS);
    conf["isDefaultGateway"] = json!(true);
    conf["retryDeleteOnError"] = json!(true);
    setup.multus(&conf.to_string());
    let outcome = setup.take_over(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    let line = "unknown key \"isDefaultGateway\" is not taken over";
    assert!(outcome.stderr.contains(line), "{outcome}");
    assert!(!outcome.stderr.contains("retryDeleteOnError"), "{outcome}");
    assert!(
        setup.conf(OURS)["plugins"][0]
            .get("isDefaultGateway")
            .is_none()
    );
}

#[test]
fn a_damaged_cache_is_named_and_stops_nobody() {
    let setup = thin();
    setup.lab.write("multus/0123abcd", "[{\"Bytes\":");
    let outcome = setup.take_over(&["--dry-run"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    for word in ["cache of Multus", "0123abcd", "delete the pod whose"] {
        assert!(outcome.stdout.contains(word), "{word}: {outcome}");
    }
    let outcome = setup.take_over(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
}

#[test]
fn two_that_are_first_none_at_all_or_a_broken_one() {
    let setup = thin();
    setup.cluster_network("00-a.conflist", "first");
    setup.refuses(
        |setup| setup.take_over(&[]),
        &["00-a.conflist comes before", MULTUS, "rename the file"],
    );
    let setup = Setup::new();
    setup.refuses(
        |setup| setup.take_over(&[]),
        &["no configuration of Multus", "--conf-dir"],
    );
    let list = json!({ "name": "m", "cniVersion": "1.0.0",
                       "plugins": [{ "type": "bridge" }, { "type": "multus" }] });
    setup.multus(&list.to_string());
    setup.refuses(
        |setup| setup.take_over(&[]),
        &[MULTUS, "not the first plugin", "Multus stays"],
    );
    let mut wrong = thin().conf(MULTUS);
    wrong["logOptions"] = json!(7);
    wrong["clusterNetwork"] = json!(setup.lab.path("net.d").join(CLUSTER));
    setup.multus(&wrong.to_string());
    setup.refuses(|setup| setup.take_over(&[]), &["logOptions", "correct"]);
    // Both of a node that had two come back.
    let setup = thin();
    let second = setup.lab.path("net.d/01-multus.conf");
    fs::copy(setup.lab.path("net.d").join(MULTUS), second).unwrap();
    let before = setup.files();
    assert_eq!(setup.take_over(&[]).exit, 0);
    assert_eq!(setup.first(), OURS);
    assert_eq!(setup.uninstall(&[]).exit, 0);
    assert_eq!(setup.files(), before);
}

#[test]
fn a_directory_that_is_missing_read_only_or_full() {
    let setup = thin();
    let away: PathBuf = setup.lab.path("away");
    fs::rename(setup.lab.path("net.d"), &away).unwrap();
    refused(
        &setup.take_over(&[]),
        &["net.d does not exist", "--conf-dir"],
    );
    fs::rename(&away, setup.lab.path("net.d")).unwrap();
    for folder in ["net.d", "cni-bin"] {
        let setup = thin();
        let _mounted = Mount::read_only(&setup.lab.path(folder));
        setup.refuses(
            |setup| setup.take_over(&[]),
            &[folder, "Read-only", "make it readable and writable"],
        );
        assert_eq!(setup.first(), MULTUS);
    }
    for folder in ["net.d", "cni-bin"] {
        let setup = thin();
        let kept: Vec<(PathBuf, Vec<u8>)> = setup.files();
        let at = setup.lab.path(folder);
        let _mounted = Mount::tmpfs(&at, "size=16m,mode=0755");
        for (path, bytes) in kept.iter().filter(|(path, _)| path.starts_with(&at)) {
            fs::write(path, bytes).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(path, mode).unwrap();
        }
        let _ = fs::write(at.join("filler"), vec![0; 16 << 20]);
        setup.refuses(
            |setup| setup.take_over(&[]),
            &[folder, "No space left", "free space there"],
        );
        assert_eq!(setup.first(), MULTUS);
    }
}

#[test]
fn a_downgrade() {
    let setup = thin();
    assert_eq!(setup.take_over(&[]).exit, 0);
    setup.is_of_release("99.0.0");
    setup.refuses(
        |setup| setup.take_over(&[]),
        &["jackfield 99.0.0", "--allow-downgrade"],
    );
}

#[test]
fn pods_that_run_keep_the_way_back_open() {
    let setup = thin();
    setup
        .lab
        .definition("demo/a", &setup.lab.ptp("10.20.0.0/24"));
    setup.lab.selects("a");
    assert_eq!(setup.take_over(&[]).exit, 0);
    setup.runs("add");
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(outcome.stderr.contains(POD), "{outcome}");
    assert_eq!(setup.first(), MULTUS, "new pods are Multus'");
    let outcome = setup.uninstall(&["--force"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(setup.lab.pod.links().is_empty());
    setup.lab.assert_nothing_left();
}

#[test]
fn flags_that_mean_nothing_without_it_are_wrong_usage() {
    let setup = Setup::new();
    for flags in [
        &["--dry-run"][..],
        &["--force"],
        &["--from-multus", "--dry-run", "--watch"],
    ] {
        let outcome = setup.command("install", flags).run();
        assert_eq!(outcome.exit, 2, "{outcome}");
    }
}
