//! STATUS says whether an ADD would work now.

use std::fs;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use serde_json::json;

use crate::lab::{Lab, Outcome};

fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.configure("cniVersion", json!("1.1.0"));
    lab.recorder("bridge-rec", "bridge", "");
    with_script(&lab, "1.1.0", "");
    lab
}

/// The cluster network's plugin does `script` first.
fn with_script(lab: &Lab, version: &str, script: &str) {
    lab.recorder("bridge-rec", "bridge", script);
    let mut bridge = lab.bridge("cni0", "10.10.0.0/24");
    bridge["type"] = json!("bridge-rec");
    lab.cluster_network(version, &[bridge]);
}

/// As containerd calls it: every variable there, most of them empty.
fn status(lab: &Lab) -> Outcome {
    let call = lab.plugin("STATUS");
    let call = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS"]
        .iter()
        .fold(call, |call, name| call.env(name, ""));
    call.run()
}

// clause: CNI-1.1.0 §2 STATUS ready
#[test]
fn a_node_that_is_ready_says_nothing() {
    let lab = lab();
    let outcome = status(&lab);
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (0, ""),
        "{outcome}"
    );
    let asked = lab.recorded("bridge-rec", "STATUS");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["cniVersion"], "1.1.0");
    assert!(asked[0].get("prevResult").is_none());
    // With nothing but the verb too.
    let bare = lab.plugin("STATUS");
    let bare = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS"]
        .iter()
        .fold(bare, |call, name| call.without(name));
    assert_eq!(bare.run().exit, 0);
}

// clause: CNI-1.1.0 §2 STATUS delegated
// clause: CNI-1.1.0 §2 STATUS error
#[test]
fn what_the_cluster_networks_plugins_say_is_passed_on() {
    let lab = lab();
    for (said, passed) in [(50, 50), (51, 51), (11, 11), (7, 50), (999, 50)] {
        let script = format!(
            "[ $CNI_COMMAND = STATUS ] && {{ echo '{{\"code\":{said},\"msg\":\"no leases left\"}}'; exit 1; }}"
        );
        with_script(&lab, "1.1.0", &script);
        status(&lab).fails(
            passed,
            &["cluster", "bridge-rec", "STATUS", "no leases left"],
        );
    }
    // Before 1.1.0 there is no STATUS to ask for.
    let script = "[ $CNI_COMMAND = STATUS ] && exit 1";
    with_script(&lab, "1.0.0", script);
    assert_eq!(status(&lab).exit, 0);
}

// clause: CNI-1.1.0 §2 STATUS not ready
#[test]
fn whatever_an_add_would_miss_is_named_with_code_50() {
    let mut lab = lab();
    let indicator = lab.path("ready");
    lab.configure("readinessindicatorfile", json!(indicator));
    status(&lab).fails(50, &[&indicator.display().to_string()]);
    fs::write(&indicator, "").unwrap();
    assert_eq!(status(&lab).exit, 0);

    lab.cluster_network("1.1.0", &[json!({ "type": "absent" })]);
    status(&lab).fails(50, &["no binary named absent"]);
    lab.cluster_network(
        "1.1.0",
        &[json!({ "type": "bridge", "ipam": { "type": "nowhere" } })],
    );
    status(&lab).fails(50, &["no binary named nowhere"]);
    lab.write("conf/10-cluster.conflist", "{");
    status(&lab).fails(50, &["10-cluster.conflist"]);
    fs::remove_file(lab.path("conf/10-cluster.conflist")).unwrap();
    status(&lab).fails(50, &["10-cluster.conflist", "does not exist"]);

    with_script(&lab, "1.1.0", "");
    lab.configure("manifestDir", json!("/nonexistent/cluster"));
    status(&lab).fails(50, &["/nonexistent/cluster"]);
    lab.configure("manifestDir", json!(lab.path("cluster")));
    lab.configure("journalDir", json!("/proc/self/journal"));
    status(&lab).fails(50, &["/proc/self/journal"]);
}

#[test]
fn a_plugin_that_hangs_makes_no_runtime_wait() {
    let lab = lab();
    with_script(&lab, "1.1.0", "[ $CNI_COMMAND = STATUS ] && sleep 60");
    let outcome = status(&lab);
    outcome.fails(50, &["bridge-rec", "no answer within"]);
    assert!(outcome.took < Duration::from_secs(30), "{:?}", outcome.took);
}

/// The lab's cluster is behind an agent's socket of this name.
fn behind_an_agent(lab: &mut Lab, socket: &str) {
    lab.configure("manifestDir", json!(null));
    lab.configure("agentSocket", json!(lab.path(socket)));
}

/// The node is ready, its plugins were asked, and stderr says what is wrong with the agent.
#[track_caller]
fn is_ready_without_agent(lab: &Lab, words: &str) {
    let asked = lab.recorded("bridge-rec", "STATUS").len();
    let outcome = status(lab);
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (0, ""),
        "{outcome}"
    );
    assert!(outcome.stderr.contains(words), "{outcome}");
    assert!(
        outcome
            .stderr
            .contains("pods that need the agent must wait"),
        "{outcome}"
    );
    assert_eq!(lab.recorded("bridge-rec", "STATUS").len(), asked + 1);
}

