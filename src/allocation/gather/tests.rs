//! Which devices Jackfield finds for a pod. Each test sets kubelet's records and answers.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::allocation::{
    AllocatedDevice, AssignError, CheckpointCause, CheckpointError, PodResourcesAnswer,
    UnknownCause, Wish, assign,
};
use crate::cluster::Container;
use crate::kubelet::{ContainerDevices, DynamicDevice, Resource, SliceIdentity};

const DRIVER: &str = "vf.example.com";

/// A node and one of its pods.
struct Case {
    dir: tempfile::TempDir,
    pod: Pod,
    uid: Option<&'static str>,
    /// The first answer of pod-resources.
    answer: Option<PodDevices>,
    everything: bool,
    /// The later answers.
    later: Option<PodDevices>,
    asked_again: Cell<usize>,
    patience: Duration,
    deadline: Duration,
}

impl Case {
    /// Pod `new` has one container `c`, and the container requests `requested` devices of resource
    /// `r`. kubelet does not know the pod.
    fn of(requested: u64) -> Case {
        Case {
            dir: tempfile::tempdir().unwrap(),
            pod: Pod {
                containers: vec![container("c", requested, false)],
                ..Pod::default()
            },
            uid: Some("new"),
            answer: Some(PodDevices::default()),
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

    /// Sets kubelet's checkpoint. Each entry is `pod container ids…`, with devices of resource `r`.
    fn recorded(self, entries: &[&str]) -> Case {
        self.write(&self.checkpoint(), &checkpoint(entries));
        self
    }

    fn broken(self, text: &str) -> Case {
        self.write(&self.checkpoint(), text);
        self
    }

    /// Sets the answer of pod-resources. Each entry is `container ids…`, with devices of resource
    /// `r`.
    fn answered(mut self, containers: &[&str]) -> Case {
        self.answer = Some(answer(containers));
        self
    }

    /// Sets kubelet's record of claims. Each pair is a pod and a device of the pool.
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
            pod_resources: self.answer.as_ref(),
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

    /// Why the devices are unknown. Checks that the error line has a remedy.
    fn unknown(&self) -> UnknownCause {
        let Supply::Unknown(cause) = self.supply() else {
            panic!("{:?}", self.supply());
        };
        let line = cause.to_string();
        assert!(line.contains("; ") && !line.contains('\n'), "{line}");
        *cause
    }

    /// Checks that the devices are unknown because the checkpoint lists only `recorded` of the
    /// `requested` devices of pod `new`.
    fn is_missing(&self, recorded: usize, requested: u64, pod_resources: PodResourcesAnswer) {
        let missing = UnknownCause::Missing {
            file: self.checkpoint(),
            uid: "new".to_owned(),
            recorded,
            requested,
            pod_resources,
        };
        assert_eq!(self.unknown(), missing);
    }

    /// The device `name` in kubelet's answer.
    fn device(&self, name: &str) -> Box<DynamicDevice> {
        let mut devices = self.answer.iter().flat_map(PodDevices::dynamic);
        Box::new(devices.find(|it| it.device == name).unwrap().clone())
    }

    fn waited(&self) -> bool {
        self.asked_again.get() > 0
    }
}

fn container(name: &str, requested: u64, ends_first: bool) -> Container {
    let mut requests = BTreeMap::new();
    if requested > 0 {
        requests.insert("r".to_owned(), requested);
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

fn answer(containers: &[&str]) -> PodDevices {
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

/// The entry of a device in a ResourceSlice: the device's resource and its identifier. `None` if no
/// ResourceSlice has the device.
type Sliced<'a> = Option<(Option<&'a str>, Option<&'a str>)>;

/// kubelet's answer with devices of the claim `n/nic`, and the devices' entries in ResourceSlices.
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

/// The result of the assignment if the pod names the device `id`.
fn named(allocation: &Allocation, id: &str) -> Result<AllocatedDevice, AssignError> {
    let wish = Wish {
        device: Some(id),
        ..Wish::default()
    };
    assign(allocation, &[wish]).remove(0).map(Option::unwrap)
}

#[test]
fn jackfield_does_not_wait_if_both_sources_name_the_device() {
    let case = Case::of(1)
        .recorded(&["new c d1", "old c d2"])
        .answered(&["c d1"]);
    assert_eq!(case.ids(), (words("d1"), Origin::PodResources));
    assert!(!case.waited());
    assert_eq!(case.allocation().remarks, []);
}

#[test]
fn an_empty_answer_of_pod_resources_does_not_overrule_the_checkpoint() {
    for answer in [None, Some(PodDevices::default())] {
        let mut case = Case::of(2).recorded(&["new c d2 d1"]);
        case.answer = answer;
        assert_eq!(case.ids(), (words("d1 d2"), Origin::Checkpoint));
        assert!(!case.waited(), "a record with every device suffices");
    }
}

#[test]
fn a_failure_of_pod_resources_becomes_a_remark() {
    let mut case = Case::of(1).recorded(&["new c d1"]);
    let failure = "kubelet's pod-resources at /s: nothing listens there; start it".to_owned();
    case.answer.as_mut().unwrap().failure = Some(failure.clone());
    assert_eq!(case.ids(), (words("d1"), Origin::Checkpoint));
    let remark = AllocationRemark::Failure(failure);
    assert_eq!(case.allocation().remarks, [remark]);
}

#[test]
fn a_pod_never_gets_devices_of_a_deleted_pod_with_its_name() {
    // kubelet still names the old pod's device, and has no record of the new pod yet.
    let case = Case::of(1).recorded(&["old c d1"]).answered(&["c d1"]);
    let other_pod = |uid: Option<&str>| PodResourcesAnswer::OtherPod {
        ids: words("d1"),
        uid: uid.map(str::to_owned),
    };
    case.is_missing(0, 1, other_pod(Some("old")));
    assert!(case.waited());
    // kubelet's checkpoint contains the new pod, so Jackfield uses the checkpoint. The different
    // answer of pod-resources causes a remark.
    let case = Case::of(1)
        .recorded(&["old c d1", "new c d2"])
        .answered(&["c d1"]);
    assert_eq!(case.ids(), (words("d2"), Origin::Checkpoint));
    let remark = AllocationRemark::OtherPod {
        resource: "r".to_owned(),
        ids: words("d1"),
        file: case.checkpoint(),
    };
    assert_eq!(case.allocation().remarks, [remark]);
    // The record no longer contains the old pod.
    let case = Case::of(1).recorded(&[]).answered(&["c d1"]);
    case.is_missing(0, 1, other_pod(None));
    // A pod that requests no device has none.
    let case = Case::of(0).recorded(&["old c d1"]).answered(&["c d1"]);
    assert_eq!(case.ids().0, [""; 0]);
}

#[test]
fn the_uid_from_the_runtime_takes_precedence() {
    let mut case = Case::of(1).recorded(&["new c d2", "old c d1"]);
    case.pod.uid = Some("old".to_owned());
    assert_eq!(case.ids().0, ["d2"]);
    case.uid = None;
    assert_eq!(
        case.ids().0,
        ["d1"],
        "the UID from the cluster counts if the runtime passes none"
    );
    case.pod.uid = None;
    assert_eq!(case.unknown(), UnknownCause::NoUid);
}

#[test]
fn jackfield_waits_until_kubelet_has_recorded_the_pod() {
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
fn the_error_about_an_unrecorded_device_contains_the_answer_of_kubelet() {
    let case = Case::of(2).recorded(&["new c d1"]).answered(&["c d1"]);
    let other_pod = PodResourcesAnswer::OtherPod {
        ids: words("d1"),
        uid: Some("new".to_owned()),
    };
    case.is_missing(1, 2, other_pod);
    let case = Case::of(1).recorded(&[]);
    case.is_missing(0, 1, PodResourcesAnswer::UnknownPod);
    let case = Case::of(1).recorded(&[]).answered(&["c"]);
    case.is_missing(0, 1, PodResourcesAnswer::NoDevices);
    let mut case = Case::of(1).recorded(&[]);
    let failure = "kubelet's pod-resources at /s: slow; x".to_owned();
    case.answer.as_mut().unwrap().failure = Some(failure.clone());
    case.is_missing(0, 1, PodResourcesAnswer::Failure(failure));
    case.answer = None;
    case.is_missing(0, 1, PodResourcesAnswer::NotAsked);
}

#[test]
fn devices_are_unknown_if_the_checkpoint_is_missing_or_broken() {
    let torn = &checkpoint(&["new c d1"])[..40];
    let strange = r#"{"Data":{"v3":{}},"Checksum":1}"#;
    type IsExpected = fn(&CheckpointCause) -> bool;
    let rows: [(_, IsExpected, _); 3] = [
        (
            Some(torn),
            |cause| matches!(cause, CheckpointCause::Torn(_)),
            true,
        ),
        (
            Some(strange),
            |cause| *cause == CheckpointCause::NoEntries,
            false,
        ),
        (None, |cause| *cause == CheckpointCause::Missing, false),
    ];
    for (text, is_expected, is_waited_for) in rows {
        let case = Case::of(1).answered(&["c d1"]);
        let case = match text {
            Some(text) => case.broken(text),
            None => case,
        };
        let cause = case.unknown();
        let UnknownCause::Checkpoint { error, ids } = &cause else {
            panic!("{cause:?}");
        };
        assert_eq!(*ids, words("d1"));
        assert!(is_expected(&error.cause), "{error}");
        let file = case.checkpoint().display().to_string();
        assert!(error.to_string().contains(&file), "{error}");
        assert_eq!(case.waited(), is_waited_for, "{error}");
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
fn jackfield_ignores_the_order_in_which_kubelet_lists_devices() {
    let entries = ["new a 0000:02:00.3 0000:01:10.0", "new b 0000:01:02.0"];
    let expected = ["0000:01:10.0", "0000:02:00.3", "0000:01:02.0"];
    for (recorded, answered) in [
        ([0, 1], ["a 0000:02:00.3 0000:01:10.0", "b 0000:01:02.0"]),
        ([1, 0], ["a 0000:01:10.0 0000:02:00.3", "b 0000:01:02.0"]),
    ] {
        let mut case = Case::of(0)
            .recorded(&recorded.map(|index| entries[index]))
            .answered(&answered);
        case.pod.containers = vec![container("a", 2, false), container("b", 1, false)];
        assert_eq!(
            case.ids(),
            (expected.map(str::to_owned).to_vec(), Origin::PodResources)
        );
        // Without containers from the cluster, Jackfield uses the order of the containers in the
        // answer of pod-resources.
        case.pod.containers.clear();
        assert_eq!(case.ids().0, expected);
    }
}

#[test]
fn devices_of_sidecars_come_first_and_those_of_init_containers_last() {
    let entries = ["new first d1 d2 d3", "new app d1 d2", "new beside d9"];
    let mut case = Case::of(0)
        .recorded(&entries)
        .answered(&["beside d9", "app d2 d1"]);
    case.pod.containers = vec![
        container("first", 3, true),
        container("beside", 1, false),
        container("app", 2, false),
    ];
    assert_eq!(case.ids().0, words("d9 d1 d2 d3"));
    // The app container reuses both devices of the init container. The sidecar needs one more
    // device, so the pod must have three devices.
    let mut case = Case::of(0).recorded(&["new first d1 d2", "new app d1 d2"]);
    case.pod.containers = vec![
        container("first", 2, true),
        container("beside", 1, false),
        container("app", 2, false),
    ];
    case.is_missing(2, 3, PodResourcesAnswer::UnknownPod);
}

#[test]
fn a_resource_that_is_neither_registered_nor_allocatable_has_no_devices() {
    let data = json!({"PodDeviceEntries": [], "RegisteredDevices": {"other": []}});
    let none = json!({"Data": data, "Checksum": 1}).to_string();
    let mut case = Case::of(1).broken(&none).answered(&["c"]);
    case.answer.as_mut().unwrap().on_node = Some(vec!["other".to_owned()]);
    assert_eq!(case.supply(), Supply::NoDevices);
    assert!(!case.waited(), "a resource without devices costs no time");
    // An allocatable resource has devices, so the requested device is missing.
    case.answer.as_mut().unwrap().on_node = Some(vec!["r".to_owned()]);
    case.is_missing(0, 1, PodResourcesAnswer::NoDevices);
    // The empty answer of a kubelet that is starting proves nothing about a requested resource.
    case.answer = Some(PodDevices {
        on_node: Some(Vec::new()),
        ..PodDevices::default()
    });
    let unanswered = UnknownCause::Unanswered(None);
    assert_eq!(case.unknown(), unanswered);
    // A definition may name a resource that no container requests and no device plugin has.
    case.pod.containers.clear();
    assert_eq!(case.supply(), Supply::NoDevices);
}

#[test]
fn the_checkpoint_may_be_missing_if_the_pod_requests_no_device() {
    let mut case = Case::of(0).answered(&["c"]);
    assert_eq!(case.ids(), (Vec::new(), Origin::Checkpoint));
    assert!(!case.waited());
    // If no device plugin and no DRA driver has the resource, the resource has no devices.
    case.answer.as_mut().unwrap().on_node = Some(Vec::new());
    assert_eq!(case.supply(), Supply::NoDevices);
    // While kubelet starts, only its record proves whether the pod has devices.
    case.answer = Some(PodDevices::default());
    let cause = case.unknown();
    let UnknownCause::Checkpoint { error, ids } = cause else {
        panic!("{cause:?}");
    };
    assert_eq!(error.cause, CheckpointCause::Missing);
    assert_eq!(ids, [""; 0]);
}

#[test]
fn devices_come_from_the_manifest_if_no_kubelet_runs() {
    let mut case = Case::of(0);
    case.pod.devices = BTreeMap::from([("s".to_owned(), words("e1"))]);
    assert_eq!(case.ids(), (Vec::new(), Origin::Manifest));
    case.pod.devices = BTreeMap::from([("r".to_owned(), words("0000:01:10.0 0000:01:02.0"))]);
    let expected = words("0000:01:02.0 0000:01:10.0");
    assert_eq!(case.ids(), (expected, Origin::Manifest));
    assert!(!case.waited());
}

#[test]
fn kubelet_must_record_a_claimed_device_under_the_uid_of_the_pod() {
    let mut case =
        Case::of(0)
            .recorded(&[])
            .claimed(&[("new", "vf1"), ("new", "vf0"), ("old", "vf2")]);
    case.pod.has_claims = true;
    let own = |id| Some((Some("r"), Some(id)));
    case.answer = Some(dynamic(&[
        ("vf1", own("0000:01:10.1")),
        ("vf0", own("0000:01:02.0")),
    ]));
    let expected = words("0000:01:02.0 0000:01:10.1");
    assert_eq!(case.ids(), (expected, Origin::Dra));
    assert!(!case.waited());
    let given = named(&case.allocation(), "0000:01:02.0").unwrap();
    let claim = given.claim.unwrap();
    assert_eq!((claim.claim, claim.device), ("nic".into(), "vf0".into()));
    case.answer = Some(dynamic(&[("vf2", own("0000:01:10.2"))]));
    let not_claimed = UnknownCause::NotClaimed {
        device: case.device("vf2"),
        file: case.dir.path().join("dra_manager_state"),
        uid: "new".to_owned(),
    };
    assert_eq!(case.unknown(), not_claimed);
    assert!(case.waited(), "kubelet may record the claim a moment later");
}

#[test]
fn the_error_about_an_unusable_claimed_device_names_the_device() {
    let mut case = Case::of(0).recorded(&[]).claimed(&[("new", "vf1")]);
    case.pod.has_claims = true;
    case.answer = Some(dynamic(&[("vf1", None)]));
    let no_slice = UnknownCause::NoSlice {
        device: case.device("vf1"),
        report: None,
    };
    assert_eq!(case.unknown(), no_slice);
    case.answer = Some(dynamic(&[("vf1", Some((Some("r"), None)))]));
    assert_eq!(
        case.unknown(),
        UnknownCause::NoIdentifier(case.device("vf1"))
    );
    case.answer = Some(dynamic(&[("vf1", Some((Some("r"), Some("0000:01:10.1"))))]));
    let record = case.dir.path().join("dra_manager_state");
    let error_about = |case: &Case| match case.unknown() {
        UnknownCause::Claims { device, error } if device == case.device("vf1") => error,
        cause => panic!("{cause:?}"),
    };
    std::fs::write(&record, "{").unwrap();
    let error = error_about(&case);
    assert!(
        matches!(error.cause, CheckpointCause::Torn(_)) && error.path == record,
        "{error}"
    );
    std::fs::remove_file(&record).unwrap();
    let missing = CheckpointError {
        path: record,
        cause: CheckpointCause::Missing,
    };
    assert_eq!(error_about(&case), missing);
}

#[test]
fn jackfield_waits_until_kubelet_names_the_devices_of_claims() {
    let mut case = Case::of(0).recorded(&[]).claimed(&[("new", "vf1")]);
    case.pod.has_claims = true;
    case.later = Some(dynamic(&[("vf1", Some((Some("r"), Some("0000:01:10.1"))))]));
    assert_eq!(case.ids(), (words("0000:01:10.1"), Origin::Dra));
    assert!(case.waited());
    case.later = None;
    let none = UnknownCause::NoClaimedDevice(None);
    assert_eq!(case.unknown(), none);
}

#[test]
fn a_network_gets_no_device_from_a_claim_for_another_resource() {
    let mut case = Case::of(0).recorded(&[]).claimed(&[("new", "gpu0")]);
    case.pod.has_claims = true;
    case.answer = Some(dynamic(&[("gpu0", Some((None, Some("0000:09:00.0"))))]));
    assert_eq!(case.ids().0, [""; 0], "gpu0 is not a device of r");
    assert!(!case.waited());
    case.answer.as_mut().unwrap().on_node = Some(Vec::new());
    let data = json!({"PodDeviceEntries": [], "RegisteredDevices": {}});
    let mut case = case.broken(&json!({"Data": data, "Checksum": 1}).to_string());
    let others = UnknownCause::OtherResources {
        devices: vec![*case.device("gpu0")],
        others: 0,
    };
    assert_eq!(case.unknown(), others);
    // The container requests `r`, but the node has no devices of `r`. The pod therefore has no
    // device of `r`, even though the pod has claims.
    case.pod.containers = vec![container("c", 1, false)];
    case.answer = Some(PodDevices {
        on_node: Some(Vec::new()),
        ..dynamic(&[("gpu0", None)])
    });
    assert_eq!(case.supply(), Supply::NoDevices);
    case.pod.containers.clear();
    // The pod gets `gpu0` if it names this device by `deviceID`.
    case.answer = Some(dynamic(&[("gpu0", Some((None, Some("0000:09:00.0"))))]));
    case.everything = true;
    let allocation = case.allocation();
    assert_eq!(named(&allocation, "0000:09:00.0").unwrap().resource, DRIVER);
}

#[test]
fn a_pod_may_name_any_of_its_own_devices_and_no_others() {
    let mut case = Case::of(1)
        .recorded(&["new c d1", "old c d2"])
        .answered(&["c d1"]);
    case.everything = true;
    let allocation = case.allocation();
    assert_eq!(named(&allocation, "d1").unwrap().resource, "r");
    assert!(named(&allocation, "d2").is_err());
}

/// kubelet's answer about a pod with `count` devices from claims. Each device has a different
/// driver.
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
fn the_error_lists_only_a_few_of_many_devices() {
    let nothing = r#"{"Data":{"PodDeviceEntries":[],"RegisteredDevices":{}},"Checksum":0}"#;
    let mut case = Case::of(0).broken(nothing);
    case.answer = Some(of_drivers(1000));
    let cause = case.unknown();
    let UnknownCause::OtherResources { devices, others } = cause else {
        panic!("{cause:?}");
    };
    assert_eq!((devices.len(), others), (5, 995));
    assert_eq!(devices[4].device, "device-4");
}

#[test]
fn devices_are_unknown_once_the_deadline_has_passed() {
    let mut case = Case::of(1).recorded(&["new c 1"]);
    case.deadline = Duration::ZERO;
    assert_eq!(case.unknown(), UnknownCause::NoTime);
}

/// If the lookup of one resource or driver searched all resources and drivers, this test would take
/// too long.
#[test]
fn judging_the_devices_of_20_000_drivers_takes_less_than_5_seconds() {
    let mut case = Case::of(1).recorded(&["new c 1"]);
    case.everything = true;
    case.answer = Some(of_drivers(20_000));
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
