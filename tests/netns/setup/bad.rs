//! What stands in the way of an installation is one line, and changes nothing.

use std::fs;

use serde_json::json;

use super::refusal::{Mount, refused};
use super::{CLUSTER, OURS, Setup};

#[test]
fn a_directory_that_is_missing() {
    let setup = Setup::bare();
    fs::remove_dir(setup.lab.path("net.d")).unwrap();
    refused(&setup.install(&[]), &["net.d does not exist", "--conf-dir"]);
    let setup = Setup::new();
    fs::remove_dir_all(setup.lab.path("cni-bin")).unwrap();
    let before = fs::read_dir(setup.lab.path("net.d")).unwrap().count();
    refused(
        &setup.install(&[]),
        &["cni-bin/jackfield", "No such file", "create it, or name"],
    );
    assert_eq!(
        fs::read_dir(setup.lab.path("net.d")).unwrap().count(),
        before
    );
}

#[test]
fn a_directory_that_is_read_only() {
    for folder in ["net.d", "cni-bin"] {
        let setup = Setup::new();
        let _mounted = Mount::read_only(&setup.lab.path(folder));
        setup.refuses(
            |setup| setup.install(&[]),
            &[folder, "Read-only", "make it readable and writable"],
        );
    }
}

#[test]
fn a_directory_that_is_full() {
    for folder in ["net.d", "cni-bin"] {
        let setup = Setup::bare();
        let _mounted = Mount::tmpfs(&setup.lab.path(folder), "size=64k,mode=0755");
        // Where the mount is now, the network's file has to be.
        let text = setup.lab.write("elsewhere/new", "x");
        fs::write(text, "").unwrap();
        let network = r#"{"cniVersion":"1.0.0","name":"a","type":"bridge"}"#;
        setup.lab.write(
            "net.d/10-cluster.conflist",
            &network
                .replace("\"type\"", "\"plugins\":[{\"type\"")
                .replace('}', "}]}"),
        );
        let fill = setup.lab.path(folder).join("filler");
        let _ = fs::write(&fill, vec![0; 1 << 20]);
        setup.refuses(
            |setup| setup.install(&[]),
            &[folder, "No space left", "free space there"],
        );
        assert_eq!(setup.first(), CLUSTER);
    }
}

