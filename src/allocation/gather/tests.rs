//! The rule by which a pod's devices are found out: each test is a row of it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::cluster::Container;
use crate::kubelet::{ContainerDevices, DynamicDevice, Resource, SliceIdentity};

const DRIVER: &str = "vf.example.com";

/// A node and a pod of it.
struct Case {
    dir: tempfile::TempDir,
    pod: Pod,
    uid: Option<&'static str>,
    told: Option<PodDevices>,
    everything: bool,
    /// What is told when it is asked again.
    later: Option<PodDevices>,
    asked_again: Cell<usize>,
    patience: Duration,
    deadline: Duration,
}

impl Case {
    /// Pod `new`, with one container `c` that asks for so many of `r`; nothing is known of it.
    fn of(asked: u64) -> Case {
        Case {
            dir: tempfile::tempdir().unwrap(),
            pod: Pod {
                containers: vec![container("c", asked, false)],
                ..Pod::default()
            },
            uid: Some("new"),
            told: Some(PodDevices::default()),
            everything: false,
            later: None,
            asked_again: Cell::new(0),
            patience: Duration::from_millis(200),
            deadline: Duration::from_secs(60),
        }
    }

    fn checkpoint(&self) -> PathBuf {
        self.dir.path().join("device-plugins/checkpoint")
    }

