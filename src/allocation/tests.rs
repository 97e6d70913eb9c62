//! Tests how Jackfield reads kubelet's records and assigns devices to networks. Some records are
//! from Kubernetes 1.36, and others are broken.

use super::claims::Claims;
use super::*;
use crate::kubelet::DynamicDevice;

/// kubelet's checkpoint with one pod that has one VF.
const ONE: &[u8] = include_bytes!("tests/checkpoint.json");
/// A later checkpoint. The pod of [`ONE`] has been deleted, but kubelet has kept the pod's entry.
/// Two new pods have entries too.
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

/// The identifiers of the assigned devices, with `-` for no device.
fn given(allocation: &Allocation, wishes: &[Wish<'_>]) -> Vec<String> {
    let word = |device: Option<AllocatedDevice>| device.map_or("-".to_owned(), |it| it.id);
    let given = assign(allocation, wishes).into_iter();
    given.map(|given| word(given.unwrap())).collect()
}

/// The reason why the last wish gets no device.
fn refused(allocation: &Allocation, wishes: &[Wish<'_>]) -> AssignError {
    let mut given = assign(allocation, wishes);
    given.pop().unwrap().unwrap_err()
}

#[test]
fn checkpoint_of_a_real_kubelet_lists_devices_by_pod_uid() {
    let checkpoint = Checkpoint::parse(ONE).unwrap();
    let devices = checkpoint.devices_of(DELETED, &[]);
    assert_eq!(devices["example.com/vf"], ["0000:01:10.1"]);
    assert!(checkpoint.devices_of("another", &[]).is_empty());
    assert!(checkpoint.is_registered("example.com/vf"));
    assert!(!checkpoint.is_registered("bridge.network.kubevirt.io/br1"));
}

#[test]
fn the_entry_of_a_deleted_pod_belongs_to_no_other_pod() {
    let checkpoint = Checkpoint::parse(AFTER_DELETE).unwrap();
    let devices = checkpoint.devices_of(TWO_NICS, &[]);
    assert_eq!(devices.len(), 1);
    assert_eq!(devices["example.com/nic"], ["0000:02:00.2", "0000:02:00.3"]);
    let holders: Vec<&str> = checkpoint.holders("0000:01:10.1").collect();
    assert_eq!(holders, [DELETED]);
}

#[test]
fn devices_are_ordered_by_container_and_then_numerically() {
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
fn a_device_that_two_containers_had_is_listed_once() {
    let text = r#"{"Data":{"PodDeviceEntries":[
        {"PodUID":"u","ContainerName":"init","ResourceName":"r","DeviceIDs":{"0":["a1"]}},
        {"PodUID":"u","ContainerName":"main","ResourceName":"r","DeviceIDs":{"0":["a10","a2","a1"]}}
    ]}}"#;
    let checkpoint = Checkpoint::parse(text.as_bytes()).unwrap();
    assert_eq!(checkpoint.devices_of("u", &[])["r"], ["a1", "a2", "a10"]);
}

#[test]
fn a_checkpoint_cut_off_anywhere_is_torn() {
    let whole = ONE.trim_ascii_end();
    for length in 0..whole.len() {
        let parsed = Checkpoint::parse(&whole[..length]);
        assert!(
            matches!(parsed, Err(CheckpointCause::Torn(_))),
            "{length} bytes"
        );
    }
}

#[test]
fn a_checkpoint_without_the_expected_keys_is_of_an_unknown_version() {
    for text in ["{}", "[]", r#"{"Data":"{}"}"#] {
        let parsed = Checkpoint::parse(text.as_bytes());
        let expected = matches!(parsed, Err(CheckpointCause::UnknownType(_)));
        assert!(expected, "{text}");
    }
    for text in [
        r#"{"Data":{}}"#,
        r#"{"Data":{"Entries":[]}}"#,
        r#"{"Data":{"PodDeviceEntries":null}}"#,
    ] {
        let parsed = Checkpoint::parse(text.as_bytes());
        assert_eq!(parsed, Err(CheckpointCause::NoEntries), "{text}");
    }
    for text in [
        r#"{"Data":{"PodDeviceEntries":[{"PodUID":7}]}}"#,
        r#"{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":"a"}]}}"#,
    ] {
        let parsed = Checkpoint::parse(text.as_bytes());
        let expected = matches!(parsed, Err(CheckpointCause::UnknownType(_)));
        assert!(expected, "{text}");
    }
}

#[test]
fn a_checkpoint_without_any_device_plugin_is_empty() {
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
fn the_checkpoint_of_an_older_kubelet_is_read() {
    let text = r#"{"Data":{"PodDeviceEntries":[
        {"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":["b","a"]}]}}"#;
    let checkpoint = Checkpoint::parse(text.as_bytes()).unwrap();
    assert_eq!(checkpoint.devices_of("u", &[])["r"], ["a", "b"]);
}

