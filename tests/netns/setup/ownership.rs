//! What is ours and what is others', however it came to look like the other.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use serde_json::json;

use super::refusal::refused;
use super::{CLUSTER, OURS, Setup};

#[track_caller]
fn succeeded(outcome: &crate::lab::Outcome) {
    assert_eq!(outcome.exit, 0, "{outcome}");
}

/// Whatever has our name already, if it is a network it stays, and ours comes before it.
#[test]
fn a_network_of_our_name() {
    let setup = Setup::new();
    let network = setup.lab.path("net.d").join(CLUSTER);
    let ours = setup.lab.path("net.d").join(OURS);
    fs::rename(&network, &ours).unwrap();
    let before = fs::read(&ours).unwrap();
    setup.installed();
    assert_eq!(setup.first(), "0-jackfield.conflist");
    let conf = setup.conf("0-jackfield.conflist");
    assert_eq!(conf["plugins"][0]["clusterNetwork"], json!(ours));
    setup.installed();
    assert_eq!(setup.first(), "0-jackfield.conflist");
    succeeded(&setup.uninstall(&[]));
    assert_eq!(fs::read(&ours).unwrap(), before);
    assert_eq!(setup.first(), OURS);

    // Ours overwritten by somebody's.
    fs::rename(&ours, &network).unwrap();
    setup.installed();
    fs::copy(&network, &ours).unwrap();
    setup.installed();
    assert_eq!(setup.first(), "0-jackfield.conflist");
    succeeded(&setup.uninstall(&[]));
    assert_eq!(fs::read(&ours).unwrap(), before);
    assert_eq!(fs::read(&network).unwrap(), before);
}

#[test]
fn a_manifest_that_is_gone_loses_nothing_of_what_was_replaced() {
    let setup = Setup::new();
    setup
        .lab
        .write("net.d/00-jackfield.conflist", "{\"user\":1}");
    setup.installed();
    let folder = setup.lab.path("net.d/.jackfield");
    fs::write(folder.join("manifest.json"), "{").unwrap();
    refused(
        &setup.uninstall(&[]),
        &["manifest.json", "restore the file"],
    );
    fs::remove_file(folder.join("manifest.json")).unwrap();
    let kept = folder.join("before/0-00-jackfield.conflist");
    let named = kept.display().to_string();
    for outcome in [setup.install(&[]), setup.uninstall(&[])] {
        refused(
            &outcome,
            &[
                &named,
                "is the only copy of a replaced file",
                "every other file there to the directory of --conf-dir",
            ],
        );
    }
    // As it says.
    fs::rename(&kept, setup.lab.path("net.d").join(OURS)).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    setup.installed();
    succeeded(&setup.uninstall(&[]));
    let user = fs::read_to_string(setup.lab.path("net.d").join(OURS)).unwrap();
    assert_eq!(user, "{\"user\":1}");

    // Where nothing was replaced, an installation knows its own.
    let setup = Setup::new();
    setup.installed();
    let folder = setup.lab.path("net.d/.jackfield");
    fs::remove_file(folder.join("manifest.json")).unwrap();
    refused(
        &setup.uninstall(&[]),
        &[
            "manifest",
            "run `install` again; only then can you uninstall",
        ],
    );
    setup.installed();
    succeeded(&setup.uninstall(&[]));
    assert_eq!(setup.first(), CLUSTER);
    assert!(!setup.lab.path("cni-bin/jackfield").exists());
}

#[test]
fn a_directory_by_two_names_is_one() {
    let setup = Setup::new();
    std::os::unix::fs::symlink(setup.lab.path("net.d"), setup.lab.path("link")).unwrap();
    let path = |name: &str| setup.lab.path(name).display().to_string();
    let (link, bin, template) = (path("link"), path("cni-bin"), path("template.json"));
    let install = [
        "install",
        "--conf-dir",
        &link,
        "--bin-dir",
        &bin,
        "--conf",
        &template,
    ];
    succeeded(&setup.lab.cli(&install).run());
    setup.installed();
    succeeded(&setup.uninstall(&[]));
    assert_eq!(setup.first(), CLUSTER);
    assert!(!setup.lab.path("net.d").join(OURS).exists());
}

