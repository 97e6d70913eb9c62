//! Whose devices, in a cluster: the agent asks kubelet for the plugin, and the API server knows
//! what the devices of DRA drivers are. The pod-resources server is not kubelet's.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use jackfield::cluster::frame::{self, FromAgent, HEADER, MAX_FROM_AGENT, MAX_TO_AGENT, ToAgent};
use jackfield::cluster::{Answer, PodName, Question};
use serde_json::{Value, json};

use crate::lab::{Lab, NETWORKS, Sandbox, Server, eventually, pod};
use crate::pod_resources::{self as kubelet, FakeKubelet, Reply, allocatable, container, pods};

const RESOURCE: &str = "example.com/vf";
const DRIVER: &str = "vf.example.com";

/// A node whose kubelet's places are in the lab, with a network `vf` of [`RESOURCE`].
pub(crate) fn lab() -> Lab {
    let mut lab = Lab::new();
    fs::create_dir_all(lab.path("kubelet/device-plugins")).unwrap();
    lab.configure("podResourcesSocket", json!(socket(&lab)));
    lab.configure(
        "kubeletCheckpoint",
        json!(lab.path("kubelet/device-plugins/checkpoint")),
    );
    lab.configure("devInfoDir", json!(lab.path("devinfo")));
    lab.definition_with_devices("vf", "10.4.0.5/24", RESOURCE);
    recorded(&lab, &[]);
    lab
}

fn socket(lab: &Lab) -> PathBuf {
    lab.path("kubelet/kubelet.sock")
}

/// kubelet's record: which pod has which device.
pub(crate) fn recorded(lab: &Lab, entries: &[(&str, &str)]) {
    let entries: Vec<Value> = entries
        .iter()
        .map(|(uid, id)| {
            json!({"PodUID": uid, "ContainerName": "app", "ResourceName": RESOURCE,
                   "DeviceIDs": {"-1": [id]}, "AllocResp": ""})
        })
        .collect();
    let data = json!({"PodDeviceEntries": entries, "RegisteredDevices": {RESOURCE: ["lab-vf1"]}});
    let text = json!({"Data": data, "Checksum": 1}).to_string();
    fs::write(lab.path("kubelet/device-plugins/checkpoint"), text).unwrap();
}

/// A pod whose container asks a device plugin for one device.
pub(crate) fn asking(lab: &Lab, name: &str) -> String {
    let mut pod = pod(name, &lab.node, &json!({NETWORKS: "vf"}));
    let one = json!({RESOURCE: "1"});
    pod["spec"]["containers"][0]["resources"] = json!({"limits": one, "requests": one});
    create(lab, &pod)
}

/// A pod with a claim for the device `vf1`, which kubelet has prepared.
pub(crate) fn claiming(lab: &Lab, name: &str) -> String {
    let mut pod = pod(name, &lab.node, &json!({NETWORKS: "vf"}));
    pod["spec"]["resourceClaims"] = json!([{"name": "nic", "resourceClaimName": "nic"}]);
    pod["spec"]["containers"][0]["resources"] = json!({"claims": [{"name": "nic"}]});
    let uid = create(lab, &pod);
    let claim = json!({"ClaimUID": "x", "ClaimName": "nic", "Namespace": lab.namespace,
        "PodUIDs": {&uid: {}}, "DriverState": {DRIVER: {"Devices": [
            {"PoolName": "pool-a", "DeviceName": "vf1", "ShareID": null, "RequestNames": ["vf"]}]}}});
    let data = json!({"kind": "DRACheckpoint", "ClaimInfoStateList": [claim]}).to_string();
    let text = json!({"Data": data, "Checksum": 1}).to_string();
    fs::write(lab.path("kubelet/dra_manager_state"), text).unwrap();
    uid
}

fn create(lab: &Lab, pod: &Value) -> String {
    let pod = lab.admin.create(&lab.pods(), pod);
    pod["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// What the driver has on the node, with these attributes.
pub(crate) fn slice(lab: &Lab, attributes: &Value) {
    let spec = json!({"driver": DRIVER, "nodeName": lab.node,
        "pool": {"name": "pool-a", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "vf1", "attributes": attributes}]});
    lab.admin.create(
        "/apis/resource.k8s.io/v1/resourceslices",
        &json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
                "metadata": {"name": format!("{}-vf", lab.node)}, "spec": spec}),
    );
}

/// The server says that the pod has the device `id` of a device plugin.
pub(crate) fn with_device(lab: &Lab, name: &'static str, id: &'static str) -> FakeKubelet {
    let namespace = lab.namespace.clone();
    FakeKubelet::serve(&socket(lab), move |method, _| match method {
        "GetAllocatableResources" => allocatable(&[RESOURCE]),
        _ => {
            let app = container("app", &[(RESOURCE, id)], &[]);
            pods(&[kubelet::pod(&namespace, name, &[app])])
        }
    })
}

