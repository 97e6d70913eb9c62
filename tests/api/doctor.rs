//! What a look at the whole node finds in a real cluster, through the agent and without one.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Lab, NETWORKS, binary, pod};

/// A node on which Jackfield is installed with these keys besides the lab's own.
pub(crate) fn installed(lab: &Lab, more: Value) {
    for folder in ["net.d", "bin"] {
        fs::create_dir(lab.path(folder)).unwrap();
    }
    let network = lab.path("net.d/10-cluster.conflist");
    fs::copy(lab.path("10-cluster.conflist"), network).unwrap();
    let mut conf = lab.conf().clone();
    let keys = conf.as_object_mut().unwrap();
    keys.remove("clusterNetwork");
    keys.extend(more.as_object().unwrap().clone());
    fs::write(lab.path("template.json"), conf.to_string()).unwrap();
    let template = lab.path("template.json");
    let (exit, out) = run(lab, "install", &["--conf", template.to_str().unwrap()]);
    assert_eq!(exit, Some(0), "{out}");
}

/// A command about the lab's node: its exit code and all that it printed.
pub(crate) fn run(lab: &Lab, command: &str, more: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(binary())
        .arg(command)
        .arg("--conf-dir")
        .arg(lab.path("net.d"))
        .arg("--bin-dir")
        .arg(lab.path("bin"))
        .args(more)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = text(&output.stdout) + &text(&output.stderr);
    (output.status.code(), all)
}

/// What `doctor` says is fine, and its findings but those about other tests' definitions.
fn diagnosis(lab: &Lab) -> (String, Vec<Value>) {
    let (_, out) = run(lab, "doctor", &["--node", &lab.node, "-o", "json"]);
    let diagnosis: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}"));
    let mut findings = diagnosis["findings"].as_array().unwrap().clone();
    findings.retain(|finding| {
        let about = finding["about"].as_str().unwrap();
        let is_about_definitions =
            ["programs", "devices"].contains(&finding["check"].as_str().unwrap());
        !is_about_definitions || about.contains(&lab.namespace)
    });
    (diagnosis["fine"].to_string(), findings)
}

#[track_caller]
fn says(lab: &Lab, command: &str, more: &[&str], exit: i32, words: &[&str]) {
    let (code, out) = run(lab, command, more);
    assert_eq!(code, Some(exit), "{out}");
    for word in words {
        assert!(out.contains(word), "{word:?} in {out}");
    }
}

#[test]
fn an_agent_tells_who_is_on_its_node() {
    let (lab, mut agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    lab.pod("web", &json!({ NETWORKS: "storage" }));
    // No runtime attaches these two.
    let mut on_host = pod("on-host", &lab.node, &json!({}));
    on_host["spec"]["hostNetwork"] = json!(true);
    lab.admin.create(&lab.pods(), &on_host);
    lab.pod("over", &json!({}));
    let finished = json!({ "status": { "phase": "Failed" } });
    lab.admin
        .merge(&format!("{}/over/status", lab.pods()), &finished);
    agent.wait_until_it_knows(1, 1);
    installed(&lab, json!({}));
    let known = format!("the agent, release {}: 1 pods, ", env!("CARGO_PKG_VERSION"));
    crate::lab::eventually("the agent knows the pod", || {
        diagnosis(&lab).0.contains(&known)
    });
    assert!(diagnosis(&lab).1.is_empty(), "{:#?}", diagnosis(&lab).1);
    // An agent that was started for another node has none of this node's pods.
    let other = ["--node", "elsewhere"];
    let words = [
        &*format!("the agent serves node {}", lab.node),
        "this is node elsewhere",
        "--node",
    ];
    says(&lab, "doctor", &other, 1, &words);
    agent.kill();
    says(
        &lab,
        "doctor",
        &[],
        1,
        &["nothing listens", "start it or set kubeconfig"],
    );
}

#[test]
fn an_api_server_out_of_reach_is_found_at_once() {
    let (lab, _agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({}));
    installed(&lab, json!({}));
    lab.proxy.down();
    lab.add("web", &uid).succeeds();
    let words = [
        "does not answer",
        "cluster ",
        "files with a status or events that the API server has not received: 1",
        "/web",
    ];
    says(&lab, "doctor", &["--node", &lab.node], 1, &words);
    lab.proxy.heal();
    crate::lab::eventually("the node is well", || diagnosis(&lab).1.is_empty());
}

#[test]
fn without_an_agent_the_api_server_is_asked_page_by_page() {
    let lab = Lab::new();
    lab.many_definitions(510);
    lab.pod("web", &json!({ NETWORKS: "nowhere" }));
    let finished = json!({ "status": { "phase": "Succeeded" } });
    lab.pod("over", &json!({ NETWORKS: "nowhere" }));
    lab.admin
        .merge(&format!("{}/over/status", lab.pods()), &finished);
    installed(&lab, json!({ "kubeconfig": lab.path("kubeconfig") }));
    let (fine, _) = diagnosis(&lab);
    let about = "the API server, without an agent: 1 pods, ";
    let count = fine.split_once(about).unwrap_or_else(|| panic!("{fine}")).1;
    let count: usize = count.split_once(' ').unwrap().0.parse().unwrap();
    assert!(count >= 510, "{fine}");
    // The same pods are rehearsed before Multus gives way.
    fs::remove_dir_all(lab.path("net.d/.jackfield")).unwrap();
    fs::remove_file(lab.path("net.d/00-jackfield.conflist")).unwrap();
    let multus = json!({
        "cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus",
        "clusterNetwork": lab.path("net.d/10-cluster.conflist"), "kubeconfig": lab.path("kubeconfig"),
    });
    fs::write(lab.path("net.d/00-multus.conf"), multus.to_string()).unwrap();
    let plugins = super::lab::cni_bin().display().to_string();
    let dry_run = [
        "--from-multus",
        "--dry-run",
        "--node",
        &lab.node,
        "--cni-path",
        &plugins,
    ];
    let failing = format!("pod {}/web would fail", lab.namespace);
    let words = [failing.as_str(), "nowhere", "1 pods would fail"];
    says(&lab, "install", &dry_run, 1, &words);
    lab.delete_pod("web");
    says(&lab, "install", &dry_run, 0, &["0 pods would fail"]);
    assert!(Path::new(&lab.path("net.d/00-multus.conf")).exists());
}

#[test]
fn the_agent_shows_what_the_last_look_found() {
    let (lab, agent) = Lab::with_agent();
    installed(&lab, json!({}));
    let of = |check: &str| format!(r#"jackfield_doctor_findings{{check="{check}"}}"#);
    let shows = |check: &str, count: f64| {
        crate::lab::eventually("the agent has been told", || {
            agent.metric(&of(check)) == Some(count)
        });
    };
    assert_eq!(agent.metric(&of("cluster")), None, "nobody has looked");
    says(&lab, "doctor", &["--node", "elsewhere"], 1, &[]);
    shows("cluster", 1.0);
    shows("journal", 0.0);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let ran = agent.metric("jackfield_doctor_last_run_timestamp_seconds");
    assert!((now - 60.0..=now).contains(&ran.unwrap()), "{ran:?}");
    diagnosis(&lab);
    shows("cluster", 0.0);
}