/// A node whose agent is away stays ready for whatever else is right, and for nothing else.
#[test]
fn an_agent_that_is_away_hangs_or_is_no_agent_makes_no_node_unready() {
    let mut lab = lab();
    behind_an_agent(&mut lab, "agent.sock");
    is_ready_without_agent(&lab, "agent.sock");
    // Networks that the agent alone knows.
    lab.configure("defaultNetworks", json!(["storage"]));
    is_ready_without_agent(&lab, "agent.sock");
    // By its name on disk.
    lab.configure("confDir", json!(lab.path("conf")));
    lab.configure("clusterNetwork", json!("cluster"));
    is_ready_without_agent(&lab, "agent.sock");
    lab.configure("kubeconfig", json!(lab.path("no.kubeconfig")));
    is_ready_without_agent(&lab, "no.kubeconfig");
    lab.configure("kubeconfig", json!(null));
    // It takes the question and answers nothing; a busy machine's plugins take their time.
    lab.configure("deadlines", json!({ "status": "8s" }));
    let listener = UnixListener::bind(lab.path("agent.sock")).unwrap();
    is_ready_without_agent(&lab, "no answer in time");
    drop(listener);
    fs::remove_file(lab.path("agent.sock")).unwrap();
    fs::write(lab.path("agent.sock"), "").unwrap();
    is_ready_without_agent(&lab, "not a socket");

    lab.recorder("bridge-rec", "bridge", "");
    lab.cluster_network("1.1.0", &[json!({ "type": "absent" })]);
    status(&lab).fails(50, &["no binary named absent"]);
    with_script(
        &lab,
        "1.1.0",
        "[ $CNI_COMMAND = STATUS ] && { echo '{\"code\":51,\"msg\":\"no uplink\"}'; exit 1; }",
    );
    status(&lab).fails(51, &["no uplink"]);
}

#[test]
fn a_cluster_network_that_the_agent_alone_knows_is_not_judged_while_it_is_away() {
    let mut lab = lab();
    behind_an_agent(&mut lab, "agent.sock");
    lab.configure("clusterNetwork", json!("main"));
    let outcome = status(&lab);
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(lab.recorded("bridge-rec", "STATUS").is_empty());
    let conf = lab.write("jackfield.conf", &lab.conf().to_string());
    let said = lab
        .cli(&["status", "--conf", &conf.display().to_string()])
        .run();
    assert_eq!(said.exit, 0, "{said}");
    let words = "ready: cluster network main; jackfield did not ask the network's plugins";
    assert!(said.stdout.contains(words), "{said}");
    // What is wrong on the node's own disk is judged.
    lab.configure("confDir", json!(lab.path("conf")));
    lab.write("conf/main.conf", r#"{"name":"main","cniVersion":"1.0.0"}"#);
    status(&lab).fails(50, &["main", "type"]);
    fs::remove_file(lab.path("conf/main.conf")).unwrap();
    assert_eq!(status(&lab).exit, 0);
    lab.configure("confDir", json!(lab.write("file", "")));
    status(&lab).fails(50, &["main", "file", "directory"]);
}

// clause: CNI-1.1.0 §2 STATUS service: the agent, with `statusNeedsAgent`
#[test]
fn with_status_needs_agent_a_node_without_one_is_not_ready() {
    let mut lab = lab();
    behind_an_agent(&mut lab, "nobody.sock");
    lab.configure("statusNeedsAgent", json!(true));
    status(&lab).fails(50, &["nobody.sock", "start it or set kubeconfig"]);
    lab.configure("statusNeedsAgent", json!(false));
    assert_eq!(status(&lab).exit, 0);
}

#[test]
fn the_command_says_it_in_words() {
    let lab = lab();
    let conf = lab.write("jackfield.conf", &lab.conf().to_string());
    let conf = conf.display().to_string();
    let cni_path = crate::lab::real_plugins().display().to_string();
    let arguments = ["status", "--conf", &conf, "--cni-path", &cni_path];
    let outcome = lab.cli(&arguments).run();
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(
        outcome.stdout.starts_with("ready: cluster network cluster"),
        "{outcome}"
    );
    lab.cluster_network("1.1.0", &[json!({ "type": "absent" })]);
    let outcome = lab.cli(&arguments).run();
    assert_eq!(
        (outcome.exit, outcome.stdout.as_str()),
        (1, ""),
        "{outcome}"
    );
    assert!(
        outcome.stderr.contains("no binary named absent"),
        "{outcome}"
    );
}

#[test]
fn a_cluster_network_that_is_a_definition_is_asked_and_collected_too() {
    let mut lab = lab();
    let mut ptp = lab.ptp("10.20.0.0/24");
    ptp["type"] = json!("bridge-rec");
    ptp["cniVersion"] = json!("1.1.0");
    lab.recorder("bridge-rec", "ptp", "");
    lab.definition("kube-system/main", &ptp);
    lab.configure("clusterNetwork", json!("main"));
    assert_eq!(status(&lab).exit, 0);
    assert_eq!(lab.recorded("bridge-rec", "STATUS")[0]["name"], "main");
    lab.configure("cni.dev/valid-attachments", json!([]));
    assert_eq!(lab.plugin("GC").run().exit, 0);
    assert_eq!(lab.recorded("bridge-rec", "GC")[0]["name"], "main");
    lab.configure("clusterNetwork", json!("other"));
    status(&lab).fails(50, &["other", "nor a usable definition"]);
    lab.plugin("GC")
        .run()
        .fails(102, &["other", "nor a usable definition"]);
}