/// The server says that the pod has the device `vf1` of its claim.
pub(crate) fn with_claim(lab: &Lab, name: &'static str) -> FakeKubelet {
    let namespace = lab.namespace.clone();
    FakeKubelet::serve(&socket(lab), move |method, _| match method {
        "GetAllocatableResources" => allocatable(&[]),
        _ => {
            let claim = [namespace.as_str(), "nic", DRIVER, "pool-a", "vf1"];
            pods(&[kubelet::pod(
                &namespace,
                name,
                &[container("app", &[], &[claim])],
            )])
        }
    })
}

/// What the journal has of devices.
fn journal(lab: &Lab) -> String {
    let Ok(entries) = fs::read_dir(lab.path("journal/sandboxes")) else {
        return String::new();
    };
    let texts = entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    texts.collect()
}

fn assert_given(lab: &Lab, id: &str, origin: &str) {
    let text = journal(lab);
    for words in [format!(r#""id":"{id}""#), format!(r#""origin":"{origin}""#)] {
        assert!(text.contains(&words), "{words} is missing: {text}");
    }
}

#[test]
fn the_agent_asks_kubelet_once_and_the_plugin_does_not_ask_again() {
    let lab = lab();
    let server = with_device(&lab, "web", "lab-vf1");
    let agent = lab.start_agent();
    let uid = asking(&lab, "web");
    recorded(&lab, &[(&uid, "lab-vf1")]);
    agent.wait_until_it_knows(1, 1);
    lab.add("web", &uid).succeeds();
    assert_given(&lab, "lab-vf1", "pod-resources");
    assert_eq!(server.asked(), ["Get"]);
    lab.wait_for_status("web");
    lab.wait_until_told();
    let expected = [
        "get network-attachment-definitions 200",
        "patch pods/status 200",
        "create events 201",
    ];
    assert_eq!(Server::get().requests(&lab.node), expected);
    lab.del("web", &uid).succeeds();
    // What all pods have is counted some time later.
    let of_pods = server.asked().iter().filter(|it| *it == "Get").count();
    assert_eq!(of_pods, 1, "a DEL asks nobody");
}

#[test]
fn devices_in_use_and_free_are_shown_as_kubelet_has_them() {
    let lab = lab();
    let namespace = lab.namespace.clone();
    let server = FakeKubelet::serve(&socket(&lab), move |method, _| match method {
        "GetAllocatableResources" => allocatable(&[RESOURCE, "example.com/gpu"]),
        _ => {
            let app = container("app", &[(RESOURCE, "lab-vf1")], &[]);
            pods(&[kubelet::pod(&namespace, "web", &[app])])
        }
    });
    let agent = lab.start_agent();
    let uid = asking(&lab, "web");
    recorded(&lab, &[(&uid, "lab-vf1")]);
    lab.add("web", &uid).succeeds();
    let shown = |resource: &str| {
        ["in use", "free"].map(|state| {
            let metric = format!(r#"jackfield_devices{{resource="{resource}",state="{state}"}}"#);
            agent.metric(&metric)
        })
    };
    eventually("the devices are shown", || {
        shown(RESOURCE) == [Some(1.0), Some(0.0)]
    });
    assert_eq!(shown("example.com/gpu"), [Some(0.0), Some(1.0)]);
    let before = server.asked().len();
    for _ in 0..20 {
        shown(RESOURCE);
    }
    let asked = server.asked().len() - before;
    assert!(asked <= 4, "a scrape asks kubelet nothing: {asked}");
}

#[test]
fn a_pod_without_devices_costs_the_agent_no_question_to_kubelet() {
    let lab = lab();
    lab.definition("storage", "10.2.0.5/24");
    let server = with_device(&lab, "web", "lab-vf1");
    let _agent = lab.start_agent();
    let uid = lab.pod("web", &json!({NETWORKS: "storage"}));
    lab.add("web", &uid).succeeds();
    assert_eq!(server.asked(), [""; 0]);
}

#[test]
fn kubelet_away_is_logged_by_the_agent_and_its_record_counts() {
    let lab = lab();
    let agent = lab.start_agent();
    let uid = asking(&lab, "web");
    recorded(&lab, &[(&uid, "lab-vf1")]);
    lab.add("web", &uid).succeeds();
    assert_given(&lab, "lab-vf1", "checkpoint");
    let socket = socket(&lab).display().to_string();
    eventually("it is logged", || {
        agent.logged(&["the socket does not exist", &socket, "web"])
    });
}

#[test]
fn a_pod_that_is_deleted_and_made_anew_never_gets_the_device_of_before() {
    let lab = lab();
    let _server = with_device(&lab, "web", "lab-vf1");
    let _agent = lab.start_agent();
    let old = asking(&lab, "web");
    recorded(&lab, &[(&old, "lab-vf1")]);
    lab.delete_pod("web");
    let new = asking(&lab, "web");
    assert_ne!(old, new);
    let another = format!("the checkpoint lists for UID {old}");
    lab.add("web", &new)
        .fails(104, &[RESOURCE, "names lab-vf1", &another]);
    assert_eq!(journal(&lab), "");
    recorded(&lab, &[(&old, "lab-vf1"), (&new, "lab-vf2")]);
    lab.add("web", &new).succeeds();
    assert_given(&lab, "lab-vf2", "checkpoint");
}

#[test]
fn a_claims_device_is_what_the_nodes_resource_slice_says() {
    let lab = lab();
    let _server = with_claim(&lab, "web");
    let _agent = lab.start_agent();
    let uid = claiming(&lab, "web");
    let line =
        "no ResourceSlice of this node has device vf1 of pool pool-a of driver vf.example.com";
    lab.add("web", &uid).fails(104, &[RESOURCE, line]);
    slice(
        &lab,
        &json!({"k8s.cni.cncf.io/resourceName": {"string": RESOURCE},
                "k8s.cni.cncf.io/deviceID": {"string": "lab-vf1"}}),
    );
    lab.add("web", &uid).succeeds();
    assert_given(&lab, "lab-vf1", "dra");
    assert_eq!(lab.interfaces("web"), ["eth0", "net1"]);
    lab.del("web", &uid).succeeds();
}

#[test]
fn a_claims_device_is_found_without_an_agent_too() {
    let mut lab = lab();
    lab.configure("kubeconfig", json!(lab.path("kubeconfig")));
    lab.beside_the_api_server = true;
    lab.own_account();
    let _server = with_claim(&lab, "web");
    let uid = claiming(&lab, "web");
    slice(
        &lab,
        &json!({"k8s.cni.cncf.io/resourceName": {"string": RESOURCE},
                "k8s.cni.cncf.io/deviceID": {"string": "lab-vf1"}}),
    );
    lab.add("web", &uid).succeeds();
    assert_given(&lab, "lab-vf1", "dra");
    lab.del("web", &uid).succeeds();
}

#[test]
fn an_older_agent_that_does_not_ask_kubelet_leaves_it_to_the_plugin() {
    let lab = lab();
    let server = with_device(&lab, "web", "lab-vf1");
    let uid = asking(&lab, "web");
    recorded(&lab, &[(&uid, "lab-vf1")]);
    let agent = lab.start_agent();
    let answer = asked(&lab, &uid, None);
    drop(agent);
    fs::remove_file(lab.socket()).unwrap();
    // What that release would write: an answer without the key.
    let mut older = serde_json::to_value(FromAgent::Answer(Box::new(answer))).unwrap();
    older["answer"].as_object_mut().unwrap().remove("kubelet");
    let reply = frame::encode(&older, MAX_FROM_AGENT).unwrap();
    let listener = UnixListener::bind(lab.socket()).unwrap();
    let fake = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _: ToAgent = frame::read(&mut stream, MAX_TO_AGENT).unwrap();
        stream.write_all(&reply).unwrap();
        let _ = stream.read(&mut [0; HEADER]);
    });
    lab.add("web", &uid).succeeds();
    fake.join().unwrap();
    assert_given(&lab, "lab-vf1", "pod-resources");
    assert_eq!(server.asked(), ["Get"]);
}

