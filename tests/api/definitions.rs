//! What definitions cost the agent: those that its node's pods select, and no others.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use jackfield::cluster::frame::{self, MAX_TO_AGENT, ToAgent};
use jackfield::cluster::{PodName, Question};
use serde_json::{Value, json};

use crate::lab::{Admin, AgentProcess, Fault, Lab, NETWORKS, Server, eventually};

const KEPT: &str = r#"jackfield_cached_objects{kind="definition"}"#;
const PODS: &str = r#"jackfield_cached_objects{kind="pod"}"#;
const READ: &str = r#"jackfield_lookups_total{what="definition",from="api"}"#;

/// The requests about definitions that the API server has seen through the lab's proxy.
fn requests(lab: &Lab) -> Vec<String> {
    let mut seen = lab.proxy.seen();
    seen.retain(|request| request.contains("network-attachment-definitions"));
    seen
}

fn path(lab: &Lab, name: &str) -> String {
    format!(
        "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions/{name}",
        lab.namespace
    )
}

/// Another address for a definition's bridge.
fn edit(lab: &Lab, name: &str, address: &str) {
    let config = json!({"cniVersion": "1.0.0", "name": name, "type": "bridge", "bridge": name,
        "ipam": {"type": "static", "addresses": [{"address": address}]}});
    let spec = json!({"spec": {"config": config.to_string()}});
    lab.admin.merge(&path(lab, name), &spec);
}

#[test]
fn the_start_of_an_agent_and_an_add_cost_the_same_beside_two_thousand_definitions() {
    let lab = Lab::new();
    lab.many_definitions(2_000);
    lab.definition("storage", "10.2.0.5/24");
    let agent = lab.start_agent();
    assert_eq!(agent.metric(KEPT), Some(0.0));
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    eventually("it is read before the ADD", || {
        agent.metric(KEPT) == Some(1.0)
    });
    lab.add("web", &uid).succeeds();
    lab.wait_for_status("web");
    lab.wait_until_told();
    let requests = requests(&lab);
    assert_eq!(requests.len(), 3, "{requests:?}");
    let of_one_name =
        "namespaces/default/network-attachment-definitions?fieldSelector=metadata.name%3Dany";
    assert!(requests[0].ends_with(of_one_name), "{requests:?}");
    assert!(requests[1].contains("watch=true"), "{requests:?}");
    assert!(requests[2].ends_with("/storage"), "{requests:?}");
    // A second pod of the network costs no read at all.
    let before = Server::get().requests(&lab.node).len();
    let uid = lab.pod("other", &json!({NETWORKS: "storage"}));
    lab.add("other", &uid).succeeds();
    lab.wait_until_told();
    let after = Server::get().requests(&lab.node);
    assert_eq!(
        after[before..],
        ["patch pods/status 200", "create events 201"],
    );
    lab.delete_many_definitions();
}

#[test]
fn pods_of_one_network_that_come_at_once_cost_one_read() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    for number in 0..20 {
        lab.pod(&format!("p{number}"), &json!({NETWORKS: "storage"}));
    }
    eventually("it is read", || agent.metric(KEPT) == Some(1.0));
    thread::sleep(Duration::from_secs(1));
    assert_eq!(agent.metric(READ), Some(1.0));
}

#[test]
fn an_edited_definition_is_what_the_next_pod_gets() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("old", &json!({NETWORKS: "storage"}));
    eventually("it is kept", || agent.metric(KEPT) == Some(1.0));
    lab.add("old", &uid).succeeds();
    lab.wait_for_status("old");
    edit(&lab, "storage", "10.2.0.6/24");
    // The watch of definitions may report the edit after that of pods has reported the pod.
    eventually("the edit is seen", || agent.metric(KEPT) == Some(0.0));
    let uid = lab.pod("new", &json!({NETWORKS: "storage"}));
    lab.add("new", &uid).succeeds();
    assert_eq!(lab.wait_for_status("new")[1]["ips"], json!(["10.2.0.6"]));
    lab.admin.delete(&path(&lab, "storage"));
    eventually("it is forgotten", || agent.metric(KEPT) == Some(0.0));
    let uid = lab.pod("late", &json!({NETWORKS: "storage"}));
    lab.add("late", &uid)
        .fails(102, &["no NetworkAttachmentDefinition"]);
}

