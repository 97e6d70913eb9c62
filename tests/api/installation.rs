//! What the cluster sees of a node's installation, through the agent, while the node moves from Multus.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lab::{AgentProcess, Lab, NETWORKS, binary, cni_bin, eventually};

/// An installer of the DaemonSet; it ends with its test.
struct Installer(Child);

impl Installer {
    fn start(lab: &Lab, more: &[&str]) -> Installer {
        let log = File::options()
            .create(true)
            .append(true)
            .open(lab.path("install.log"))
            .unwrap();
        let child = Command::new(binary())
            .args(["install", "--watch", "--conf-dir"])
            .arg(lab.path("net.d"))
            .arg("--bin-dir")
            .arg(lab.path("bin"))
            .arg("--conf")
            .arg(lab.path("template.json"))
            .args(["--from-multus", "--node", &lab.node, "--cni-path"])
            .arg(cni_bin())
            .args(more)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Installer(child)
    }
}

impl Drop for Installer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the cluster sees the node in a state, and is told of it by an event of this reason.
#[track_caller]
fn is_seen(lab: &Lab, agent: &AgentProcess, state: &str, reason: &str, words: &[&str]) {
    let metric = format!("jackfield_installation{{state=\"{state}\"}}");
    eventually(&metric, || agent.metric(&metric) == Some(1.0));
    eventually(reason, || {
        lab.events_of_node().iter().any(|event| {
            let message = event["message"].as_str().unwrap();
            event["reason"] == reason && words.iter().all(|word| message.contains(word))
        })
    });
    let others = agent.get("/metrics");
    let others = others
        .lines()
        .filter(|it| it.starts_with("jackfield_installation{"));
    assert_eq!(others.count(), 1);
}

fn count(lab: &Lab, reason: &str) -> usize {
    let events = lab.events_of_node();
    let of_reason = |event: &&Value| event["reason"] == reason;
    events.iter().filter(of_reason).count()
}

#[test]
fn a_node_that_moves_from_multus_and_back_is_seen_by_metric_and_event() {
    let (lab, agent) = Lab::with_agent();
    for folder in ["net.d", "bin"] {
        fs::create_dir(lab.path(folder)).unwrap();
    }
    let network = lab.path("net.d/10-cluster.conflist");
    fs::copy(lab.path("10-cluster.conflist"), &network).unwrap();
    let mut conf = lab.conf().clone();
    let keys = conf.as_object_mut().unwrap();
    keys.remove("clusterNetwork");
    fs::write(lab.path("template.json"), conf.to_string()).unwrap();
    let multus = json!({"cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus",
                        "clusterNetwork": network});
    fs::write(lab.path("net.d/00-multus.conf"), multus.to_string()).unwrap();
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    agent.wait_until_it_knows(1, 0);

    let installer = Installer::start(&lab, &[]);
    let words = ["1 of this node's pods would fail"];
    is_seen(&lab, &agent, "migration-waits", "MigrationWaits", &words);
    assert!(lab.path("net.d/00-multus.conf").exists());
    lab.definition("storage", "10.2.0.5/24");
    is_seen(&lab, &agent, "installed", "Installed", &[]);
    assert!(!lab.path("net.d/00-multus.conf").exists());
    // An agent that is started again is told again, and makes no event of it.
    drop(agent);
    let agent = lab.start_agent();
    let installed = r#"jackfield_installation{state="installed"}"#;
    // At the installer's next look, or the one after it.
    let until = Instant::now() + Duration::from_secs(150);
    while agent.metric(installed) != Some(1.0) {
        assert!(Instant::now() < until, "it is not told again");
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(installer);
    // Nor does an installer that is started again.
    let installer = Installer::start(&lab, &[]);
    let log = || fs::read_to_string(lab.path("install.log")).unwrap();
    eventually("it runs", || log().matches("installed ").count() >= 2);
    drop(installer);
    let _back = Installer::start(&lab, &["--back"]);
    is_seen(
        &lab,
        &agent,
        "multus",
        "MultusStays",
        &["Multus is the node's network again"],
    );
    assert!(lab.path("net.d/00-multus.conf").exists());
    for reason in ["MigrationWaits", "Installed", "MultusStays"] {
        assert_eq!(
            count(&lab, reason),
            1,
            "{reason}: {:#?}",
            lab.events_of_node()
        );
    }
    lab.del("web", &uid).succeeds();
}