// clause: NPWG-1.3 §6.1 readiness: without the cluster network nothing is written
#[test]
fn a_cluster_network_that_never_comes() {
    let setup = Setup::bare();
    setup.refuses(
        |setup| setup.install_within("300ms", &[]),
        &[
            "waited 300ms",
            "net.d: there is none",
            "--cluster-conf-dir",
            "nothing was written",
        ],
    );
    // Nor one that is broken, or that would have us call ourselves.
    for (text, words) in [
        ("{", "10-cluster.conflist comes first"),
        (r#"{"name":"a","plugins":[]}"#, "no plugin"),
        (
            r#"{"name":"a","plugins":[{"type":"bridge"},{"type":"jackfield"}]}"#,
            "call itself",
        ),
    ] {
        setup.lab.write("net.d/10-cluster.conflist", text);
        setup.refuses(|setup| setup.install(&[]), &[words, "nothing was written"]);
    }
}

#[test]
fn a_cluster_network_that_is_named_and_not_there() {
    let setup = Setup::new();
    let before = setup.files();
    let missing = setup.lab.path("net.d/20-missing.conflist");
    for (text, words) in [
        (None, "does not exist"),
        (Some("{"), "which is not a configuration"),
    ] {
        if let Some(text) = text {
            fs::write(&missing, text).unwrap();
        }
        let mut conf = setup.lab.conf().clone();
        conf["clusterNetwork"] = missing.display().to_string().into();
        setup.lab.write("template.json", &conf.to_string());
        refused(
            &setup.install(&[]),
            &[
                "clusterNetwork names",
                "20-missing.conflist",
                words,
                "nothing was written",
            ],
        );
        assert_eq!(setup.first(), CLUSTER, "the node has its network");
    }
    fs::remove_file(&missing).unwrap();
    assert_eq!(setup.files(), before);
    // It is waited for as any other.
    let watching = setup.watch(&[]);
    watching.says("20-missing.conflist does not exist");
    setup.cluster_network("20-missing.conflist", "late");
    watching.says("so jackfield delegates to");
    assert_eq!(setup.first(), OURS);
}

/// The node had a network, and would have none.
#[test]
fn a_cluster_network_that_is_ourselves() {
    let setup = Setup::new();
    let before = setup.files();
    let dir = setup.lab.path("net.d").display().to_string();
    let ours = format!("{dir}/{OURS}");
    let inline = serde_json::json!([{ "cniVersion": "1.0.0", "name": "x", "type": "jackfield" }]);
    for keys in [
        serde_json::json!({ "clusterNetwork": ours }),
        serde_json::json!({ "clusterNetwork": dir }),
        serde_json::json!({ "clusterNetwork": "jackfield", "name": "jackfield", "confDir": dir }),
        serde_json::json!({ "delegates": inline }),
    ] {
        let mut conf = setup.lab.conf().clone();
        for (key, value) in keys.as_object().unwrap() {
            conf[key] = value.clone();
        }
        setup.lab.write("template.json", &conf.to_string());
        refused(&setup.install(&[]), &["would call itself", "in this key"]);
        assert_eq!(setup.files(), before, "{keys}");
    }
}

#[test]
fn two_that_want_to_be_first() {
    let setup = Setup::new();
    setup.cluster_network("!first.conflist", "first");
    setup.refuses(
        |setup| setup.install(&[]),
        &["!first.conflist comes before", "rename it"],
    );
    fs::remove_file(setup.lab.path("net.d/!first.conflist")).unwrap();
    setup.lab.write(
        "net.d/00-multus.conf",
        r#"{"name":"m","type":"multus","clusterNetwork":"x"}"#,
    );
    setup.refuses(
        |setup| setup.install(&[]),
        &[
            "00-multus.conf is the configuration of Multus",
            "--from-multus",
        ],
    );
}

#[test]
fn a_downgrade() {
    let setup = Setup::new();
    setup.installed();
    setup.is_of_release("99.0.0-rc.1");
    setup.refuses(
        |setup| setup.install(&[]),
        &[
            "jackfield 99.0.0-rc.1",
            env!("CARGO_PKG_VERSION"),
            "--allow-downgrade",
        ],
    );
    let outcome = setup.install(&["--allow-downgrade"]);
    assert_eq!(outcome.exit, 0, "{outcome}");
}

/// A fault: the node's own plugin says that it is for another machine.
#[test]
fn an_image_for_another_architecture() {
    let setup = Setup::new();
    let plugin = setup.lab.path("cni-bin/bridge");
    let mut elf = fs::read(&plugin).unwrap();
    let (ours, theirs) = if cfg!(target_arch = "x86_64") {
        (62, 183)
    } else {
        (183, 62)
    };
    assert_eq!(elf[18], ours);
    elf[18] = theirs;
    fs::write(&plugin, elf).unwrap();
    setup.refuses(
        |setup| setup.install(&[]),
        &["x86-64", "aarch64", "cni-bin/bridge", "use the image for"],
    );
}

#[test]
fn a_configuration_that_is_none() {
    let setup = Setup::new();
    let before = setup.files();
    setup.lab.write("template.json", "{");
    refused(&setup.install(&[]), &["template.json", "correct the file"]);
    for other in [r#"{"type":"bridge"}"#, r#"{"plugins":[{"type":"multus"}]}"#] {
        setup.lab.write("template.json", other);
        refused(&setup.install(&[]), &["template.json", "another plugin"]);
    }
    setup.lab.write("template.json", r#"{"verify":"yes"}"#);
    refused(
        &setup.install(&[]),
        &["key verify", "is yes", "strict, warn, off"],
    );
    assert_eq!(setup.files(), before);
}

/// Opening it waits for somebody who writes.
#[test]
fn a_pipe_in_the_runtimes_directory() {
    let setup = Setup::new();
    let pipe = setup.lab.path("net.d/05-pipe.conf");
    crate::lab::run("mkfifo", &[&pipe.display().to_string()]);
    refused(
        &setup.install(&[]),
        &["05-pipe.conf comes first", "not a regular file"],
    );
    fs::remove_file(&pipe).unwrap();
    setup.installed();
    crate::lab::run("mkfifo", &[&pipe.display().to_string()]);
    let outcome = setup.uninstall(&[]);
    assert_eq!(outcome.exit, 0, "{outcome}");
}

/// Exit 2, as scripts tell a wrong command from one that failed.
#[test]
fn wrong_usage() {
    let setup = Setup::new();
    for (command, words) in [
        (
            &["install", "--conf-dir", "net.d"][..],
            "'net.d' for '--conf-dir <DIR>': write an absolute path",
        ),
        (&["uninstall", "--host-root", "host"], "an absolute path"),
        (&["doctor", "--bin-dir", "bin"], "an absolute path"),
        (&["agent", "--socket", "agent.sock"], "an absolute path"),
        (&["agent"], "give --node or set NODE_NAME"),
        (&["agent", "--node", ""], "give --node or set NODE_NAME"),
    ] {
        let outcome = setup.lab.cli(command).run();
        assert_eq!(outcome.exit, 2, "{outcome}");
        assert!(outcome.stderr.contains(words), "{words}: {outcome}");
    }
}

#[test]
fn a_damaged_manifest() {
    let setup = Setup::new();
    setup.installed();
    setup.lab.write("net.d/.jackfield/manifest.json", "{");
    for outcome in [setup.install(&[]), setup.uninstall(&[])] {
        refused(&outcome, &["manifest.json", "`install` again"]);
    }
    assert_eq!(setup.first(), OURS);
}

#[test]
fn a_configuration_that_every_call_would_refuse() {
    let future = json!({ "cniVersion": "9.9.0", "cniVersions": ["9.9.0"] });
    for (keys, named) in [(future, "9.9.0"), (json!({ "verify": "maybe" }), "maybe")] {
        let mut setup = Setup::new();
        for (key, value) in keys.as_object().unwrap() {
            setup.lab.configure(key, value.clone());
        }
        let conf = setup.lab.conf().to_string();
        setup.lab.write("template.json", &conf);
        setup.refuses(
            |setup| setup.install(&[]),
            &["the configuration to install", named],
        );
    }
}
