//! Whose devices: kubelet's pod-resources API and its own record, as the plugin finds them on a
//! node without an agent. The server is not kubelet's: it is there for what kubelet does rarely.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use device_info::fixtures;
use serde_json::{Value, json};

use crate::lab::{Lab, Outcome};
use crate::pod_resources::{
    FakeKubelet, NOT_FOUND, Reply, TOO_OFTEN, allocatable, container, pod, pods,
};

const RESOURCE: &str = "intel.com/sriov";
const VFIO: &str = "0000:01:10.0";
const KERNEL: &str = "0000:01:10.2";
/// The delegate answers what sriov-cni answers for a VF that a program drives.
const DELEGATE: &str = r#"
    if [ $CNI_COMMAND = ADD ]; then
        echo '{"cniVersion":"1.0.0","interfaces":[{"name":"net1","mac":"02:00:00:00:10:00","sandbox":"/x"}]}'
    fi
    exit 0"#;

/// A node whose pod `demo/web` has a container `c` that asks for so many devices, and selects
/// `networks`.
fn lab(asked: u64, networks: &str) -> Lab {
    let mut lab = Lab::new();
    fixtures::igb_vfio().build(&lab.path("node")).unwrap();
    fs::create_dir_all(lab.path("kubelet/device-plugins")).unwrap();
    lab.configure("sysfsRoot", json!(lab.path("node/sys")));
    lab.configure("kubeletCheckpoint", json!(record(&lab)));
    lab.configure("podResourcesSocket", json!(socket(&lab)));
    lab.configure("verify", json!("off"));
    lab.recorder("vf", "-", DELEGATE);
    let manifest = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "vf", "namespace": "demo",
                      "annotations": { "k8s.v1.cni.cncf.io/resourceName": RESOURCE } },
        "spec": { "config": json!({ "cniVersion": "1.0.0", "type": "vf" }).to_string() },
    });
    lab.write("cluster/nad.json", &manifest.to_string());
    manifest_of(
        &lab,
        json!({ "k8s.v1.cni.cncf.io/networks": networks }),
        |spec| {
            spec["containers"] = json!([{ "name": "c", "resources": { "limits": { RESOURCE: asked.to_string() } } }]);
        },
    );
    lab
}

/// Writes the pod's manifest, with a specification.
fn manifest_of(lab: &Lab, annotations: Value, specify: impl FnOnce(&mut Value)) {
    let mut manifest = json!({
        "apiVersion": "v1", "kind": "Pod", "spec": {},
        "metadata": { "name": "web", "namespace": "demo", "annotations": annotations },
    });
    specify(&mut manifest["spec"]);
    lab.write("cluster/pod-demo-web.json", &manifest.to_string());
}

fn record(lab: &Lab) -> PathBuf {
    lab.path("kubelet/device-plugins/checkpoint")
}

fn socket(lab: &Lab) -> PathBuf {
    lab.path("kubelet/kubelet.sock")
}

/// kubelet's record: which pod has which devices.
fn recorded(lab: &Lab, entries: &[(&str, &[&str])]) {
    let entries: Vec<Value> = entries
        .iter()
        .map(|(uid, ids)| {
            json!({ "PodUID": uid, "ContainerName": "c", "ResourceName": RESOURCE,
                    "DeviceIDs": { "0": ids }, "AllocResp": "" })
        })
        .collect();
    let data =
        json!({ "PodDeviceEntries": entries, "RegisteredDevices": { RESOURCE: [VFIO, KERNEL] } });
    fs::write(
        record(lab),
        json!({ "Data": data, "Checksum": 1 }).to_string(),
    )
    .unwrap();
}

/// A server whose pod `demo/web` has these devices.
fn kubelet(lab: &Lab, ids: &'static [&'static str]) -> FakeKubelet {
    FakeKubelet::serve(&socket(lab), move |method, _| match method {
        "GetAllocatableResources" => allocatable(&[RESOURCE]),
        _ => web(ids),
    })
}

fn web(ids: &[&str]) -> Reply {
    let devices: Vec<(&str, &str)> = ids.iter().map(|id| (RESOURCE, *id)).collect();
    pods(&[pod("demo", "web", &[container("c", &devices, &[])])])
}

/// A call as kubelet's runtime makes it, for the pod with UID `new`.
fn call(lab: &Lab, verb: &str) -> Outcome {
    let args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web;K8S_POD_UID=new";
    lab.plugin(verb).env("CNI_ARGS", args).run()
}

/// The devices that the delegate was given by the last ADDs, one for each network.
fn given(lab: &Lab, networks: usize) -> Vec<String> {
    let told = lab.recorded("vf", "ADD");
    let last = told.iter().rev().take(networks).rev();
    last.map(|it| it["deviceID"].as_str().unwrap_or("-").to_owned())
        .collect()
}

fn attaches(lab: &Lab, expected: &[&str]) {
    call(lab, "ADD").success();
    assert_eq!(given(lab, expected.len()), expected);
    assert_eq!(call(lab, "DEL").exit, 0);
    lab.assert_nothing_left();
}

