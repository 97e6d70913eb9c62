//! What authors of pods cost the agent, however large, many or odd their pods are.

use std::thread;

use serde_json::{Value, json};

use crate::lab::{AgentProcess, Lab, NETWORKS, Sandbox, eventually, pod};

const PODS: &str = r#"jackfield_cached_objects{kind="pod"}"#;
const READ: &str = r#"jackfield_lookups_total{what="definition",from="api"}"#;
const FAILURES: &str = r#"jackfield_watch_failures_total{kind="pod"}"#;

/// A pod whose text has about `length` bytes.
fn fat_pod(lab: &Lab, name: &str, annotations: &Value, length: usize) -> String {
    let mut object = pod(name, &lab.node, annotations);
    object["spec"]["containers"][0]["env"] = json!([{"name": "X", "value": "x".repeat(length)}]);
    let created = lab.admin.create(&lab.pods(), &object);
    created["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// The most memory that the agent has had, in KiB.
fn peak(agent: &AgentProcess) -> u32 {
    agent.status("VmHWM").parse().unwrap()
}

#[test]
fn an_agent_starts_beside_large_pods_in_little_memory() {
    let lab = Lab::new();
    lab.pod("small", &json!({}));
    let small = lab.start_agent();
    let before = peak(&small);
    drop(small);
    for number in 0..30 {
        fat_pod(&lab, &format!("fat{number}"), &json!({}), 1_200_000);
    }
    let agent = lab.start_agent();
    assert_eq!(agent.metric(PODS), Some(31.0));
    let more = peak(&agent).saturating_sub(before);
    assert!(more < 8 * 1024, "{more} kB more than beside one small pod");
}

#[test]
fn a_pod_with_odd_managed_fields_stops_neither_the_watch_nor_a_start() {
    let (lab, mut agent) = Lab::with_agent();
    let mut deep = json!({"f:x": {}});
    for _ in 0..150 {
        deep = json!({ "f:a": deep });
    }
    let entry = |time: &str, fields: &Value| {
        json!({"metadata": {"managedFields": [{"manager": "m", "operation": "Update",
            "apiVersion": "v1", "fieldsType": "FieldsV1", "time": time,
            "fieldsV1": {"f:metadata": {"f:annotations": {"f:x": {}}}, "f:spec": fields}}]}})
    };
    let entries = [
        entry("9999-12-31T23:59:59Z", &json!({"f:x": {}})),
        entry("2020-01-01T00:00:00Z", &deep),
    ];
    for (number, entry) in entries.iter().enumerate() {
        let name = format!("odd{number}");
        lab.pod(&name, &json!({"x": "y"}));
        lab.admin.merge(&format!("{}/{name}", lab.pods()), entry);
    }
    lab.pod("next", &json!({}));
    eventually("the next pod is seen", || agent.metric(PODS) == Some(3.0));
    assert_eq!(agent.metric(FAILURES), None);
    agent.kill();
    let agent = lab.start_agent();
    assert_eq!(agent.metric(PODS), Some(3.0));
    assert_eq!(agent.metric(FAILURES), None);
}

#[test]
fn an_annotation_that_changes_again_and_again_costs_no_reads() {
    let (lab, agent) = Lab::with_agent();
    lab.pod("restless", &json!({}));
    let path = format!("{}/restless", lab.pods());
    for change in 0..30 {
        let networks: Vec<String> = (0..20).map(|it| format!("n{change}-{it}")).collect();
        let annotations = json!({NETWORKS: networks.join(",")});
        lab.admin
            .merge(&path, &json!({"metadata": {"annotations": annotations}}));
    }
    lab.pod("last", &json!({NETWORKS: "nowhere"}));
    eventually("the last pod's definition is read", || {
        agent.metric(READ) >= Some(1.0)
    });
    assert_eq!(agent.metric(READ), Some(1.0));
}

#[test]
fn pods_that_are_not_kept_are_read_two_at_a_time() {
    let (lab, agent) = Lab::with_agent();
    let networks = json!({NETWORKS: format!(r#"[{{"name":"nowhere"{}}}]"#, " ".repeat(20_000))});
    let uids: Vec<String> = (0..24)
        .map(|number| fat_pod(&lab, &format!("fat{number}"), &networks, 1_000_000))
        .collect();
    agent.wait_until_it_knows(24, 0);
    let before = peak(&agent);
    thread::scope(|scope| {
        for (number, uid) in uids.iter().enumerate() {
            let lab = &lab;
            scope.spawn(move || {
                let name = format!("fat{number}");
                let sandbox = Sandbox {
                    container: &name,
                    pod: &name,
                    uid,
                    annotations: None,
                };
                lab.call("ADD", &sandbox).fails(102, &["nowhere"]);
            });
        }
    });
    let more = peak(&agent) - before;
    // All at once they would be 24 MB of text alone.
    assert!(more < 16 * 1024, "{more} kB more");
}

#[test]
fn pods_that_no_runtime_attaches_are_not_kept_and_annotations_of_a_mirror_neither() {
    let (lab, agent) = Lab::with_agent();
    let long = "0".repeat(100_000);
    let mirror = json!({"kubernetes.io/config.mirror": &long, "kubernetes.io/config.hash": &long});
    for number in 0..60 {
        lab.pod(&format!("no-mirror{number}"), &mirror);
    }
    let mut on_host = pod("on-host", &lab.node, &json!({}));
    on_host["spec"]["hostNetwork"] = json!(true);
    lab.admin.create(&lab.pods(), &on_host);
    lab.pod("over", &json!({}));
    let ended = json!({ "status": { "phase": "Failed" } });
    lab.admin
        .merge(&format!("{}/over/status", lab.pods()), &ended);
    lab.pod("last", &json!({}));
    agent.wait_until_it_knows(61, 0);
    let own: u32 = agent.status("RssAnon").parse().unwrap();
    assert!(own < 8 * 1024, "{own} kB");
}

#[test]
fn networks_that_are_not_there_are_no_label() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "invented"}));
    lab.add("web", &uid).fails(102, &["invented"]);
    let uid = lab.pod("next", &json!({NETWORKS: "storage"}));
    lab.add("next", &uid).succeeds();
    let counted = || agent.get("/metrics").contains("/storage");
    eventually("what is there is counted", counted);
    let metrics = agent.get("/metrics");
    let other = r#"network="other",result="failed""#;
    assert!(
        metrics.contains(other) && !metrics.contains("invented"),
        "{metrics}"
    );
}

#[test]
fn a_pod_with_many_containers_is_attached_or_refused_by_name() {
    let (lab, _agent) = Lab::with_agent();
    let mut many = pod("many", &lab.node, &json!({}));
    let container = |number: usize| {
        let requests = json!({"e.co/r": "1"});
        json!({"name": format!("c{number}"), "image": "a",
            "resources": {"limits": &requests, "requests": &requests}})
    };
    many["spec"]["containers"] = (0..257).map(container).collect();
    let created = lab.admin.create(&lab.pods(), &many);
    let uid = created["metadata"]["uid"].as_str().unwrap();
    lab.add("many", uid).succeeds();
    lab.del("many", uid).succeeds();
    lab.definition_with_devices("devices", "10.2.0.5/24", "e.co/r");
    many["metadata"]["name"] = json!("more");
    many["metadata"]["annotations"] = json!({NETWORKS: "devices"});
    let created = lab.admin.create(&lab.pods(), &many);
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let words = [
        "more than 256 containers, or more than 256 requests",
        "request the devices in fewer",
    ];
    lab.add("more", uid).fails(107, &words);
}

#[test]
fn an_annotation_of_control_characters_is_invalid_and_ignored() {
    let (lab, _agent) = Lab::with_agent();
    let networks = json!({NETWORKS: "\u{1}".repeat(255 << 10)});
    let uid = lab.pod("odd", &networks);
    let sandbox = Sandbox {
        container: "odd",
        pod: "odd",
        uid: &uid,
        annotations: Some(networks),
    };
    lab.call("ADD", &sandbox).succeeds();
    assert_eq!(lab.interfaces("odd"), ["eth0"]);
}