    fn write(&self, path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// kubelet's record: `pod container ids…` of `r`.
    fn recorded(self, entries: &[&str]) -> Case {
        self.write(&self.checkpoint(), &checkpoint(entries));
        self
    }

    fn broken(self, text: &str) -> Case {
        self.write(&self.checkpoint(), text);
        self
    }

    /// What pod-resources says: `container ids…` of `r`.
    fn told(mut self, containers: &[&str]) -> Case {
        self.told = Some(told(containers));
        self
    }

    /// kubelet's record of claims: which pod has which device of the pool.
    fn claimed(self, pods: &[(&str, &str)]) -> Case {
        let claims: Vec<Value> = pods
            .iter()
            .map(|(uid, device)| {
                json!({"ClaimUID": "x", "ClaimName": "nic", "Namespace": "n", "PodUIDs": {*uid: {}},
                       "DriverState": {DRIVER: {"Devices": [
                           {"PoolName": "pool", "DeviceName": device, "ShareID": null}]}}})
            })
            .collect();
        let data = json!({"kind": "DRACheckpoint", "ClaimInfoStateList": claims}).to_string();
        let text = json!({"Data": data, "Checksum": 1}).to_string();
        self.write(&self.dir.path().join("dra_manager_state"), &text);
        self
    }

    fn allocation(&self) -> Allocation {
        let name = PodName {
            namespace: "n".to_owned(),
            name: "p".to_owned(),
            uid: self.uid.map(str::to_owned),
        };
        let checkpoint = self.checkpoint();
        let sources = Sources {
            name: Some(&name),
            pod: Some(&self.pod),
            told: self.told.as_ref(),
            checkpoint: &checkpoint,
            everything: self.everything,
            until: Instant::now() + self.patience,
            deadline: Instant::now() + self.deadline,
        };
        gather(&sources, &["r"], &mut || {
            self.asked_again.set(self.asked_again.get() + 1);
            self.later.clone()
        })
    }

    fn supply(&self) -> Supply {
        self.allocation().supply("r").unwrap().clone()
    }

    fn ids(&self) -> (Vec<String>, Origin) {
        match self.supply() {
            Supply::Devices { ids, origin } => (ids, origin),
            other => panic!("{other:?}"),
        }
    }

    /// The line that says why nothing is known, which holds all of `words`.
    fn fails(&self, words: &[&str]) {
        let Supply::Unknown(line) = self.supply() else {
            panic!("{:?}", self.supply());
        };
        assert!(line.starts_with("devices of resource r: "), "{line}");
        assert!(line.contains("; ") && !line.contains('\n'), "{line}");
        for word in words {
            assert!(line.contains(word), "{word:?} is missing: {line}");
        }
    }

    fn waited(&self) -> bool {
        self.asked_again.get() > 0
    }
}

fn container(name: &str, asked: u64, ends_first: bool) -> Container {
    let mut requests = BTreeMap::new();
    if asked > 0 {
        requests.insert("r".to_owned(), asked);
    }
    Container {
        name: name.to_owned(),
        requests,
        ends_first,
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn checkpoint(entries: &[&str]) -> String {
    let entries: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let entry = words(entry);
            json!({"PodUID": entry[0], "ContainerName": entry[1], "ResourceName": "r",
                   "DeviceIDs": {"0": entry[2..]}, "AllocResp": ""})
        })
        .collect();
    let data = json!({"PodDeviceEntries": entries, "RegisteredDevices": {"r": ["d1", "d2", "d3"]}});
    json!({"Data": data, "Checksum": 1}).to_string()
}

fn told(containers: &[&str]) -> PodDevices {
    let containers = containers.iter().map(|container| {
        let container = words(container);
        let resource = Resource {
            name: "r".to_owned(),
            ids: container[1..].to_vec(),
        };
        ContainerDevices {
            name: container[0].clone(),
            resources: Some(resource)
                .filter(|it| !it.ids.is_empty())
                .into_iter()
                .collect(),
            dynamic: Vec::new(),
        }
    });
    PodDevices {
        containers: containers.collect(),
        on_node: Some(vec!["r".to_owned()]),
        failure: None,
    }
}

/// What a slice says of a device: its resource and its identifier.
type Sliced<'a> = Option<(Option<&'a str>, Option<&'a str>)>;

/// Devices of claim `n/nic`, as kubelet tells of them, with what slices say.
fn dynamic(devices: &[(&str, Sliced<'_>)]) -> PodDevices {
    let dynamic = devices.iter().map(|(name, identity)| DynamicDevice {
        claim: "n/nic".to_owned(),
        driver: DRIVER.to_owned(),
        pool: "pool".to_owned(),
        device: (*name).to_owned(),
        identity: identity.map(|(resource, id)| SliceIdentity {
            resource: resource.map(str::to_owned),
            id: id.map(str::to_owned),
        }),
    });
    PodDevices {
        containers: vec![ContainerDevices {
            name: "c".to_owned(),
            resources: Vec::new(),
            dynamic: dynamic.collect(),
        }],
        on_node: Some(vec!["r".to_owned()]),
        failure: None,
    }
}

#[test]
fn pod_resources_and_kubelets_record_of_the_uid_agree_and_nobody_waits() {
    let case = Case::of(1)
        .recorded(&["new c d1", "old c d2"])
        .told(&["c d1"]);
    assert_eq!(case.ids(), (words("d1"), Origin::PodResources));
    assert!(!case.waited());
    assert_eq!(case.allocation().remarks, [""; 0]);
}

#[test]
fn empty_answer_after_kubelets_restart_is_no_proof_and_the_checkpoint_by_uid_counts() {
    for told in [None, Some(PodDevices::default())] {
        let mut case = Case::of(2).recorded(&["new c d2 d1"]);
        case.told = told;
        assert_eq!(case.ids(), (words("d1 d2"), Origin::Checkpoint));
        assert!(!case.waited(), "the record is right at any time");
    }
}

#[test]
fn an_answer_with_an_error_is_no_proof_and_the_line_is_kept_for_people() {
    let mut case = Case::of(1).recorded(&["new c d1"]);
    let failure = "kubelet's pod-resources at /s: nobody listens there; start it".to_owned();
    case.told.as_mut().unwrap().failure = Some(failure.clone());
    assert_eq!(case.ids(), (words("d1"), Origin::Checkpoint));
    assert_eq!(case.allocation().remarks, [failure]);
}

#[test]
fn podresources_a_pod_of_the_same_name_that_is_deleted_never_lends_its_devices() {
    // Kubelet still speaks of the old one, and has nothing on record for the new one yet.
    let case = Case::of(1).recorded(&["old c d1"]).told(&["c d1"]);
    case.fails(&[
        "pod-resources names d1",
        "another pod of UID old",
        "UID new",
        "checkpoint",
    ]);
    assert!(case.waited());
    // By now it has: its record counts, and people are told.
    let case = Case::of(1)
        .recorded(&["old c d1", "new c d2"])
        .told(&["c d1"]);
    assert_eq!(case.ids(), (words("d2"), Origin::Checkpoint));
    let remarks = case.allocation().remarks;
    assert!(remarks[0].contains("names d1 of resource r"), "{remarks:?}");
    // The record has forgotten the old one already.
    let case = Case::of(1).recorded(&[]).told(&["c d1"]);
    case.fails(&["pod-resources names d1", "another pod"]);
    // A pod that asks for none has none.
    let case = Case::of(0).recorded(&["old c d1"]).told(&["c d1"]);
    assert_eq!(case.ids().0, [""; 0]);
}

#[test]
fn the_runtimes_uid_counts_and_without_any_nothing_is_known() {
    let mut case = Case::of(1).recorded(&["new c d2", "old c d1"]);
    case.pod.uid = Some("old".to_owned());
    assert_eq!(case.ids().0, ["d2"]);
    case.uid = None;
    assert_eq!(
        case.ids().0,
        ["d1"],
        "the cluster's, where the runtime gives none"
    );
    case.pod.uid = None;
    case.fails(&["K8S_POD_UID"]);
}

#[test]
fn podresources_what_kubelet_does_not_know_yet_after_a_reboot_is_waited_for() {
    let case = Case::of(1).recorded(&["old c d1"]);
    let (path, text) = (case.checkpoint(), checkpoint(&["new c d2"]));
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(60));
        std::fs::write(path, text).unwrap();
    });
    let mut case = case;
    case.patience = Duration::from_secs(20);
    assert_eq!(case.ids().0, ["d2"]);
    writer.join().unwrap();
    assert!(case.waited());
}