// clause: NPWG-1.3 §4.2 operation: one allocation serves every network of the pod
#[test]
fn networks_get_the_devices_of_their_resource_in_order() {
    let two = allocation(&[("r", &["d1", "d2"]), ("s", &["e1"])]);
    let wishes = [wish("r", ""), wish("", ""), wish("s", ""), wish("r", "")];
    assert_eq!(given(&two, &wishes), ["d1", "-", "e1", "d2"]);
}

#[test]
fn a_named_device_goes_to_the_network_that_names_it() {
    let two = allocation(&[("r", &["d1", "d2"])]);
    assert_eq!(given(&two, &[wish("r", ""), wish("r", "d1")]), ["d2", "d1"]);
    assert_eq!(given(&two, &[wish("", "d2")]), ["d2"], "no resource needed");
}

#[test]
fn a_pci_address_is_the_same_in_upper_and_lower_case() {
    let one = allocation(&[("r", &["0000:3b:00.2"])]);
    assert_eq!(given(&one, &[wish("r", "0000:3B:00.2")]), ["0000:3b:00.2"]);
}

#[test]
fn a_device_that_does_not_belong_to_the_pod_is_refused() {
    let own = allocation(&[("r", &["d1"]), ("s", &["e1"])]);
    let not_owned = |id: &str| AssignError::NotOwned {
        id: id.to_owned(),
        resource: Some("r".to_owned()),
        own: vec!["d1".to_owned()],
    };
    assert_eq!(refused(&own, &[wish("r", "d9")]), not_owned("d9"));
    let of_another_resource = refused(&own, &[wish("r", "e1")]);
    assert_eq!(of_another_resource, not_owned("e1"));
    let twice = refused(&own, &[wish("", "d1"), wish("", "d1")]);
    let id = "d1".to_owned();
    assert_eq!(twice, AssignError::Twice(id));
}

#[test]
fn the_error_about_too_few_devices_names_the_resource() {
    let one = allocation(&[("r", &["d1"])]);
    let wishes = [wish("r", ""), wish("r", "")];
    let first = assign(&one, &wishes).remove(0);
    assert_eq!(first.unwrap().unwrap().id, "d1");
    let too_few = AssignError::TooFew {
        resource: "r".to_owned(),
        networks: 2,
        devices: vec!["d1".to_owned()],
    };
    assert_eq!(refused(&one, &wishes), too_few);
}

#[test]
fn networks_of_a_resource_without_devices_get_none_and_do_not_fail() {
    let mut none = Allocation::default();
    none.set("br", Supply::NoDevices);
    assert_eq!(given(&none, &[wish("br", ""), wish("br", "")]), ["-", "-"]);
}

#[test]
fn a_named_device_is_refused_while_the_pods_devices_are_unknown() {
    let cause = || Box::new(UnknownCause::NoUid);
    let mut unknown = Allocation::default();
    unknown.set("r", Supply::Unknown(cause()));
    for wish in [wish("", "d1"), wish("r", "d1")] {
        let (resource, cause) = ("r".to_owned(), cause());
        let expected = AssignError::Unknown { resource, cause };
        assert_eq!(refused(&unknown, &[wish]), expected);
    }
}

#[test]
fn assigning_from_a_resource_that_was_not_looked_up_fails() {
    let resource = "r".to_owned();
    let refused = refused(&Allocation::default(), &[wish("r", "")]);
    assert_eq!(refused, AssignError::NotLookedUp(resource));
}

#[test]
fn an_assigned_device_has_an_origin() {
    let two = allocation(&[("r", &["d1", "d2"])]);
    for given in assign(&two, &[wish("r", ""), wish("r", "d1")]) {
        assert_eq!(given.unwrap().unwrap().origin, Some(Origin::PodResources));
    }
}

/// kubelet's record of claims, with a claim of pod [`CLAIMANT`].
const CLAIMS: &[u8] = include_bytes!("tests/dra_manager_state");
const CLAIMANT: &str = "7a2fba40-fde6-4eec-8398-725d66d38d8d";

#[test]
fn a_real_kubelets_record_of_claims_lists_devices_by_pod_uid() {
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
fn a_torn_or_unknown_record_of_claims_is_refused() {
    for length in 0..CLAIMS.len() {
        assert!(
            matches!(
                Claims::parse(&CLAIMS[..length]),
                Err(CheckpointCause::Torn(_))
            ),
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
        let expected = matches!(parsed, Err(CheckpointCause::UnknownType(_)));
        assert!(expected, "{text}");
    }
    let none = r#"{"Data":"{\"ClaimInfoStateList\":null}"}"#;
    assert!(Claims::parse(none.as_bytes()).is_ok(), "no claims at all");
}
