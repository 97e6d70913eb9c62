//! A connection to the API server that is dead without a word: nothing ends it, and nothing comes.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lab::{AgentProcess, Lab, NETWORKS, Server, Wire, eventually};

/// Within which time the agent has to notice.
const NOTICED: Duration = Duration::from_secs(30);
const PODS: &str = r#"jackfield_cached_objects{kind="pod"}"#;
const DEFINITIONS: &str = r#"jackfield_cached_objects{kind="definition"}"#;

/// Pods and definitions that come after the connections have died are read at once, and the watches
/// show what changes soon.
#[track_caller]
fn costs_a_read_and_is_noticed(lab: &Lab, agent: &AgentProcess, silence: impl FnOnce()) {
    lab.definition("storage", "10.2.0.5/24");
    lab.pod("early", &json!({NETWORKS: "storage"}));
    agent.wait_until_it_knows(1, 1);
    silence();
    let since = Instant::now();
    lab.definition("new", "10.3.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "storage,new"}));
    let added = lab.add("web", &uid).succeeds();
    assert!(added.took < Duration::from_secs(14), "{added}");
    lab.wait_for_status("web");
    // The watches are as blind as before.
    lab.pod("late", &json!({}));
    let path = format!(
        "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions/storage",
        lab.namespace
    );
    let edited =
        json!({"spec": {"config": r#"{"cniVersion": "1.0.0", "name": "x", "type": "bridge"}"#}});
    lab.admin.merge(&path, &edited);
    // Three of the test, and the agent's own.
    eventually("the watches begin again", || {
        agent.metric(PODS) == Some(3.0) && agent.metric(DEFINITIONS) == Some(1.0)
    });
    let took = since.elapsed();
    assert!(took < NOTICED, "{took:?}");
}

/// A slow API server has had the agent open a second connection, which dies with the first.
#[test]
fn a_connection_that_was_opened_beside_it_earlier_is_no_new_one() {
    let (lab, wire) = behind_a_wire();
    let agent = lab.start_agent();
    lab.definition("slow", "10.2.0.5/24");
    // Both connections wait, and the first is the one that answers.
    wire.hold(Duration::from_secs(4));
    let uid = lab.pod("slow", &json!({NETWORKS: "slow"}));
    lab.add("slow", &uid).succeeds();
    // The agent may not keep the definition, because its watch reports it during the read.
    eventually("the watch shows the pod", || {
        agent.metric(PODS) == Some(1.0)
    });
    std::thread::sleep(Duration::from_secs(6));
    wire.silence();
    let uid = lab.pod("web", &json!({}));
    let added = lab.add("web", &uid).succeeds();
    assert!(added.took < Duration::from_secs(14), "{added}");
}

/// A lab whose agent reaches the API server over TLS, and so by HTTP/2.
fn behind_a_wire() -> (Lab, Wire) {
    let lab = Lab::new();
    let server = Server::get();
    let wire = Wire::start(server.port);
    let file = lab.path("kubeconfig");
    let mut kubeconfig: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    kubeconfig["clusters"][0]["cluster"] = json!({
        "server": wire.url(),
        "certificate-authority": server.dir.join("pki/apiserver.crt"),
    });
    fs::write(&file, kubeconfig.to_string()).unwrap();
    (lab, wire)
}

#[test]
fn over_http_1_it_is_noticed_within_half_a_minute() {
    let (lab, agent) = Lab::with_agent();
    costs_a_read_and_is_noticed(&lab, &agent, || lab.proxy.silence());
}

#[test]
fn over_http_2_it_is_noticed_within_half_a_minute() {
    let (lab, wire) = behind_a_wire();
    let agent = lab.start_agent();
    costs_a_read_and_is_noticed(&lab, &agent, || wire.silence());
}

#[test]
fn a_connection_that_is_quiet_and_alive_stays() {
    let (lab, agent) = Lab::with_agent();
    std::thread::sleep(Duration::from_secs(45));
    for kind in ["pod", "definition", "slice"] {
        let failed = format!("jackfield_watch_failures_total{{kind=\"{kind}\"}}");
        assert_eq!(agent.metric(&failed), None, "{kind}: {:?}", agent.log());
    }
    let lists = |request: &&String| request.contains("/pods?") && !request.contains("watch=true");
    let seen = lab.proxy.seen();
    assert_eq!(seen.iter().filter(lists).count(), 1, "{seen:?}");
}
