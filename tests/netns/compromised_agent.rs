//! An agent in an attacker's hands: what it answers does not decide what runs as root.
//!
//! The agent here is a fake on the socket that answers whatever a test gives it, and the plugin
//! `evil` is a script that notes that it ran.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jackfield::cluster::frame::{self, FromAgent, MAX_FROM_AGENT, MAX_TO_AGENT, ToAgent};
use jackfield::cluster::{Answer, Pod, PodAnnotations};
use jackfield::npwg::Definition;
use serde_json::{Value, json};

use crate::lab::{Lab, Outcome};

const EVIL: &str = r#"{"cniVersion":"1.1.0","name":"cluster","type":"evil"}"#;

/// A lab whose agent answers what it is told to.
struct Rig {
    lab: Lab,
    answer: Arc<Mutex<Answer>>,
    /// Whether it says that it is ready, and nothing else.
    stalls: Arc<AtomicBool>,
}

fn rig() -> Rig {
    let mut lab = Lab::new();
    lab.bystander("evil");
    let socket = lab.path("fake-agent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    lab.configure("manifestDir", Value::Null);
    lab.configure("agentSocket", json!(socket));
    lab.configure("kubeletCheckpoint", json!(lab.path("no-checkpoint")));
    lab.configure("podResourcesSocket", json!(lab.path("no-kubelet.sock")));
    lab.configure(
        "policy",
        json!({ "node": { "types": ["bridge", "host-local"] },
                "namespaces": { "*": { "types": ["ptp", "host-local"], "denyKeys": ["sysctl"] } } }),
    );
    let answer = Arc::new(Mutex::new(Answer {
        pod: Some(Pod::default()),
        ..Answer::default()
    }));
    let stalls = Arc::new(AtomicBool::new(false));
    let (told, silent) = (answer.clone(), stalls.clone());
    // It ends with the tests.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (told, silent) = (told.clone(), silent.clone());
            std::thread::spawn(move || serve(stream, &told, &silent));
        }
    });
    Rig {
        lab,
        answer,
        stalls,
    }
}

fn serve(mut stream: UnixStream, answer: &Mutex<Answer>, stalls: &AtomicBool) {
    while let Ok(message) = frame::read::<ToAgent>(&mut stream, MAX_TO_AGENT) {
        if let ToAgent::Question(question) = message {
            let is_about_something = question.pod.is_some() || !question.networks.is_empty();
            while is_about_something && stalls.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(50));
            }
            let answer = FromAgent::Answer(Box::new(answer.lock().unwrap().clone()));
            let bytes = frame::encode(&answer, MAX_FROM_AGENT).unwrap();
            if stream.write_all(&bytes).is_err() {
                return;
            }
        }
    }
}

impl Rig {
    fn define(&self, object: &str, config: &str, resource: Option<&str>) {
        let definition = Definition {
            object: object.parse().unwrap(),
            config: Some(config.to_owned()),
            resource_name: resource.map(str::to_owned),
        };
        let mut answer = self.answer.lock().unwrap();
        answer
            .definitions
            .retain(|(known, _)| known.to_string() != object);
        answer
            .definitions
            .push((object.parse().unwrap(), Ok(definition)));
    }

    fn annotate(&self, networks: Option<&str>, default_network: Option<&str>) {
        let pod = Pod {
            annotations: PodAnnotations {
                networks: networks.map(str::to_owned),
                default_network: default_network.map(str::to_owned),
            },
            ..Pod::default()
        };
        self.answer.lock().unwrap().pod = Some(pod);
    }

    /// An ADD that attaches the cluster network from the disk and nothing else.
    #[track_caller]
    fn adds_the_cluster_network_alone(&self) {
        self.lab.add();
        assert_eq!(self.lab.pod.links(), ["eth0"]);
        self.lab.del();
        self.evil_did_not_run();
    }

    #[track_caller]
    fn refuses(&self, verb: &str, code: u64, words: &[&str]) {
        self.lab.call(verb).fails(code, words);
        assert_eq!(self.lab.pod.links(), [""; 0]);
        self.evil_did_not_run();
    }

    #[track_caller]
    fn evil_did_not_run(&self) {
        assert_eq!(self.lab.log("calls"), [""; 0]);
    }
}

#[test]
fn it_does_not_replace_what_the_configuration_names_on_disk() {
    let mut rig = rig();
    rig.define("kube-system/cluster", EVIL, None);
    rig.lab.configure("clusterNetwork", json!("cluster"));
    // Not even where nothing restricts it.
    rig.lab.configure("policy", Value::Null);
    rig.adds_the_cluster_network_alone();
}

#[test]
fn its_definitions_of_the_nodes_networks_are_restricted_on_every_verb() {
    let mut rig = rig();
    rig.define("kube-system/told", EVIL, None);
    rig.lab.configure("defaultNetworks", json!(["told"]));
    rig.refuses("ADD", 108, &["policy.node", "plugin evil"]);
    rig.lab.configure("defaultNetworks", Value::Null);
    rig.lab.configure("clusterNetwork", json!("told"));
    rig.lab.configure("cniVersion", json!("1.1.0"));
    rig.refuses("ADD", 108, &["policy.node", "plugin evil"]);
    rig.lab.call("STATUS").fails(50, &["policy.node"]);
    rig.lab.configure("cni.dev/valid-attachments", json!([]));
    assert_ne!(rig.lab.call("GC").exit, 0);
    rig.evil_did_not_run();
}