#[test]
fn what_never_comes_fails_with_the_pod_the_file_and_what_kubelet_says() {
    let case = Case::of(2).recorded(&["new c d1"]).told(&["c d1"]);
    let file = case.checkpoint().display().to_string();
    case.fails(&[
        &file,
        "has 1 of 2 for this pod, UID new",
        "recreate the pod, or restart kubelet",
    ]);
    let case = Case::of(1).recorded(&[]);
    case.fails(&["0 of 1", "pod-resources does not know the pod"]);
    let case = Case::of(1).recorded(&[]).told(&["c"]);
    case.fails(&["0 of 1", "pod-resources names none"]);
    let mut case = Case::of(1).recorded(&[]);
    case.told.as_mut().unwrap().failure = Some("kubelet's pod-resources at /s: slow; x".into());
    case.fails(&["0 of 1", "/s: slow"]);
}

#[test]
fn without_kubelets_record_nothing_says_whose_a_device_is() {
    let torn = &checkpoint(&["new c d1"])[..40];
    let strange = r#"{"Data":{"v3":{}},"Checksum":1}"#;
    for (text, expected, is_waited_for) in [
        (Some(torn), "torn", true),
        (Some(strange), "unknown version", false),
        (None, "is not there", false),
    ] {
        let case = Case::of(1).told(&["c d1"]);
        let case = match text {
            Some(text) => case.broken(text),
            None => case,
        };
        let file = case.checkpoint().display().to_string();
        case.fails(&[
            "pod-resources names d1, but only the checkpoint says",
            &file,
            expected,
        ]);
        assert_eq!(case.waited(), is_waited_for, "{expected}");
    }
}

#[test]
fn a_torn_checkpoint_is_read_again() {
    let mut case = Case::of(1).broken("{\"Data\":");
    case.patience = Duration::from_secs(20);
    let (path, text) = (case.checkpoint(), checkpoint(&["new c d2"]));
    let writer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(60));
        std::fs::write(path, text).unwrap();
    });
    assert_eq!(case.ids().0, ["d2"]);
    writer.join().unwrap();
}

#[test]
fn the_order_in_which_kubelet_lists_changes_and_the_pairing_does_not() {
    let entries = ["new a 0000:02:00.3 0000:01:10.0", "new b 0000:01:02.0"];
    let expected = ["0000:01:10.0", "0000:02:00.3", "0000:01:02.0"];
    for (recorded, told) in [
        ([0, 1], ["a 0000:02:00.3 0000:01:10.0", "b 0000:01:02.0"]),
        ([1, 0], ["a 0000:01:10.0 0000:02:00.3", "b 0000:01:02.0"]),
    ] {
        let mut case = Case::of(0)
            .recorded(&recorded.map(|index| entries[index]))
            .told(&told);
        case.pod.containers = vec![container("a", 2, false), container("b", 1, false)];
        assert_eq!(
            case.ids(),
            (expected.map(str::to_owned).to_vec(), Origin::PodResources)
        );
        // Kubelet's own order of containers, where the cluster does not tell it.
        case.pod.containers.clear();
        assert_eq!(case.ids().0, expected);
    }
}

