use super::*;

fn ids(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("d{number}")).collect()
}

fn file() -> PathBuf {
    PathBuf::from("/k")
}

fn about(cause: impl Into<CheckpointCause>) -> CheckpointError {
    CheckpointError {
        path: file(),
        cause: cause.into(),
    }
}

fn torn() -> (CheckpointError, String) {
    let error = serde_json::from_str::<serde_json::Value>("{").unwrap_err();
    let line = format!(
        "kubelet's record /k is not valid JSON: {error}; restart kubelet, which rewrites it"
    );
    (about(error), line)
}

#[test]
fn assign_errors_have_these_messages() {
    for (error, line) in [
        (
            AssignError::TooFew {
                resource: "r".to_owned(),
                networks: 7,
                devices: ids(6),
            },
            "resource r: 7 of the pod's networks need a device each, but the pod has 6 \
             (d1, d2, d3, d4, d5 and 1 more); request more in a container's resources.limits or by a \
             resource claim, or select fewer networks",
        ),
        (
            AssignError::NotOwned {
                id: "d9".to_owned(),
                resource: Some("r".to_owned()),
                own: ids(1),
            },
            "deviceID \"d9\" of resource r is not a device of this pod, which has 1 (d1); \
             name one of the pod's devices or leave deviceID out",
        ),
        (
            AssignError::NotOwned {
                id: "d9".to_owned(),
                resource: None,
                own: Vec::new(),
            },
            "deviceID \"d9\" is not a device of this pod, which has none; \
             request a device in a container's resources.limits or by a resource claim, or leave \
             deviceID out",
        ),
        (
            AssignError::Twice("d1".to_owned()),
            "deviceID \"d1\" is named for two networks of the pod; name one device per network",
        ),
        (
            AssignError::NotLookedUp("r".to_owned()),
            "Jackfield did not look up the devices of resource r",
        ),
    ] {
        assert_eq!(error.to_string(), line);
    }
}

#[test]
fn causes_of_unknown_devices_have_these_messages() {
    let report = || Some("x; do y".to_owned());
    let device = || {
        Box::new(DynamicDevice {
            claim: "n/nic".to_owned(),
            driver: "v".to_owned(),
            pool: "p".to_owned(),
            device: "vf1".to_owned(),
            identity: None,
        })
    };
    let (error, line) = torn();
    let torn = |before: &str| format!("{before}{line}");
    for (cause, line) in [
        (
            UnknownCause::NoTime,
            "the call's deadline passed before Jackfield checked them; raise deadlines.add, or let \
             the pod use fewer resources"
                .to_owned(),
        ),
        (
            UnknownCause::NoUid,
            "the pod's UID is not known; let the runtime pass K8S_POD_UID in CNI_ARGS".to_owned(),
        ),
        (
            UnknownCause::Checkpoint {
                error: error.clone(),
                ids: Vec::new(),
            },
            torn(""),
        ),
        (
            UnknownCause::Checkpoint {
                error: error.clone(),
                ids: ids(2),
            },
            torn(
                "the pod-resources API names d1, d2, but without a usable checkpoint Jackfield \
                 cannot find out which pod has them: ",
            ),
        ),
        (
            UnknownCause::Missing {
                file: file(),
                uid: "u".to_owned(),
                recorded: 1,
                requested: 2,
                pod_resources: PodResourcesAnswer::NoDevices,
            },
            "the pod (UID u) requests 2 devices, but kubelet's checkpoint /k lists only 1 for this UID \
             (the pod-resources API names none); recreate the pod, or restart kubelet"
                .to_owned(),
        ),
        (
            UnknownCause::Unanswered(None),
            "cannot find out whether the pod has any: kubelet does not know the pod; look into \
             kubelet's log"
                .to_owned(),
        ),
        (
            UnknownCause::Unanswered(report()),
            "cannot find out whether the pod has any: x; do y".to_owned(),
        ),
        (
            UnknownCause::ClaimsNotAsked,
            "the pod has resource claims, but Jackfield did not ask kubelet about them".to_owned(),
        ),
        (
            UnknownCause::NoClaimedDevice(None),
            "the pod has resource claims, but their devices are unknown: kubelet names none; look \
             into kubelet's log"
                .to_owned(),
        ),
        (
            UnknownCause::NoClaimedDevice(report()),
            "the pod has resource claims, but their devices are unknown: x; do y".to_owned(),
        ),
        (
            UnknownCause::OtherResources {
                devices: vec![*device()],
                others: 3,
            },
            "no device of the pod's claims (vf1 of driver v and 3 more) names this resource in its \
             attribute k8s.cni.cncf.io/resourceName; correct the definition's annotation, or the \
             attribute that the driver publishes"
                .to_owned(),
        ),
        (
            UnknownCause::NoSlice {
                device: device(),
                report: Some("x".to_owned()),
            },
            "no ResourceSlice of this node has device vf1 of pool p of driver v (x); \
             let the driver publish this device, with the attribute k8s.cni.cncf.io/resourceName"
                .to_owned(),
        ),
        (
            UnknownCause::NoIdentifier(device()),
            "device vf1 of pool p of driver v has neither attribute k8s.cni.cncf.io/deviceID nor \
             resource.kubernetes.io/pciBusID in its ResourceSlice; let the driver publish one of \
             the two"
                .to_owned(),
        ),
        (
            UnknownCause::Claims {
                device: device(),
                error: error.clone(),
            },
            torn("device vf1 of pool p of driver v: cannot find out which pods have claim n/nic: "),
        ),
        (
            UnknownCause::NotClaimed {
                device: device(),
                file: file(),
                uid: "u".to_owned(),
            },
            "kubelet's record /k does not list device vf1 of pool p of driver v for claim n/nic of \
             this pod, UID u; recreate the pod"
                .to_owned(),
        ),
    ] {
        let unknown = AssignError::Unknown {
            resource: "r".to_owned(),
            cause: Box::new(cause),
        };
        assert_eq!(
            unknown.to_string(),
            format!("devices of resource r: {line}")
        );
    }
}

