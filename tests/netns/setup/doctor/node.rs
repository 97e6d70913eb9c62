//! Findings about what is installed and whom it works with.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::thread;

use serde_json::{Value, json};

use super::super::OURS;
use super::{Setup, well};

#[test]
fn a_configuration_that_is_missing_broken_or_misspelt() {
    let setup = well();
    setup.reconfigure("verfy", json!("strict"));
    setup.finds(
        "configuration",
        &["unknown key \\\"verfy\\\"", "or remove it"],
    );
    setup.reconfigure("verify", json!("sometimes"));
    let found = setup.finds("configuration", &["key verify", "sometimes"]);
    assert!(
        found["remedy"]
            .as_str()
            .unwrap()
            .contains("use one of strict"),
        "{found}"
    );
    let path = setup.lab.path("net.d").join(OURS);
    fs::remove_file(&path).unwrap();
    setup.finds(
        "configuration",
        &["no configuration of jackfield", "jackfield install"],
    );
    fs::write(&path, "{").unwrap();
    let broken = &[OURS, "correct it, or run `jackfield install`"];
    setup.finds("configuration", broken);
    setup.finds("installation", &["is not a configuration"]);
    let conf = path.display().to_string();
    let outcome = setup.doctor(&["--conf", &conf]);
    assert_eq!(outcome.exit, 1);
    assert!(outcome.stdout.contains("correct it"), "{outcome}");
    let other = well();
    other.reconfigure("readinessindicatorfile", json!("/nonexistent/ready"));
    other.finds("configuration", &["/nonexistent/ready", "every ADD waits"]);
}

#[test]
fn a_missing_runtime_directory_is_found_with_and_without_a_given_configuration() {
    let setup = well();
    let conf = setup.lab.path("given.conflist");
    fs::copy(setup.lab.path("net.d").join(OURS), &conf).unwrap();
    fs::remove_dir_all(setup.lab.path("net.d")).unwrap();
    setup.finds("configuration", &["net.d", "create it"]);
    let outcome = setup.doctor(&["--conf", &conf.display().to_string()]);
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(
        outcome.stdout.contains("create it, or correct --conf-dir"),
        "{outcome}"
    );
}

#[test]
fn who_comes_first_and_who_renames_what_is_ours() {
    let setup = well();
    setup.cluster_network("!first.conflist", "first");
    setup.finds_only("installation", &["!first.conflist", "rename"]);
    let setup = well();
    let ours = setup.lab.path("net.d").join(OURS);
    fs::rename(
        &ours,
        setup.lab.path("net.d/00-jackfield.conflist.cilium_bak"),
    )
    .unwrap();
    setup.finds(
        "installation",
        &[
            "was renamed to 00-jackfield.conflist.cilium_bak",
            "cni.exclusive",
        ],
    );
    let setup = well();
    fs::write(
        setup.lab.path("net.d/00-multus.conf"),
        r#"{"name":"m","type":"multus","clusterNetwork":"x"}"#,
    )
    .unwrap();
    setup.finds_only(
        "installation",
        &["00-multus.conf", "does not use it", "DaemonSet"],
    );
    let setup = well();
    let manifest = setup.lab.path("net.d/.jackfield/manifest.json");
    let mut text: Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    text["repairs"] = json!([1, now - 60, now - 30]);
    fs::write(&manifest, text.to_string()).unwrap();
    setup.finds_only("installation", &["repaired 2 times", "install --watch"]);
    text["repairs"] = json!([now, now, now]);
    fs::write(&manifest, text.to_string()).unwrap();
    setup.finds_only("installation", &["repaired 3 times", "refuse a fourth"]);
    fs::write(&manifest, "{").unwrap();
    setup.finds_only("installation", &["manifest.json", "`install` again"]);
}

#[test]
fn a_cluster_network_that_is_gone() {
    let setup = well();
    fs::remove_file(setup.lab.path("net.d").join(super::super::CLUSTER)).unwrap();
    setup.finds(
        "installation",
        &["no configuration of the cluster network", "install"],
    );
    setup.finds("programs", &["10-cluster.conflist", "does not exist"]);
}