#[test]
fn sidecars_come_first_and_devices_that_an_init_container_hands_on_count_once_and_last() {
    let entries = ["new first d1 d2 d3", "new app d1 d2", "new beside d9"];
    let mut case = Case::of(0)
        .recorded(&entries)
        .told(&["beside d9", "app d2 d1"]);
    case.pod.containers = vec![
        container("first", 3, true),
        container("beside", 1, false),
        container("app", 2, false),
    ];
    assert_eq!(case.ids().0, words("d9 d1 d2 d3"));
    // Three lasting ones must be there, handed on or not.
    let mut case = Case::of(0).recorded(&["new first d1 d2", "new app d1 d2"]);
    case.pod.containers = vec![
        container("first", 2, true),
        container("beside", 1, false),
        container("app", 2, false),
    ];
    case.fails(&["has 2 of 3"]);
}

#[test]
fn a_resource_that_is_neither_registered_nor_allocatable_is_no_device() {
    let data = json!({"PodDeviceEntries": [], "RegisteredDevices": {"other": []}});
    let none = json!({"Data": data, "Checksum": 1}).to_string();
    let mut case = Case::of(1).broken(&none).told(&["c"]);
    case.told.as_mut().unwrap().on_node = Some(vec!["other".to_owned()]);
    assert_eq!(case.supply(), Supply::NoDevices);
    assert!(!case.waited(), "a counter costs no time");
    // Allocatable it is a device, and one is missing.
    case.told.as_mut().unwrap().on_node = Some(vec!["r".to_owned()]);
    case.fails(&["0 of 1"]);
    // An empty answer of a kubelet that is starting proves nothing of a resource asked for.
    case.told = Some(PodDevices {
        on_node: Some(Vec::new()),
        ..PodDevices::default()
    });
    case.fails(&["whether it has any", "kubelet does not know the pod"]);
    // Nobody asks, nobody has it: a definition may say what it likes.
    case.pod.containers.clear();
    assert_eq!(case.supply(), Supply::NoDevices);
}

#[test]
fn dra_a_pod_that_forgot_its_claim_has_no_device_although_no_plugin_wrote_a_checkpoint() {
    let mut case = Case::of(0).told(&["c"]);
    assert_eq!(case.ids(), (Vec::new(), Origin::Checkpoint));
    assert!(!case.waited());
    // Of a resource that no driver has either, nothing is missing.
    case.told.as_mut().unwrap().on_node = Some(Vec::new());
    assert_eq!(case.supply(), Supply::NoDevices);
    // Whether a kubelet that is starting has devices, its record alone can say.
    case.told = Some(PodDevices::default());
    case.fails(&["is not there"]);
}

#[test]
fn without_a_kubelet_the_embedded_cluster_says_it_all() {
    let mut case = Case::of(0);
    case.pod.devices = BTreeMap::from([("s".to_owned(), words("e1"))]);
    assert_eq!(case.ids(), (Vec::new(), Origin::Manifest));
    case.pod.devices = BTreeMap::from([("r".to_owned(), words("0000:01:10.0 0000:01:02.0"))]);
    let expected = words("0000:01:02.0 0000:01:10.0");
    assert_eq!(case.ids(), (expected, Origin::Manifest));
    assert!(!case.waited());
}

#[test]
fn dra_a_claims_device_is_what_its_slice_says_when_kubelets_record_has_it_for_this_uid() {
    let mut case =
        Case::of(0)
            .recorded(&[])
            .claimed(&[("new", "vf1"), ("new", "vf0"), ("old", "vf2")]);
    case.pod.has_claims = true;
    let own = |id| Some((Some("r"), Some(id)));
    case.told = Some(dynamic(&[
        ("vf1", own("0000:01:10.1")),
        ("vf0", own("0000:01:02.0")),
    ]));
    let expected = words("0000:01:02.0 0000:01:10.1");
    assert_eq!(case.ids(), (expected, Origin::Dra));
    assert!(!case.waited());
    case.told = Some(dynamic(&[("vf2", own("0000:01:10.2"))]));
    case.fails(&[
        "device vf2 of pool pool of driver vf.example.com",
        "claim n/nic",
        "UID new",
    ]);
    assert!(case.waited(), "it may be written a moment later");
}

#[test]
fn a_claims_device_without_a_slice_an_identifier_or_kubelets_record_is_named() {
    let mut case = Case::of(0).recorded(&[]).claimed(&[("new", "vf1")]);
    case.pod.has_claims = true;
    case.told = Some(dynamic(&[("vf1", None)]));
    case.fails(&["no ResourceSlice of this node has device vf1 of pool pool"]);
    case.told = Some(dynamic(&[("vf1", Some((Some("r"), None)))]));
    case.fails(&["device vf1", "k8s.cni.cncf.io/deviceID"]);
    case.told = Some(dynamic(&[("vf1", Some((Some("r"), Some("0000:01:10.1"))))]));
    std::fs::write(case.dir.path().join("dra_manager_state"), "{").unwrap();
    case.fails(&["device vf1", "dra_manager_state is torn"]);
    std::fs::remove_file(case.dir.path().join("dra_manager_state")).unwrap();
    case.fails(&["device vf1", "dra_manager_state is not there"]);
}

