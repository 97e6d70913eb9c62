//! A pod is attached through the agent, and the cluster learns of it.

use serde_json::json;

use crate::lab::{Lab, NETWORKS, Sandbox, Server, eventually};

// clause: NPWG-1.3 §5.1 source: the status of every attachment is written to the pod
#[test]
fn an_add_costs_no_read_one_status_and_one_event_and_a_del_nothing() {
    let (lab, agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    lab.definition("backup", "10.3.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "storage, backup"}));
    // What kubelet sees, the agent's watch sees at the same time: the first pod of a network has it
    // read, once, before its ADD asks for it.
    agent.wait_until_it_knows(1, 2);
    let lists = Server::get().lists(&lab.node);
    assert!(lists > 0, "the audit log shows what an agent lists");
    lab.add("web", &uid).succeeds();
    let status = lab.wait_for_status("web");
    let names: Vec<&str> = status
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    let ours = |name: &str| format!("{}/{name}", lab.namespace);
    assert_eq!(names, ["cluster", &ours("storage"), &ours("backup")]);
    assert_eq!(status[1]["interface"], "net1");
    assert_eq!(status[1]["ips"], json!(["10.2.0.5"]));
    assert_eq!(lab.interfaces("web"), ["eth0", "net1", "net2"]);
    lab.wait_until_told();
    let events = lab.events("web");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["reason"], "AddedInterface");
    assert_eq!(events[0]["involvedObject"]["uid"], uid.as_str());
    assert_eq!(events[0]["source"]["host"], lab.node.as_str());
    let message = events[0]["message"].as_str().unwrap();
    assert!(
        message.contains("Add net1 [10.2.0.5/24] from "),
        "{message}"
    );
    let expected = [
        "get network-attachment-definitions 200",
        "get network-attachment-definitions 200",
        "patch pods/status 200",
        "create events 201",
    ];
    assert_eq!(Server::get().requests(&lab.node), expected);

    lab.del("web", &uid).succeeds();
    assert_eq!(lab.interfaces("web"), Vec::<String>::new());
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(
        Server::get().requests(&lab.node),
        expected,
        "a DEL asks and tells nothing"
    );
    assert_eq!(
        Server::get().lists(&lab.node),
        lists,
        "nothing is listed anew"
    );
}

#[test]
fn a_pod_and_a_definition_that_the_watch_has_not_shown_yet_are_read_once_each() {
    let (lab, agent) = Lab::with_agent();
    lab.proxy.fault(|_, path| {
        path.contains("watch=true")
            .then_some(crate::lab::Fault::HangUp)
    });
    lab.proxy.cut();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    lab.add("web", &uid).succeeds();
    lab.wait_for_status("web");
    lab.wait_until_told();
    assert_eq!(
        Server::get().requests(&lab.node),
        [
            "get pods 200",
            "get network-attachment-definitions 200",
            "patch pods/status 200",
            "create events 201"
        ]
    );
    assert_eq!(
        agent.metric(r#"jackfield_lookups_total{what="pod",from="api"}"#),
        Some(1.0)
    );
}

#[test]
fn annotations_that_the_runtime_gives_are_taken_as_they_are() {
    let (lab, _agent) = Lab::with_agent();
    lab.definition("storage", "10.2.0.5/24");
    let uid = lab.pod("web", &json!({}));
    let annotations = Some(json!({NETWORKS: "storage@data0", "other": "x"}));
    lab.call(
        "ADD",
        &Sandbox {
            container: "web",
            pod: "web",
            uid: &uid,
            annotations,
        },
    )
    .succeeds();
    assert_eq!(lab.interfaces("web"), ["eth0", "data0"]);
    assert_eq!(lab.wait_for_status("web")[1]["interface"], "data0");
}

// clause: NPWG-1.3 §4.1.2.1.11 the addresses of the claim are asked for
#[test]
fn an_ipam_claim_is_read_when_a_pod_refers_to_it_and_never_written() {
    let (lab, _agent) = Lab::with_agent();
    lab.definition_with_ips("storage");
    let claims = format!(
        "/apis/k8s.cni.cncf.io/v1alpha1/namespaces/{}/ipamclaims",
        lab.namespace
    );
    lab.admin.create(
        &claims,
        &json!({
            "apiVersion": "k8s.cni.cncf.io/v1alpha1", "kind": "IPAMClaim",
            "metadata": {"name": "vm-a"}, "spec": {"network": "storage", "interface": "net1"},
        }),
    );
    let status = json!({"status": {"ips": ["10.2.0.77/24"]}});
    let claim = lab.admin.merge(&format!("{claims}/vm-a/status"), &status);
    let networks = r#"[{"name":"storage","ipam-claim-reference":"vm-a"}]"#;
    let uid = lab.pod("vm", &json!({NETWORKS: networks}));
    lab.add("vm", &uid).succeeds();
    assert_eq!(lab.wait_for_status("vm")[1]["ips"], json!(["10.2.0.77"]));
    let after = lab.admin.get(&format!("{claims}/vm-a")).unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"],
        claim["metadata"]["resourceVersion"]
    );
    let requests = Server::get().requests(&lab.node);
    let reads = requests.iter().filter(|it| *it == "get ipamclaims 200");
    assert_eq!(reads.count(), 1, "{requests:?}");

    let networks = r#"[{"name":"storage","ipam-claim-reference":"vm-b"}]"#;
    let uid = lab.pod("vm-b", &json!({NETWORKS: networks}));
    lab.add("vm-b", &uid)
        .fails(102, &["no IPAMClaim", "/vm-b in the cluster"]);
}

#[test]
fn a_definition_that_is_not_there_fails_the_add_with_its_name() {
    let (lab, _agent) = Lab::with_agent();
    let uid = lab.pod("web", &json!({NETWORKS: "nowhere"}));
    let name = format!("{}/nowhere", lab.namespace);
    lab.add("web", &uid)
        .fails(102, &["no NetworkAttachmentDefinition", &name]);
    assert_eq!(lab.interfaces("web"), Vec::<String>::new());
    lab.wait_until_told();
    assert_eq!(lab.events("web")[0]["reason"], "NoNetworkFound");
}

#[test]
fn without_an_agent_the_plugin_asks_and_writes_by_its_kubeconfig() {
    let mut lab = Lab::new();
    lab.beside_the_api_server = true;
    lab.configure("kubeconfig", json!(lab.path("kubeconfig")));
    let uid = lab.pod("web", &json!({}));
    let outcome = lab.add("web", &uid);
    // The policy lets agents sign with their node alone; a node without one is another account.
    // The pod is attached, and its status says so: an event is no reason to take that back.
    let warning = "cannot create an event for the pod";
    assert!(outcome.stderr.contains(warning), "{outcome}");
    outcome.succeeds();
    assert_eq!(lab.status("web").unwrap()[0]["ips"], json!(["10.1.0.5"]));
    assert!(lab.events("web").is_empty());
    lab.del("web", &uid).succeeds();
    lab.own_account();
    lab.add("web", &uid).succeeds();
    assert_eq!(lab.status("web").unwrap()[0]["ips"], json!(["10.1.0.5"]));
    assert_eq!(lab.events("web").len(), 1);
    assert!(lab.owed().is_empty());
    lab.del("web", &uid).succeeds();
}

#[test]
fn a_kubeconfig_takes_the_place_of_an_agent_that_is_away_and_of_none_that_is_there() {
    let (mut lab, mut agent) = Lab::with_agent();
    lab.beside_the_api_server = true;
    lab.configure("kubeconfig", json!(lab.path("kubeconfig")));
    let uid = lab.pod("web", &json!({}));
    lab.add("web", &uid).succeeds();
    eventually("the agent has published it", || {
        agent.logged(&["published", "/web"])
    });
    lab.del("web", &uid).succeeds();
    agent.kill();
    lab.own_account();
    lab.add("web", &uid).succeeds();
    assert!(lab.owed().is_empty(), "the plugin told it by itself");
}