#[test]
fn a_binary_that_is_missing_replaced_or_of_another_release() {
    let setup = well();
    let binary = setup.lab.path("cni-bin/jackfield");
    let mut elf = fs::read(&binary).unwrap();
    fs::remove_file(&binary).unwrap();
    setup.finds_only(
        "installation",
        &["jackfield", "No such file", "jackfield install"],
    );
    elf[18] = if cfg!(target_arch = "x86_64") {
        183
    } else {
        62
    };
    fs::write(&binary, elf).unwrap();
    setup.finds("installation", &["was replaced"]);
    setup.finds("installation", &["use the image for"]);
    let setup = well();
    let manifest = setup.lab.path("net.d/.jackfield/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let newer = text.replace(&format!("\"{}\"", env!("CARGO_PKG_VERSION")), "\"99.0.0\"");
    fs::write(&manifest, newer).unwrap();
    setup.finds_only("installation", &["it is release 99.0.0", "doctor"]);
    let setup = Setup::new();
    let conf = setup.lab.path("template.json").display().to_string();
    let outcome = setup.doctor(&["--conf", &conf]);
    assert!(
        outcome.stdout.contains("there is no such program"),
        "{outcome}"
    );
}

#[test]
fn modes_by_which_no_pod_starts_or_everybody_decides_what_runs() {
    let setup = well();
    let chmod = |path: &str, mode: u32| {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(setup.lab.path(path), mode).unwrap();
    };
    let binary = || {
        let found = fs::metadata(setup.lab.path("cni-bin/jackfield")).unwrap();
        found.permissions().mode() & 0o7777
    };
    for mode in [0o644, 0o777] {
        chmod("cni-bin/jackfield", mode);
        let words = format!("its mode is {mode:o}");
        setup.finds_only("installation", &[&words, "jackfield install"]);
        setup.installed();
        assert_eq!(binary(), 0o755);
    }
    for path in ["net.d", "cni-bin", "net.d/00-jackfield.conflist"] {
        let before = fs::metadata(setup.lab.path(path)).unwrap().permissions();
        chmod(path, 0o777);
        setup.finds(
            "installation",
            &[path, "users other than root can write there", "chmod go-w"],
        );
        fs::set_permissions(setup.lab.path(path), before).unwrap();
    }
    let watching = setup.watch(&[]);
    watching.says("installed");
    chmod("cni-bin/jackfield", 0o600);
    // A change of mode wakes nobody; something else in the directory does.
    setup.lab.write("cni-bin/another", "");
    watching.says("its mode is 600");
    super::super::eventually("it is right", || binary() == 0o755, || watching.log());
}

#[test]
fn programs_that_are_missing_not_executable_open_to_all_or_ourselves() {
    let setup = well();
    let mode = |name: &str, mode: u32| {
        let path = setup.lab.write(&format!("cni-bin/{name}"), "#!/bin/sh\n");
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("flat", 0o644);
    mode("open", 0o777);
    for (name, kind, words) in [
        ("missing", "nope", "no binary named nope"),
        ("flat", "flat", "is not executable"),
        ("open", "open", "can be written by every user"),
        ("circle", "jackfield", "jackfield itself"),
    ] {
        let object = format!("demo/{name}");
        setup.lab.definition(&object, &json!({ "type": kind }));
        let about = format!("network {object}");
        setup.finds("programs", &[&about, words]);
    }
    let ipam = json!({ "type": "ptp", "ipam": { "type": "no-ipam" } });
    setup.lab.definition("demo/ipam", &ipam);
    setup.finds(
        "programs",
        &["network demo/ipam", "no binary named no-ipam"],
    );
    setup.lab.definition_text("demo/broken", "{");
    setup.finds(
        "programs",
        &["network demo/broken", "correct the configuration"],
    );
    fs::remove_file(setup.lab.path("cni-bin/bridge")).unwrap();
    let outcome = setup
        .command("doctor", &["--cni-path", "/nonexistent"])
        .run();
    assert!(
        outcome.stdout.contains("no binary named bridge"),
        "{outcome}"
    );
}

#[test]
fn a_folder_that_is_missing_or_holds_what_cannot_be_read() {
    let setup = well();
    setup.lab.write("cluster/torn.yaml", "kind: [");
    setup.finds_only("cluster", &["torn.yaml", "correct the object or file"]);
    fs::remove_dir_all(setup.lab.path("cluster")).unwrap();
    setup.finds_only("cluster", &["manifestDir", "correct the key"]);
}

/// Somebody on the agent's socket who answers one message with `answer`: a release that is not
/// this one, which nothing here could be otherwise.
fn agent_that_says(setup: &Setup, answer: &Value) -> thread::JoinHandle<()> {
    let socket = setup.lab.path("agent.sock");
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    setup.reconfigure("manifestDir", Value::Null);
    setup.reconfigure("agentSocket", json!(socket));
    let text = answer.to_string();
    let mut frame = b"JF\x00\x01".to_vec();
    frame.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
    frame.extend(text.into_bytes());
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut header = [0; 8];
        stream.read_exact(&mut header).unwrap();
        let length = u32::from_be_bytes(header[4..].try_into().unwrap()) as usize;
        stream.read_exact(&mut vec![0; length]).unwrap();
        stream.write_all(&frame).unwrap();
        // Nothing more is asked of it, or everything that is is refused by its end.
    })
}