#[test]
fn claims_that_kubelet_does_not_tell_of_yet_are_waited_for() {
    let mut case = Case::of(0).recorded(&[]).claimed(&[("new", "vf1")]);
    case.pod.has_claims = true;
    case.later = Some(dynamic(&[("vf1", Some((Some("r"), Some("0000:01:10.1"))))]));
    assert_eq!(case.ids(), (words("0000:01:10.1"), Origin::Dra));
    assert!(case.waited());
    case.later = None;
    case.fails(&["resource claims", "names no device of theirs"]);
}

#[test]
fn a_claim_for_something_else_gives_a_network_nothing() {
    let mut case = Case::of(0).recorded(&[]).claimed(&[("new", "gpu0")]);
    case.pod.has_claims = true;
    case.told = Some(dynamic(&[("gpu0", Some((None, Some("0000:09:00.0"))))]));
    assert_eq!(case.ids().0, [""; 0], "too few, says the plan");
    assert!(!case.waited());
    case.told.as_mut().unwrap().on_node = Some(Vec::new());
    let data = json!({"PodDeviceEntries": [], "RegisteredDevices": {}});
    let mut case = case.broken(&json!({"Data": data, "Checksum": 1}).to_string());
    case.fails(&[
        "gpu0 of driver vf.example.com",
        "k8s.cni.cncf.io/resourceName",
    ]);
    // A container that asks for a counter gets it, whatever else the pod claims.
    case.pod.containers = vec![container("c", 1, false)];
    case.told = Some(PodDevices {
        on_node: Some(Vec::new()),
        ..dynamic(&[("gpu0", None)])
    });
    assert_eq!(case.supply(), Supply::NoDevices);
    case.pod.containers.clear();
    // Named by itself it is the pod's own all the same.
    case.told = Some(dynamic(&[("gpu0", Some((None, Some("0000:09:00.0"))))]));
    case.everything = true;
    let allocation = case.allocation();
    assert_eq!(allocation.resource_of("0000:09:00.0"), Some(DRIVER));
}

#[test]
fn a_pod_that_names_a_device_has_all_of_its_own_to_choose_from() {
    let mut case = Case::of(1)
        .recorded(&["new c d1", "old c d2"])
        .told(&["c d1"]);
    case.everything = true;
    let allocation = case.allocation();
    assert_eq!(allocation.resource_of("d1"), Some("r"));
    assert_eq!(allocation.resource_of("d2"), None);
}

/// A pod whose containers have so many devices of claims, each of a driver of its own.
fn of_drivers(count: usize) -> PodDevices {
    let device = |number: usize| DynamicDevice {
        driver: format!("{number}"),
        device: format!("device-{number}"),
        identity: Some(SliceIdentity::default()),
        ..DynamicDevice::default()
    };
    PodDevices {
        containers: vec![ContainerDevices {
            dynamic: (0..count).map(device).collect(),
            ..ContainerDevices::default()
        }],
        on_node: Some(Vec::new()),
        failure: None,
    }
}

#[test]
fn a_cause_names_few_of_many_devices() {
    let nothing = r#"{"Data":{"PodDeviceEntries":[],"RegisteredDevices":{}},"Checksum":0}"#;
    let mut case = Case::of(0).broken(nothing);
    case.told = Some(of_drivers(1000));
    case.fails(&["device-4 of driver 4 and 995 more"]);
}

#[test]
fn what_is_not_judged_in_time_is_not_known() {
    let mut case = Case::of(1).recorded(&["new c 1"]);
    case.deadline = Duration::ZERO;
    case.fails(&["the time of the call was over"]);
}

/// Each resource and driver is looked up, and not among all of them.
#[test]
fn a_pod_with_as_many_drivers_as_it_may_have_is_judged_at_once() {
    let mut case = Case::of(1).recorded(&["new c 1"]);
    case.everything = true;
    case.told = Some(of_drivers(20_000));
    let began = Instant::now();
    let allocation = case.allocation();
    assert!(matches!(
        allocation.supply("19999"),
        Some(Supply::Unknown(_))
    ));
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
}