#[test]
fn the_answers_of_pod_resources_have_these_messages() {
    let other_pod = |uid: Option<&str>| PodResourcesAnswer::OtherPod {
        ids: ids(2),
        uid: uid.map(str::to_owned),
    };
    for (answer, words) in [
        (
            other_pod(Some("u")),
            "the pod-resources API names d1, d2, which the checkpoint lists for UID u",
        ),
        (other_pod(None), "the pod-resources API names d1, d2"),
        (PodResourcesAnswer::Failure("x".to_owned()), "x"),
        (
            PodResourcesAnswer::NoDevices,
            "the pod-resources API names none",
        ),
        (
            PodResourcesAnswer::UnknownPod,
            "the pod-resources API does not know the pod",
        ),
        (
            PodResourcesAnswer::NotAsked,
            "Jackfield did not query the pod-resources API",
        ),
    ] {
        assert_eq!(answer.to_string(), words);
    }
}

#[test]
fn checkpoint_errors_have_these_messages() {
    let (torn, line_of_torn) = torn();
    let of_type = serde_json::from_str::<()>("7").unwrap_err();
    let not_a_unit = of_type.to_string();
    let remedy = "use a version of Jackfield that supports this kubelet";
    for (error, line) in [
        (
            about(io::Error::from(io::ErrorKind::NotFound)),
            "kubelet's record /k does not exist; start kubelet, correct kubeletCheckpoint, or \
             name the devices in a manifest's jackfield.io/devices"
                .to_owned(),
        ),
        (
            about(io::Error::other("it is a directory")),
            "kubelet's record /k cannot be read: it is a directory; correct kubeletCheckpoint"
                .to_owned(),
        ),
        (torn, line_of_torn),
        (
            about(CheckpointCause::NoEntries),
            format!(
                "kubelet's record /k is of an unknown version: the object Data in it has neither \
                 the key PodDeviceEntries nor the key RegisteredDevices; {remedy}"
            ),
        ),
        (
            about(of_type),
            format!("kubelet's record /k is of an unknown version: {not_a_unit}; {remedy}"),
        ),
    ] {
        assert_eq!(error.to_string(), line);
    }
}

#[test]
fn allocation_remarks_have_these_messages() {
    let remark = AllocationRemark::OtherPod {
        resource: "r".to_owned(),
        ids: ids(1),
        file: file(),
    };
    assert_eq!(
        remark.to_string(),
        "kubelet's pod-resources API names d1 of resource r, but kubelet's checkpoint /k does not \
         list all of them for this pod; the API's answer may be about another pod of the same \
         name, so Jackfield uses the checkpoint"
    );
    let failure = AllocationRemark::Failure("x; do y".to_owned());
    assert_eq!(failure.to_string(), "x; do y");
}