#[test]
fn an_agent_that_is_away_deaf_old_or_of_another_release() {
    let setup = well();
    setup.reconfigure("manifestDir", Value::Null);
    setup.reconfigure("agentSocket", json!(setup.lab.path("agent.sock")));
    setup.finds(
        "cluster",
        &["agent.sock", "nothing listens there", "start it"],
    );
    let census = |version: &str, listed: bool| {
        json!({ "census": { "version": version, "node": "n", "listed": listed, "pods": [],
                            "definitions": [], "new": 1 } })
    };
    let ours = env!("CARGO_PKG_VERSION");
    for (answer, words) in [
        (census("0.0.1", true), "the agent has release 0.0.1"),
        (
            census(ours, false),
            "not been able to list pods and definitions",
        ),
        (
            json!({ "refused": "a message cannot be read; use the same release of plugin and agent" }),
            "use the same release of plugin and agent",
        ),
        (json!("kept"), "its reply does not match the request"),
    ] {
        let agent = agent_that_says(&setup, &answer);
        let outcome = setup.doctor(&[]);
        agent.join().unwrap();
        assert!(outcome.stdout.contains(words), "{words}: {outcome}");
    }
}

#[test]
fn kubelets_socket_and_record_where_a_network_uses_devices() {
    let setup = well();
    setup.reconfigure("podResourcesSocket", json!(setup.lab.path("kubelet.sock")));
    setup.reconfigure("kubeletCheckpoint", json!(setup.lab.path("checkpoint")));
    setup.is_well();
    let definition = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "vf", "namespace": "demo",
                      "annotations": { "k8s.v1.cni.cncf.io/resourceName": "intel.com/vf" } },
        "spec": { "config": setup.ptp().to_string() },
    });
    setup.lab.write("cluster/vf.json", &definition.to_string());
    setup.finds("devices", &["kubelet.sock"]);
    setup.finds("devices", &["checkpoint", "does not exist"]);
    setup.lab.write("checkpoint", "{");
    setup.finds("devices", &["checkpoint"]);
}

#[test]
fn the_mode_of_rdma_where_a_network_needs_it() {
    let setup = well();
    setup.reconfigure("sysfsRoot", json!(setup.lab.path("sys")));
    setup.lab.delegate("rdma", "");
    fs::rename(setup.lab.path("bin/rdma"), setup.lab.path("cni-bin/rdma")).unwrap();
    let chain = json!({ "cniVersion": "1.0.0", "name": "r",
                        "plugins": [setup.ptp(), { "type": "rdma" }] });
    setup.lab.definition("demo/rdma", &chain);
    setup.finds_only("devices", &["network demo/rdma", "ib_core"]);
    setup
        .lab
        .write("sys/module/ib_core/parameters/netns_mode", "Y\n");
    setup.finds_only(
        "devices",
        &["network demo/rdma", "exclusive", "netns_mode=0"],
    );
    setup
        .lab
        .write("sys/module/ib_core/parameters/netns_mode", "N\n");
    setup.is_well();
}

#[test]
fn without_privilege_the_rest_is_looked_at_all_the_same() {
    let setup = well();
    let call = setup.command("doctor", &["--node", "here"]);
    let outcome = call.under(&["setpriv", "--bounding-set=-net_admin"]).run();
    assert_eq!(outcome.exit, 1, "{outcome}");
    assert!(outcome.stdout.contains("CAP_NET_ADMIN"), "{outcome}");
}

#[test]
fn a_virtual_function_whose_interface_is_nowhere() {
    const VF: &str = "0000:01:10.0";
    let setup = well();
    let sysfs = device_info::fixtures::igb()
        .build(&setup.lab.path("hardware"))
        .unwrap();
    setup.reconfigure("sysfsRoot", json!(sysfs.root()));
    setup.is_well();
    let net = sysfs.root().join("bus/pci/devices").join(VF).join("net");
    fs::remove_dir_all(net).unwrap();
    setup.finds_only(
        "devices",
        &[VF, "no pod on record has the device", "unbind"],
    );
}
