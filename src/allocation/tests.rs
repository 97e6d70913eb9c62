//! kubelet's checkpoints as Kubernetes 1.36 writes them, broken ones, and who gets which device.

use super::checkpoint::Problem;
use super::claims::Claims;
use super::*;
use crate::kubelet::DynamicDevice;

/// One pod with one VF.
const ONE: &[u8] = include_bytes!("tests/checkpoint.json");
/// Its pod is deleted, its entry still there; two others came since.
const AFTER_DELETE: &[u8] = include_bytes!("tests/checkpoint-after-delete.json");
const DELETED: &str = "5fac4d5d-c6b3-4633-affe-85d5405ab3b9";
const TWO_NICS: &str = "645641fa-cd52-4e36-bca9-62fe3b2d4119";

fn allocation(supplies: &[(&str, &[&str])]) -> Allocation {
    let mut allocation = Allocation::default();
    for (resource, ids) in supplies {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        let origin = Origin::PodResources;
        allocation.set(resource, Supply::Devices { ids, origin });
    }
    allocation
}

fn wish<'a>(resource: &'a str, device: &'a str) -> Wish<'a> {
    let given = |text: &'a str| Some(text).filter(|text| !text.is_empty());
    Wish {
        resource: given(resource),
        device: given(device),
    }
}

/// The devices in words: the identifier, `-` for none, or the message.
fn given(allocation: &Allocation, wishes: &[Wish<'_>]) -> Vec<String> {
    let word = |given: Result<Option<AllocatedDevice>, AssignError>| match given {
        Ok(Some(device)) => device.id,
        Ok(None) => "-".to_owned(),
        Err(error) => error.to_string(),
    };
    assign(allocation, wishes).into_iter().map(word).collect()
}

#[test]
fn checkpoint_of_a_real_kubelet_is_read_by_the_pods_uid() {
    let checkpoint = Checkpoint::parse(ONE).unwrap();
    let devices = checkpoint.devices_of(DELETED, &[]);
    assert_eq!(devices["example.com/vf"], ["0000:01:10.1"]);
    assert!(checkpoint.devices_of("another", &[]).is_empty());
    assert!(checkpoint.is_registered("example.com/vf"));
    assert!(!checkpoint.is_registered("bridge.network.kubevirt.io/br1"));
}

#[test]
fn checkpoint_a_deleted_pods_entry_is_its_own_and_nobody_elses() {
    let checkpoint = Checkpoint::parse(AFTER_DELETE).unwrap();
    let devices = checkpoint.devices_of(TWO_NICS, &[]);
    assert_eq!(devices.len(), 1);
    assert_eq!(devices["example.com/nic"], ["0000:02:00.2", "0000:02:00.3"]);
    let holders: Vec<&str> = checkpoint.holders("0000:01:10.1").collect();
    assert_eq!(holders, [DELETED]);
}

#[test]
fn assignment_containers_come_in_their_order_and_devices_numerically_within_each() {
    let text = r#"{"Data":{"PodDeviceEntries":[
        {"PodUID":"u","ContainerName":"second","ResourceName":"r","DeviceIDs":{"0":["0000:01:02.0"],"1":["0000:01:01.0"]}},
        {"PodUID":"u","ContainerName":"first","ResourceName":"r","DeviceIDs":{"-1":["0000:01:10.0","10000:01:02.0","0000:01:02.4"]}},
        {"PodUID":"u","ContainerName":"first","ResourceName":"s","DeviceIDs":null}
    ],"RegisteredDevices":{"r":null}},"Checksum":1}"#;
    let checkpoint = Checkpoint::parse(text.as_bytes()).unwrap();
    let devices = checkpoint.devices_of("u", &["first", "second"]);
    let expected = [
        "0000:01:02.4",
        "0000:01:10.0",
        "10000:01:02.0",
        "0000:01:01.0",
        "0000:01:02.0",
    ];
    assert_eq!(devices["r"], expected);
    assert!(devices["s"].is_empty());
}