fn refuses(lab: &Lab, words: &[&str]) {
    call(lab, "ADD").fails(104, &[&["demo/vf (net1)", RESOURCE], words].concat());
    assert_eq!(lab.log("calls"), [""; 0], "nothing ran");
    assert_eq!(call(lab, "DEL").exit, 0);
    lab.assert_nothing_left();
}

#[test]
fn a_pod_without_devices_costs_no_question_to_kubelet() {
    let lab = lab(0, "plain");
    lab.definition("demo/plain", &lab.ptp("10.42.0.0/24"));
    let kubelet = kubelet(&lab, &[]);
    call(&lab, "ADD").success();
    assert_eq!(kubelet.asked(), [""; 0]);
    call(&lab, "DEL");
    assert_eq!(kubelet.asked(), [""; 0], "nor does any DEL ask");
    drop(kubelet);
    lab.assert_nothing_left();
}

#[test]
fn explain_says_who_says_that_a_device_is_the_pods() {
    let lab = lab(1, "vf");
    // The command line's pod has no UID but the manifest's, and this one has none.
    manifest_of(&lab, json!({ "k8s.v1.cni.cncf.io/networks": "vf" }), |_| {});
    let manifest = fs::read_to_string(lab.path("cluster/pod-demo-web.json")).unwrap();
    let manifest = manifest.replace("\"name\":\"web\"", "\"name\":\"web\",\"uid\":\"new\"");
    lab.write("cluster/pod-demo-web.json", &manifest);
    recorded(&lab, &[("new", &[VFIO])]);
    let explained = || {
        let shown = lab.command("explain", &["-o", "json"]).run().success();
        let text = lab.command("explain", &[]).run().stdout;
        (shown["attachments"][1]["deviceFrom"].clone(), text)
    };
    let server = kubelet(&lab, &[VFIO]);
    let (from, text) = explained();
    assert_eq!(from, "pod-resources");
    let line = "device  0000:01:10.0 of intel.com/sriov, from kubelet's pod-resources";
    assert!(text.contains(line), "{text}");
    drop(server);
    let (from, text) = explained();
    assert_eq!(from, "checkpoint");
    assert!(text.contains("from kubelet's checkpoint\n"), "{text}");
    let note = format!(
        "Note: kubelet's pod-resources at {}",
        socket(&lab).display()
    );
    assert!(text.contains(&note), "the reason is said: {text}");
    let devices = json!({ RESOURCE: [VFIO] }).to_string();
    let annotations =
        json!({ "k8s.v1.cni.cncf.io/networks": "vf", "jackfield.io/devices": devices });
    manifest_of(&lab, annotations, |_| {});
    assert_eq!(explained().0, "manifest");
    lab.assert_nothing_left();
}

#[test]
fn kubelet_away_slow_limiting_or_empty_leaves_its_own_record_to_count() {
    let lab = lab(1, "vf");
    recorded(&lab, &[("old", &[KERNEL]), ("new", &[VFIO])]);
    attaches(&lab, &[VFIO]);
    type Answers = Box<dyn Fn(&str, usize) -> Reply + Send + Sync>;
    let table: [(&str, Answers); 6] = [
        ("slow", Box::new(|_, _| Reply::Silence)),
        (
            "late",
            Box::new(|_, _| Reply::After(Duration::from_millis(300), Box::new(web(&[VFIO])))),
        ),
        (
            "limiting",
            Box::new(|_, before| if before < 3 { TOO_OFTEN } else { web(&[VFIO]) }),
        ),
        ("always limiting", Box::new(|_, _| TOO_OFTEN)),
        (
            "empty after its restart",
            Box::new(|_, _| Reply::Message(Vec::new())),
        ),
        (
            "something else",
            Box::new(|_, _| Reply::Garbage(b"HTTP/1.1 400")),
        ),
    ];
    for (what, answers) in table {
        let server = FakeKubelet::serve(&socket(&lab), answers);
        attaches(&lab, &[VFIO]);
        assert!(!server.asked().is_empty(), "{what}");
    }
}

#[test]
fn a_deleted_pod_of_the_same_name_lends_nothing_whatever_kubelet_says() {
    let lab = lab(1, "vf");
    let server = kubelet(&lab, &[VFIO]);
    recorded(&lab, &[("old", &[VFIO])]);
    let file = record(&lab).display().to_string();
    refuses(
        &lab,
        &[
            "names 0000:01:10.0",
            "the checkpoint lists for UID old",
            &file,
            "recreate the pod",
        ],
    );
    assert!(server.asked().len() > 1, "it was asked again");
    recorded(&lab, &[("old", &[VFIO]), ("new", &[KERNEL])]);
    attaches(&lab, &[KERNEL]);
}

#[test]
fn a_pod_that_kubelet_does_not_know_yet_is_waited_for() {
    let lab = lab(1, "vf");
    recorded(&lab, &[]);
    let file = record(&lab);
    let later = {
        recorded(&lab, &[("new", &[VFIO])]);
        let text = fs::read_to_string(&file).unwrap();
        recorded(&lab, &[]);
        text
    };
    let server = FakeKubelet::serve(&socket(&lab), move |method, before| match method {
        "GetAllocatableResources" => allocatable(&[]),
        _ if before < 2 => NOT_FOUND,
        _ => {
            fs::write(&file, &later).unwrap();
            web(&[VFIO])
        }
    });
    attaches(&lab, &[VFIO]);
    let asked = server.asked();
    assert_eq!(
        asked.iter().filter(|method| *method == "Get").count(),
        3,
        "{asked:?}"
    );
}

