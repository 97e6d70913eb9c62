//! `uninstall`: the node has what it had, and no pod is stranded.

use std::fs;

use super::{CLUSTER, OURS, Setup};

/// A node with a pod on two networks.
fn attached() -> Setup {
    let setup = Setup::new();
    setup.installed();
    setup
        .lab
        .definition("demo/a", &setup.lab.ptp("10.20.0.0/24"));
    setup.lab.selects("a");
    setup.runs("add");
    setup
}

#[test]
fn everything_is_as_it_was_byte_for_byte() {
    let setup = Setup::new();
    setup
        .lab
        .write("cni-bin/jackfield", "#!/bin/sh\n# somebody else's\n");
    let before = setup.files();
    setup.installed();
    setup.runs("add");
    setup.runs("del");
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(setup.files(), before);
    assert!(!setup.lab.path("journal").exists());
    let again = setup.uninstall(&[]);
    assert_eq!(again.exit, 0, "{again}");
    assert!(again.stderr.contains("nothing is installed"), "{again}");
}

/// Another program may take the path of the binary after the installation.
#[test]
fn another_programs_binary_is_not_replaced_by_an_earlier_one() {
    let setup = Setup::new();
    setup.lab.write("cni-bin/jackfield", "earlier");
    setup.installed();
    let program = setup.lab.path("cni-bin/jackfield");
    fs::remove_file(&program).unwrap();
    setup.lab.write("cni-bin/jackfield", "another");
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(fs::read_to_string(&program).unwrap(), "another");
    assert!(outcome.stderr.contains("cni-bin/jackfield"), "{outcome}");
    // If the path is free, the earlier program returns to it.
    fs::write(&program, "earlier").unwrap();
    setup.installed();
    fs::remove_file(&program).unwrap();
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert_eq!(fs::read_to_string(&program).unwrap(), "earlier");
}

#[test]
fn a_pod_that_runs_keeps_binary_and_journal_until_it_is_gone() {
    let mut setup = attached();
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 1, "{outcome}");
    for words in ["demo/web", "stay for them", "--force"] {
        assert!(outcome.stderr.contains(words), "{words:?}: {outcome}");
    }
    assert_eq!(
        setup.first(),
        CLUSTER,
        "new pods get the cluster network alone"
    );
    assert!(setup.lab.path("cni-bin/jackfield").exists());
    setup.finds(
        "installation",
        &["an uninstall has begun", "uninstall` again"],
    );
    assert_eq!(setup.lab.pod.links(), ["eth0", "net1"], "it lives on");
    // The runtime ends it by the cluster network, which knows nothing of net1.
    setup.runs("del");
    setup.lab.renew_pod();
    assert_eq!(setup.lab.leftovers().with("ipam").len(), 1, "net1's lease");
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(outcome.stderr.contains("detached cnitool-"), "{outcome}");
    setup.lab.assert_nothing_left();
    assert!(!setup.lab.path("cni-bin/jackfield").exists());
    assert!(!setup.lab.path("journal").exists());
    assert!(!setup.lab.path("net.d/.jackfield").exists());
}

// Injects a fault: a record is damaged.
#[test]
fn a_damaged_record_keeps_everything_until_its_pod_is_deleted() {
    let setup = attached();
    let mut records = fs::read_dir(setup.lab.path("journal/sandboxes")).unwrap();
    let record = records.next().unwrap().unwrap().path();
    let before = setup.files();
    for damaged in ["junk", ""] {
        let text = fs::read(&record).unwrap();
        fs::write(&record, damaged).unwrap();
        let outcome = setup.uninstall(&[]);
        assert_eq!(outcome.exit, 1, "{outcome}");
        for words in [
            record.to_str().unwrap(),
            "delete the pod of each damaged record",
            "`uninstall` has changed nothing",
        ] {
            assert!(outcome.stderr.contains(words), "{words:?}: {outcome}");
        }
        assert_eq!(setup.files(), before);
        fs::write(&record, text).unwrap();
    }
    fs::write(&record, "junk").unwrap();
    let mut conf = setup.lab.conf().clone();
    conf["journalDir"] = serde_json::json!(setup.lab.path("elsewhere"));
    setup.lab.write("template.json", &conf.to_string());
    let outcome = setup.install(&[]);
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(
        outcome.stderr.contains("1 sandboxes are on record"),
        "{outcome}"
    );
    // Nor once it is put aside.
    let checked = setup.runtime("check");
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(
        !checked.status.success() && said.contains("its record was damaged"),
        "{said}"
    );
    assert_eq!(setup.uninstall(&[]).exit, 1);
    setup.runs("del");
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    setup.lab.assert_nothing_left();
}