#[test]
fn its_annotations_select_what_the_policy_of_the_runtimes_namespace_allows() {
    let rig = rig();
    rig.define("demo/evil", EVIL, None);
    rig.define("other/evil", EVIL, None);
    rig.annotate(Some("evil"), None);
    rig.refuses("ADD", 108, &["namespace demo", "plugin evil"]);
    rig.annotate(None, Some("demo/evil"));
    rig.refuses("ADD", 108, &["namespace demo", "plugin evil"]);
    rig.annotate(Some("other/evil"), None);
    rig.refuses("ADD", 108, &["namespaceIsolation"]);
    let hidden = r#"{"cniVersion":"1.0.0","type":"ptp","type":null,"sysctl":{},"Sysctl":null}"#;
    rig.define("demo/evil", hidden, None);
    rig.annotate(Some("evil"), None);
    rig.refuses("ADD", 102, &["\"type\" occurs more than once"]);
}

#[test]
fn its_annotations_do_not_count_beside_the_runtimes_nor_without_a_pod() {
    let mut rig = rig();
    rig.define("demo/evil", EVIL, None);
    rig.annotate(None, Some("demo/evil"));
    let nameless = rig.lab.plugin("ADD").env("CNI_ARGS", "IgnoreUnknown=1");
    rig.lab.configure("policy", Value::Null);
    // An absent definition in defaultNetworks makes the plugin ask at all.
    rig.lab
        .configure("defaultNetworks", json!(["kube-system/none"]));
    let asked = nameless.stdin(rig.lab.conf().to_string().as_bytes()).run();
    asked.success();
    rig.evil_did_not_run();
    rig.lab.del();
    rig.lab.configure("defaultNetworks", Value::Null);
    // The names of annotations may differ in their case alone.
    let annotations = json!({ "example.com/a": "1", "example.com/A": "2" });
    rig.lab.configure(
        "runtimeConfig",
        json!({ "io.kubernetes.cri.pod-annotations": annotations }),
    );
    rig.annotate(Some("evil"), Some("demo/evil"));
    rig.adds_the_cluster_network_alone();
}

#[test]
fn it_does_not_say_which_devices_a_pod_has() {
    let mut rig = rig();
    rig.lab.configure("policy", Value::Null);
    rig.define("demo/vf", EVIL, Some("example.com/vf"));
    rig.annotate(Some("vf"), None);
    if let Some(pod) = &mut rig.answer.lock().unwrap().pod {
        let ids = vec!["0000:01:10.0".to_owned()];
        pod.devices = [("example.com/vf".to_owned(), ids)].into();
    }
    rig.refuses("ADD", 104, &["no-checkpoint"]);
}

/// Ends well long before any deadline.
#[track_caller]
fn is_quick(outcome: &Outcome) {
    assert_eq!(outcome.exit, 0, "{outcome}");
    assert!(outcome.took < Duration::from_secs(15), "{outcome}");
}

#[test]
fn by_silence_it_does_not_stall_a_del_that_has_no_record() {
    let mut rig = rig();
    rig.lab.configure("policy", Value::Null);
    rig.lab.configure("clusterNetwork", json!("cluster"));
    rig.stalls.store(true, Ordering::Relaxed);
    let record = format!("journal/sandboxes/{}@eth0", rig.lab.container());
    rig.lab.write(&record, "no record");
    is_quick(&rig.lab.call("DEL"));
    let result = json!({ "cniVersion": "1.0.0", "interfaces": [] });
    rig.lab.configure("prevResult", result);
    is_quick(&rig.lab.call("DEL"));
    rig.stalls.store(false, Ordering::Relaxed);
}

#[test]
fn by_silence_it_does_not_stall_a_del_of_what_its_plugins_refuse() {
    let mut rig = rig();
    rig.lab.configure("policy", Value::Null);
    let mut macvlan = rig.lab.macvlan();
    macvlan["ipam"] = json!({ "type": "host-local" });
    rig.define("demo/a", &macvlan.to_string(), None);
    rig.annotate(Some("a"), None);
    rig.lab.call("ADD").fails(100, &["still owed"]);
    rig.stalls.store(true, Ordering::Relaxed);
    let outcome = rig.lab.call("DEL");
    outcome.fails(106, &["demo/a (net1)"]);
    assert!(outcome.took < Duration::from_secs(15), "{outcome}");
    rig.stalls.store(false, Ordering::Relaxed);
}

#[test]
fn by_silence_it_does_not_keep_what_is_gone_from_being_collected() {
    let mut rig = rig();
    rig.lab.configure("policy", Value::Null);
    rig.lab.configure("cniVersion", json!("1.1.0"));
    rig.lab.add();
    rig.lab.configure("clusterNetwork", json!("elsewhere"));
    rig.lab.configure("cni.dev/valid-attachments", json!([]));
    rig.stalls.store(true, Ordering::Relaxed);
    rig.lab.call("GC").fails(11, &["no answer in time"]);
    rig.stalls.store(false, Ordering::Relaxed);
    assert_eq!(rig.lab.pod.links(), [""; 0]);
    for dir in ["journal/sandboxes", "journal/owed"] {
        let files = std::fs::read_dir(rig.lab.path(dir)).map_or(0, Iterator::count);
        assert_eq!(files, 0, "{dir}");
    }
}