#[test]
fn an_order_that_changes_from_call_to_call_pairs_the_same() {
    let lab = lab(2, "vf,vf");
    recorded(&lab, &[("new", &[KERNEL, VFIO])]);
    let _server = FakeKubelet::serve(&socket(&lab), |_, before| {
        web(if before % 2 == 0 {
            &[VFIO, KERNEL]
        } else {
            &[KERNEL, VFIO]
        })
    });
    for _ in 0..2 {
        attaches(&lab, &[VFIO, KERNEL]);
    }
}

#[test]
fn a_kubelet_without_get_is_asked_for_its_list() {
    let lab = lab(1, "vf");
    recorded(&lab, &[("new", &[VFIO])]);
    let server = FakeKubelet::serve(&socket(&lab), |method, _| match method {
        "Get" => Reply::Refusal(12, "unknown method Get for service v1.PodResourcesLister"),
        _ => pods(&[
            pod(
                "other",
                "web",
                &[container("c", &[(RESOURCE, KERNEL)], &[])],
            ),
            pod("demo", "web", &[container("c", &[(RESOURCE, VFIO)], &[])]),
        ]),
    });
    attaches(&lab, &[VFIO]);
    assert_eq!(server.asked(), ["Get", "List"]);
}

#[test]
fn a_resource_with_too_few_devices_fails_before_anything_runs() {
    let lab = lab(1, "vf,vf");
    recorded(&lab, &[("new", &[VFIO])]);
    let _server = kubelet(&lab, &[VFIO]);
    call(&lab, "ADD").fails(104, &["demo/vf (net2)", RESOURCE, "the pod has 1"]);
    assert_eq!(lab.log("calls"), [""; 0]);
    lab.assert_nothing_left();
}

#[test]
fn a_node_counter_is_no_device_and_is_not_waited_for() {
    let lab = lab(1, "vf");
    let data = json!({ "PodDeviceEntries": [], "RegisteredDevices": { "other.com/vf": [] } });
    fs::write(
        record(&lab),
        json!({ "Data": data, "Checksum": 1 }).to_string(),
    )
    .unwrap();
    let server = FakeKubelet::serve(&socket(&lab), |method, _| match method {
        "GetAllocatableResources" => allocatable(&["other.com/vf"]),
        _ => web(&[]),
    });
    attaches(&lab, &["-"]);
    assert_eq!(server.asked(), ["Get", "GetAllocatableResources"]);
}

#[test]
fn a_record_torn_or_of_an_unknown_version_fails_by_its_name() {
    let lab = lab(1, "vf");
    let _server = kubelet(&lab, &[VFIO]);
    let file = record(&lab).display().to_string();
    for (text, words) in [
        (r#"{"Data":{"PodDev"#, "is not valid JSON"),
        (r#"{"Data":{"v3":{}},"Checksum":1}"#, "unknown version"),
    ] {
        fs::write(record(&lab), text).unwrap();
        refuses(&lab, &[VFIO, &file, words]);
    }
}

#[test]
fn a_named_device_is_taken_from_kubelets_record_also_where_no_definition_has_a_resource() {
    let lab = lab(1, r#"[{"name":"free","deviceID":"0000:01:10.0"}]"#);
    lab.definition("demo/free", &json!({ "cniVersion": "1.0.0", "type": "vf" }));
    recorded(&lab, &[("new", &[VFIO]), ("old", &[KERNEL])]);
    let _server = kubelet(&lab, &[VFIO]);
    attaches(&lab, &[VFIO]);
    manifest_of(
        &lab,
        json!({ "k8s.v1.cni.cncf.io/networks": format!(r#"[{{"name":"free","deviceID":"{KERNEL}"}}]"#) }),
        |_| {},
    );
    call(&lab, "ADD").fails(
        104,
        &["demo/free (net1)", KERNEL, "not a device of this pod"],
    );
    assert_eq!(call(&lab, "DEL").exit, 0);
    lab.assert_nothing_left();
}

#[test]
fn a_claims_device_that_no_slice_identifies_is_named_with_its_driver() {
    let lab = lab(0, "vf");
    manifest_of(
        &lab,
        json!({ "k8s.v1.cni.cncf.io/networks": "vf" }),
        |spec| {
            spec["resourceClaims"] = json!([{ "name": "nic" }]);
        },
    );
    recorded(&lab, &[]);
    let claim = ["demo", "web-nic", "vf.example.com", "pool-a", "vf1"];
    let _server = FakeKubelet::serve(&socket(&lab), move |_, _| {
        pods(&[pod("demo", "web", &[container("c", &[], &[claim])])])
    });
    refuses(
        &lab,
        &[
            "device vf1 of pool pool-a of driver vf.example.com",
            "no ResourceSlice",
        ],
    );
}