#[test]
fn what_an_init_container_had_is_no_second_device() {
    let text = r#"{"Data":{"PodDeviceEntries":[
        {"PodUID":"u","ContainerName":"init","ResourceName":"r","DeviceIDs":{"0":["a1"]}},
        {"PodUID":"u","ContainerName":"main","ResourceName":"r","DeviceIDs":{"0":["a10","a2","a1"]}}
    ]}}"#;
    let checkpoint = Checkpoint::parse(text.as_bytes()).unwrap();
    assert_eq!(checkpoint.devices_of("u", &[])["r"], ["a1", "a2", "a10"]);
}

#[test]
fn a_checkpoint_torn_anywhere_is_said_to_be_torn() {
    let whole = ONE.trim_ascii_end();
    for length in 0..whole.len() {
        let parsed = Checkpoint::parse(&whole[..length]);
        assert!(matches!(parsed, Err(Problem::Torn(_))), "{length} bytes");
    }
}

#[test]
fn a_checkpoint_of_an_unknown_version_is_said_to_be_one() {
    for text in [
        "{}",
        "[]",
        r#"{"Data":"{}"}"#,
        r#"{"Data":{}}"#,
        r#"{"Data":{"Entries":[]}}"#,
        r#"{"Data":{"PodDeviceEntries":[{"PodUID":7}]}}"#,
        r#"{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":"a"}]}}"#,
    ] {
        let parsed = Checkpoint::parse(text.as_bytes());
        assert!(matches!(parsed, Err(Problem::Version(_))), "{text}");
    }
}

#[test]
fn what_kubelet_writes_without_any_device_plugin_is_no_unknown_version() {
    let text = r#"{"Data":{"PodDeviceEntries":null,"RegisteredDevices":null},"Checksum":1}"#;
    assert_eq!(
        Checkpoint::parse(text.as_bytes()),
        Ok(Checkpoint::default())
    );
    let text = r#"{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}"#;
    assert_eq!(
        Checkpoint::parse(text.as_bytes()),
        Ok(Checkpoint::default())
    );
}

#[test]
fn identifiers_in_one_list_are_read_as_older_kubelets_wrote_them() {
    let text = r#"{"Data":{"PodDeviceEntries":[
        {"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":["b","a"]}]}}"#;
    let checkpoint = Checkpoint::parse(text.as_bytes()).unwrap();
    assert_eq!(checkpoint.devices_of("u", &[])["r"], ["a", "b"]);
}

#[test]
fn every_message_about_a_checkpoint_names_the_file_and_what_to_do() {
    let path = || "/k".to_owned();
    let cause = || "c".to_owned();
    let errors = [
        CheckpointError::Missing { path: path() },
        CheckpointError::Io {
            path: path(),
            cause: cause(),
        },
        CheckpointError::Torn {
            path: path(),
            cause: cause(),
        },
        CheckpointError::Version {
            path: path(),
            cause: cause(),
        },
    ];
    for error in errors {
        let line = error.to_string();
        assert!(
            line.contains("/k") && line.contains("; ") && !line.contains('\n'),
            "{line}"
        );
    }
}

// clause: NPWG-1.3 §4.2 operation: one allocation serves the cluster network and the others alike
#[test]
fn assignment_networks_get_the_devices_of_their_resource_in_order() {
    let two = allocation(&[("r", &["d1", "d2"]), ("s", &["e1"])]);
    let wishes = [wish("r", ""), wish("", ""), wish("s", ""), wish("r", "")];
    assert_eq!(given(&two, &wishes), ["d1", "-", "e1", "d2"]);
}

#[test]
fn assignment_an_explicit_request_wins_and_is_nobody_elses() {
    let two = allocation(&[("r", &["d1", "d2"])]);
    assert_eq!(given(&two, &[wish("r", ""), wish("r", "d1")]), ["d2", "d1"]);
    assert_eq!(given(&two, &[wish("", "d2")]), ["d2"], "no resource needed");
}

#[test]
fn a_pci_address_is_the_same_in_large_letters_and_written_small() {
    let one = allocation(&[("r", &["0000:3b:00.2"])]);
    assert_eq!(given(&one, &[wish("r", "0000:3B:00.2")]), ["0000:3b:00.2"]);
}