/// What the agent answers to a plugin that names kubelet's socket, or to an older one that does
/// not.
fn asked(lab: &Lab, uid: &str, kubelet: Option<PathBuf>) -> Answer {
    let question = ToAgent::Question(Question {
        pod: Some(PodName {
            namespace: lab.namespace.clone(),
            name: "web".into(),
            uid: Some(uid.into()),
        }),
        kubelet,
        ..Question::default()
    });
    let mut stream = UnixStream::connect(lab.socket()).unwrap();
    let frame = frame::encode(&question, MAX_TO_AGENT).unwrap();
    stream.write_all(&frame).unwrap();
    match frame::read(&mut stream, MAX_FROM_AGENT).unwrap() {
        FromAgent::Answer(answer) => *answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plugin_that_does_not_name_kubelets_socket_costs_kubelet_no_question() {
    let lab = lab();
    let server = with_device(&lab, "web", "lab-vf1");
    let _agent = lab.start_agent();
    let uid = asking(&lab, "web");
    assert_eq!(asked(&lab, &uid, None).kubelet, None);
    assert_eq!(server.asked(), [""; 0]);
    let devices = asked(&lab, &uid, Some(socket(&lab))).kubelet.unwrap();
    assert_eq!(devices.ids_of(RESOURCE).collect::<Vec<_>>(), ["lab-vf1"]);
}

#[test]
fn a_slow_kubelet_holds_up_nobody_elses_question() {
    let lab = lab();
    lab.definition("storage", "10.2.0.5/24");
    let _server = FakeKubelet::serve(&socket(&lab), |_, _| Reply::Silence);
    let _agent = lab.start_agent();
    let uid = asking(&lab, "web");
    recorded(&lab, &[(&uid, "lab-vf1")]);
    let other = lab.pod("other", &json!({NETWORKS: "storage"}));
    let slow = lab.start(
        "ADD",
        &Sandbox {
            container: "web",
            pod: "web",
            uid: &uid,
            annotations: None,
        },
    );
    lab.add("other", &other).succeeds();
    slow.wait().succeeds();
    assert_given(&lab, "lab-vf1", "checkpoint");
}