#[test]
fn a_definition_that_is_edited_while_no_watch_works_is_read_anew_once_one_does() {
    for fault in [
        Fault::HangUp,
        Fault::Answer(410, "too old"),
        Fault::Answer(403, "not now"),
    ] {
        let (lab, agent) = Lab::with_agent();
        lab.definition("storage", "10.2.0.5/24");
        lab.pod("old", &json!({NETWORKS: "storage"}));
        eventually("it is kept", || agent.metric(KEPT) == Some(1.0));
        let failed = r#"jackfield_watch_failures_total{kind="definition"}"#;
        let put = fault.clone();
        lab.proxy.fault(move |_, path| {
            let hit = path.contains("attachment-definitions") && path.contains("watch=true");
            hit.then(|| put.clone())
        });
        lab.proxy.cut();
        eventually("the watch fails", || agent.metric(failed) >= Some(1.0));
        edit(&lab, "storage", "10.2.0.6/24");
        if matches!(fault, Fault::HangUp) {
            lab.proxy.heal();
            eventually("the edit is seen", || agent.metric(KEPT) == Some(0.0));
        }
        let uid = lab.pod("new", &json!({NETWORKS: "storage"}));
        lab.add("new", &uid).succeeds();
        assert_eq!(lab.wait_for_status("new")[1]["ips"], json!(["10.2.0.6"]));
    }
}

/// A configuration of about `length` bytes, as JSON with many quotes.
fn long_config(number: usize, length: usize) -> String {
    let note: Vec<Value> = (0..length / 12).map(|_| json!("xxxxxxxxx")).collect();
    let name = format!("long{number}");
    let address = format!("10.9.{number}.5/24");
    json!({"cniVersion": "1.0.0", "name": name, "type": "bridge", "bridge": name,
        "ipam": {"type": "static", "addresses": [{"address": address}]}, "args": {"note": note}})
    .to_string()
}

fn long_definitions(lab: &Lab, count: usize, length: usize) {
    Server::get().allow_long_configurations();
    let collection = path(lab, "");
    let body = |number: usize| {
        let name = format!("long{number}");
        json!({"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": name}, "spec": {"config": long_config(number, length)}})
    };
    let content = "application/json";
    let collection = collection.trim_end_matches('/');
    // The kind's schema holds a moment after it was changed.
    eventually("long configurations are taken", || {
        let created = lab
            .admin
            .request(http::Method::POST, collection, content, Some(&body(0)));
        created.is_ok()
    });
    for number in 1..count {
        lab.admin.create(collection, &body(number));
    }
}

#[test]
fn definitions_of_a_megabyte_are_attached_and_stay_out_of_memory() {
    let lab = Lab::new();
    long_definitions(&lab, 9, 1_000_000);
    lab.definition("small", "10.2.0.5/24");
    let networks = |first: usize| {
        let names: Vec<String> = (first..first + 3).map(|n| format!("long{n}")).collect();
        json!({NETWORKS: names.join(",")})
    };
    let uids: Vec<String> = (0..3)
        .map(|number| lab.pod(&format!("p{number}"), &networks(number * 3)))
        .collect();
    let agent = lab.start_agent();
    let own = |agent: &AgentProcess| agent.status("RssAnon").parse::<u32>().unwrap();
    let (mut most, idle) = (0, own(&agent));
    thread::scope(|scope| {
        let adds: Vec<_> = uids
            .iter()
            .enumerate()
            .map(|(number, uid)| {
                let lab = &lab;
                scope.spawn(move || lab_add(lab, &format!("p{number}"), uid))
            })
            .collect();
        while !adds.iter().all(thread::ScopedJoinHandle::is_finished) {
            most = most.max(own(&agent));
            thread::sleep(Duration::from_millis(1));
        }
    });
    eprintln!(
        "RssAnon {idle} kB, at most {most} kB, afterwards {} kB",
        own(&agent)
    );
    assert!(most < idle + 10 * 1024, "{idle} kB, then {most} kB");
    // A small one beside them is kept.
    let uid = lab.pod("web", &json!({NETWORKS: "small"}));
    eventually("all are kept", || agent.metric(KEPT) == Some(10.0));
    let before = agent.metric(READ);
    lab.add("web", &uid).succeeds();
    assert_eq!(agent.metric(READ), before);
    let admin = Admin::new(Server::get(), "admin");
    admin.delete(path(&lab, "").trim_end_matches('/'));
}