#[test]
fn a_device_that_is_not_the_pods_own_is_refused() {
    let own = allocation(&[("r", &["d1"]), ("s", &["e1"])]);
    let line = &given(&own, &[wish("r", "d9")])[0];
    assert!(
        line.contains("\"d9\" of resource r") && line.contains("1 (d1)"),
        "{line}"
    );
    let line = &given(&own, &[wish("r", "e1")])[0];
    assert!(
        line.contains("\"e1\" of resource r"),
        "of another resource: {line}"
    );
    let line = &given(&own, &[wish("", "d1"), wish("", "d1")])[1];
    assert!(line.contains("two networks"), "{line}");
}

#[test]
fn assignment_too_few_devices_are_refused_by_resource_and_numbers() {
    let one = allocation(&[("r", &["d1"])]);
    let lines = given(&one, &[wish("r", ""), wish("r", "")]);
    assert_eq!(lines[0], "d1");
    let line = &lines[1];
    assert!(
        line.contains("resource r: 2 of the pod's networks"),
        "{line}"
    );
    assert!(line.contains("gave the pod 1 (d1)"), "{line}");
}

#[test]
fn a_resource_that_is_no_device_gives_none_and_fails_nobody() {
    let mut none = Allocation::default();
    none.set("br", Supply::NoDevices);
    assert_eq!(given(&none, &[wish("br", ""), wish("br", "")]), ["-", "-"]);
}

#[test]
fn what_could_not_be_found_out_is_the_reason_against_a_device_that_the_pod_names() {
    let mut unknown = Allocation::default();
    unknown.set("r", Supply::Unknown("torn".to_owned()));
    assert_eq!(
        given(&unknown, &[wish("", "d1"), wish("r", "d1")]),
        ["torn", "torn"]
    );
}

#[test]
fn a_device_says_where_it_comes_from() {
    let two = allocation(&[("r", &["d1", "d2"])]);
    for given in assign(&two, &[wish("r", ""), wish("r", "d1")]) {
        assert_eq!(given.unwrap().unwrap().origin, Some(Origin::PodResources));
    }
}

/// kubelet's record of claims, with one of pod [`CLAIMANT`].
const CLAIMS: &[u8] = include_bytes!("tests/dra_manager_state");
const CLAIMANT: &str = "7a2fba40-fde6-4eec-8398-725d66d38d8d";

#[test]
fn a_real_kubelets_record_of_claims_is_read_by_the_pods_uid() {
    let claims = Claims::parse(CLAIMS).unwrap();
    let device = |claim: &str, device: &str| DynamicDevice {
        claim: claim.to_owned(),
        driver: "vf.example.com".to_owned(),
        pool: "pool-a".to_owned(),
        device: device.to_owned(),
        identity: None,
    };
    let own = device("default/drapod--vf1", "vf1");
    assert!(claims.has(CLAIMANT, &own));
    assert!(!claims.has("another", &own));
    assert!(!claims.has(CLAIMANT, &device("default/drapod--vf1", "vf2")));
    assert!(!claims.has(CLAIMANT, &device("other/drapod--vf1", "vf1")));
}

#[test]
fn a_record_of_claims_torn_or_of_an_unknown_version_is_said_to_be_one() {
    for length in 0..CLAIMS.len() {
        assert!(
            matches!(Claims::parse(&CLAIMS[..length]), Err(Problem::Torn(_))),
            "{length}"
        );
    }
    for text in [
        "{}",
        r#"{"Data":{}}"#,
        r#"{"Data":"{"}"#,
        r#"{"version":"v1","entries":[]}"#,
        r#"{"Data":"{\"ClaimInfoStateList\":[{\"ClaimName\":7}]}"}"#,
    ] {
        let parsed = Claims::parse(text.as_bytes());
        assert!(matches!(parsed, Err(Problem::Version(_))), "{text}");
    }
    let none = r#"{"Data":"{\"ClaimInfoStateList\":null}"}"#;
    assert!(Claims::parse(none.as_bytes()).is_ok(), "no claims at all");
}