#[test]
fn a_debt_is_settled_although_its_pod_is_still_there() {
    let setup = attached();
    let ptp = setup.lab.path("cni-bin/ptp");
    fs::rename(&ptp, setup.lab.path("ptp")).unwrap();
    assert!(!setup.runtime("del").status.success());
    fs::rename(setup.lab.path("ptp"), ptp).unwrap();
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    setup.lab.assert_nothing_left();
}

#[test]
fn by_force_pods_that_run_are_detached_first() {
    let setup = attached();
    let outcome = setup.uninstall(&["--force"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(setup.lab.pod.links().is_empty());
    setup.lab.assert_nothing_left();
    assert!(!setup.lab.path("cni-bin/jackfield").exists());
}

#[test]
fn what_cannot_be_detached_is_named_and_keeps_the_journal() {
    let setup = attached();
    // A fault: the plugin is gone.
    let ptp = setup.lab.path("cni-bin/ptp");
    fs::rename(&ptp, setup.lab.path("ptp")).unwrap();
    let outcome = setup
        .command("uninstall", &["--force", "--cni-path", "/nonexistent"])
        .run();
    assert_eq!(outcome.exit, 1, "{outcome}");
    for words in ["no binary named ptp", "the journal stay"] {
        assert!(outcome.stderr.contains(words), "{words:?}: {outcome}");
    }
    assert_eq!(setup.first(), CLUSTER);
    fs::rename(setup.lab.path("ptp"), ptp).unwrap();
    let outcome = setup.uninstall(&["--force"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    setup.lab.assert_nothing_left();
}

#[test]
fn a_configuration_that_somebody_took_away_is_no_obstacle() {
    let setup = attached();
    fs::remove_file(setup.lab.path("net.d").join(OURS)).unwrap();
    let outcome = setup.uninstall(&["--force"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(setup.lab.pod.links().is_empty());
    setup.lab.assert_nothing_left();
}

/// Neither the configuration nor the copy beside the manifest is there to say where the journal is.
#[test]
fn without_any_configuration_the_journal_is_where_it_usually_is() {
    let setup = attached();
    let lab = &setup.lab;
    for folder in ["host/etc/cni/net.d", "host/opt/cni/bin", "host/var/lib"] {
        fs::create_dir_all(lab.path(folder)).unwrap();
    }
    let network = r#"{"cniVersion":"1.0.0","name":"a","type":"bridge"}"#;
    lab.write("host/etc/cni/net.d/10-a.conf", network);
    let host = lab.path("host").display().to_string();
    let outcome = lab.cli(&["install", "--host-root", &host]).run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    fs::rename(lab.path("journal"), lab.path("host/var/lib/jackfield")).unwrap();
    fs::remove_file(lab.path("host/etc/cni/net.d").join(OURS)).unwrap();
    fs::remove_file(lab.path("host/etc/cni/net.d/.jackfield/conf.json")).unwrap();
    let outcome = lab.cli(&["uninstall", "--host-root", &host]).run();
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(
        outcome.stderr.contains("1 sandboxes are on record"),
        "{outcome}"
    );
    assert!(lab.path("host/opt/cni/bin/jackfield").exists());
    fs::rename(lab.path("host/var/lib/jackfield"), lab.path("journal")).unwrap();
    setup.runs("del");
}

#[test]
fn in_a_container_sandboxes_on_record_are_left_to_the_host() {
    let setup = attached();
    // The whole host is below the root, as it would be mounted.
    let outcome = setup
        .command("uninstall", &["--host-root", "/proc/self/root/"])
        .run();
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(outcome.stderr.contains("on the host itself"), "{outcome}");
    assert!(setup.lab.path("cni-bin/jackfield").exists());
    let outcome = setup.uninstall(&["--force"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
}

/// Injects a fault: a file cannot be read for a moment. A configuration that stayed would name a
/// binary that is gone.
#[test]
fn an_uninstall_that_cannot_read_a_file_leaves_it_only_if_it_fails() {
    for file in [format!("net.d/{OURS}"), "cni-bin/jackfield".to_owned()] {
        let mut failed = 0;
        for opening in 1..=3 {
            let setup = Setup::new();
            let before = setup.files();
            setup.installed();
            let path = setup.lab.path(&file).display().to_string();
            let fault = format!("--inject=?open,?openat:error=EIO:when={opening}");
            let strace = ["strace", "-qq", "-o", "/dev/null", "-P", &path, &fault];
            let outcome = setup.command("uninstall", &[]).under(&strace).run();
            if outcome.exit != 0 {
                failed += 1;
                assert!(outcome.stderr.contains(&path), "{file}: {outcome}");
                let again = setup.uninstall(&[]);
                assert_eq!(again.exit, 0, "{file}: {again}");
            }
            assert_eq!(setup.files(), before, "{file}, {opening}: {outcome}");
        }
        assert!(failed > 0, "{file}");
    }
}