/// Plugins that take nothing fill the room of answers and hold the one long definition.
#[test]
fn a_pod_waits_for_no_other_pods_definitions() {
    let lab = Lab::new();
    long_definitions(&lab, 14, 60_000);
    let longest = json!({"spec": {"config": long_config(13, 1_000_000)}});
    lab.admin.merge(&path(&lab, "long13"), &longest);
    let greedy: Vec<String> = (0..12).map(|number| format!("long{number}")).collect();
    let pods = [
        ("greedy", greedy.join(",")),
        ("slow", "long13".to_owned()),
        ("web", "long12".to_owned()),
    ];
    let uids = pods
        .each_ref()
        .map(|(pod, networks)| lab.pod(pod, &json!({NETWORKS: networks})));
    let agent = lab.start_agent();
    eventually("the pods are known", || agent.metric(PODS) == Some(3.0));
    let ask = |pod: &str, uid: &str| {
        let question = ToAgent::Question(Question {
            pod: Some(PodName {
                namespace: lab.namespace.clone(),
                name: pod.into(),
                uid: Some(uid.into()),
            }),
            parts: true,
            ..Question::default()
        });
        let mut stream = UnixStream::connect(lab.socket()).unwrap();
        let frame = frame::encode(&question, MAX_TO_AGENT).unwrap();
        stream.write_all(&frame).unwrap();
        stream
    };
    let _greedy = [(); 2].map(|()| ask("greedy", &uids[0]));
    // Each holds its turn for five seconds.
    let _slow: Vec<UnixStream> = (0..12).map(|_| ask("slow", &uids[1])).collect();
    let begun = Instant::now();
    lab.add("web", &uids[2]).succeeds();
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    let admin = Admin::new(Server::get(), "admin");
    admin.delete(path(&lab, "").trim_end_matches('/'));
}

fn lab_add(lab: &Lab, pod: &str, uid: &str) {
    lab.add(pod, uid).succeeds();
    assert_eq!(lab.interfaces(pod).len(), 4);
}

#[test]
fn pods_with_long_annotations_are_attached_and_not_kept() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let networks = format!(r#"[{{"name":"storage"{}}}]"#, " ".repeat(200_000));
    for number in 0..40 {
        lab.pod(&format!("p{number}"), &json!({NETWORKS: &networks}));
    }
    let uid = lab.pod("web", &json!({NETWORKS: &networks}));
    agent.wait_until_it_knows(41, 1);
    let own: u32 = agent.status("RssAnon").parse().unwrap();
    assert!(own < 8 * 1024, "{own} kB");
    lab.add("web", &uid).succeeds();
    assert_eq!(lab.wait_for_status("web").as_array().unwrap().len(), 2);
}

#[test]
fn every_request_says_who_sends_it() {
    let mut lab = Lab::new();
    let agent = lab.start_agent();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    lab.add("web", &uid).succeeds();
    lab.wait_for_status("web");
    lab.wait_until_told();
    drop(agent);
    let release = env!("CARGO_PKG_VERSION");
    let agents = Server::get().user_agents(|entry| Server::is_by(entry, &lab.node));
    let expected = format!("jackfield/{release} (agent; {})", lab.node);
    assert_eq!(agents.into_iter().collect::<Vec<_>>(), [expected]);

    lab.beside_the_api_server = true;
    lab.configure("kubeconfig", json!(lab.path("kubeconfig")));
    lab.own_account();
    let uid = lab.pod("alone", &json!({NETWORKS: "storage"}));
    lab.add("alone", &uid).succeeds();
    let account = format!("system:serviceaccount:{}:plugin", lab.namespace);
    let agents = Server::get().user_agents(|entry| entry["user"]["username"] == account.as_str());
    let expected = format!("jackfield/{release} (plugin)");
    assert_eq!(agents.into_iter().collect::<Vec<_>>(), [expected]);
}