/// A container is told the host's directories as they are called, and resolves no links.
#[test]
fn what_a_manifest_names_by_links_is_put_back() {
    let setup = Setup::new();
    setup
        .lab
        .write("net.d/00-jackfield.conflist", "{\"user\":1}");
    setup.installed();
    let path = |name: &str| setup.lab.path(name).display().to_string();
    std::os::unix::fs::symlink(path("net.d"), path("link")).unwrap();
    let manifest = setup.lab.path("net.d/.jackfield/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let linked = text.replace(
        &format!("{}/", path("net.d")),
        &format!("{}/", path("link")),
    );
    assert_ne!(linked, text);
    fs::write(&manifest, linked).unwrap();
    succeeded(&setup.uninstall(&[]));
    let user = fs::read_to_string(setup.lab.path("net.d").join(OURS)).unwrap();
    assert_eq!(user, "{\"user\":1}");
}

/// The host follows the links of its directories, and a container has what they lead to by the name
/// that it was told. Whoever installs, installs again and uninstalls, it is one installation.
#[test]
fn a_directory_of_plugins_that_is_a_link_is_one_for_host_and_container() {
    for calls in ["HHH", "HCH", "CHH", "CCH", "HCC", "CHC", "HHC"] {
        let setup = Setup::new();
        let lab = &setup.lab;
        let path = |name: &str| lab.path(name).display().to_string();
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(path(to), at).unwrap();
        link("cni-bin", &path("plugins"));
        let mounted = |name: &str| format!("{}{}", path("host"), path(name));
        fs::create_dir_all(lab.path("host").join(path("").trim_matches('/'))).unwrap();
        link("net.d", &mounted("net.d"));
        link("cni-bin", &mounted("plugins"));
        let before = setup.files();
        let roots = [("H", "/".to_owned()), ("C", path("host"))];
        let (conf_dir, bin_dir, template) = (path("net.d"), path("plugins"), path("template.json"));
        for (number, call) in calls.chars().enumerate() {
            let root = &roots.iter().find(|(who, _)| who.contains(call)).unwrap().1;
            let (command, more) = match number {
                0 | 1 => ("install", vec!["--conf", template.as_str()]),
                _ => ("uninstall", vec![]),
            };
            let place = [
                "--conf-dir",
                &conf_dir,
                "--bin-dir",
                &bin_dir,
                "--host-root",
                root,
            ];
            let arguments = [&[command], &place[..], &more[..]].concat();
            let outcome = lab.cli(&arguments).run();
            assert_eq!(outcome.exit, 0, "{calls}: {outcome}");
        }
        let names: Vec<_> = setup.files().into_iter().map(|(path, _)| path).collect();
        assert!(setup.files() == before, "{calls}: {names:?}");
    }
}

/// Pods' records are looked for where the configuration says.
#[test]
fn a_journal_that_is_to_move_from_under_its_pods() {
    let mut setup = Setup::new();
    setup.installed();
    setup.runs("add");
    setup
        .lab
        .configure("journalDir", json!("/run/jackfield/elsewhere"));
    let conf = setup.lab.conf().to_string();
    setup.lab.write("template.json", &conf);
    setup.refuses(
        |setup| setup.install(&[]),
        &[
            "journalDir would become /run/jackfield/elsewhere",
            "1 sandboxes",
            "until the pods of these sandboxes are gone",
        ],
    );
    setup.runs("del");
    setup.installed();
}

#[test]
fn a_strangers_file_comes_back_as_his_and_runs_as_no_other_user() {
    let setup = Setup::new();
    let path = setup.lab.write("cni-bin/jackfield", "#!/bin/sh\nid -u\n");
    chown(&path, Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    setup.installed();
    assert_eq!(setup.uninstall(&[]).exit, 0);
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.uid(), found.gid()), (65534, 65534));
    assert_eq!(found.mode() & 0o7777, 0o755);
}

#[test]
fn who_can_read_the_directory_keeps_nobody_from_installing() {
    let setup = Setup::new();
    let dir = fs::File::open(setup.lab.path("net.d")).unwrap();
    dir.lock().unwrap();
    setup.installed();
    assert_eq!(setup.uninstall(&[]).exit, 0);
    assert!(!setup.lab.path("net.d/.jackfield").exists());
}

#[test]
fn what_is_no_file_in_a_files_place_is_named_at_once() {
    let setup = Setup::new();
    for file in ["net.d/.jackfield/manifest.json", "cni-bin/jackfield"] {
        let path = setup.lab.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        crate::lab::run("mkfifo", &[&path.display().to_string()]);
        let outcome = setup.install(&[]);
        assert_eq!(outcome.exit, 1, "{outcome}");
        for words in [path.to_str().unwrap(), "not a regular file"] {
            assert!(outcome.stderr.contains(words), "{words}: {outcome}");
        }
        fs::remove_file(&path).unwrap();
    }
}
