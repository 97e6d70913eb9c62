//! Tests the steps of a record, and compares the record's file with the golden files.

use serde_json::value::RawValue;

use super::*;
use crate::allocation::{AllocatedDevice, Origin};
use crate::baseline::NetdevState;
use crate::cluster::ClaimedDevice;
use crate::cni::{CapabilityArgs, NetworkConfig, RawObject, Version};
use crate::golden;
use crate::journal::{Journal, Lookup};
use crate::kernel::{
    Family, NextHop, RawAttribute, VfLinkState, VfRates, VfState, VfVlan, VlanProtocol,
};
use crate::npwg::{Dialect, RequestedMac};
use crate::plan::{Requested, Segment};

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// An attachment with every field.
fn attachment() -> Attachment {
    let config =
        r#"{ "cniVersion": "1.0.0", "name": "n", "type": "sriov", "vlan": 7, "new": 1.0 }"#;
    let mut capability_args = CapabilityArgs::new();
    capability_args.set("ips", raw(r#"["10.1.0.7/24"]"#));
    Attachment {
        label: "demo/n".to_owned(),
        is_cluster: true,
        ifname: "net1".parse().unwrap(),
        network: "n".parse().unwrap(),
        config: NetworkConfig::parse(config.as_bytes()).unwrap(),
        capability_args,
        cni_args: Some(RawObject::parse(br#"{"A":1}"#).unwrap()),
        extra_args: vec![("MAC".to_owned(), "02:00:00:00:00:01".to_owned())],
        inject: vec![("deviceID".to_owned(), raw(r#""0000:01:10.0""#))],
        resource: Some("intel.com/sriov".to_owned()),
        device: Some(AllocatedDevice {
            id: "0000:01:10.0".to_owned(),
            resource: "intel.com/sriov".to_owned(),
            driver: Some("iavf".to_owned()),
            origin: Some(Origin::PodResources),
            claim: Some(ClaimedDevice {
                claim: "nic".to_owned(),
                driver: "vf.example.com".to_owned(),
                pool: "pool-a".to_owned(),
                device: "vf1".to_owned(),
            }),
        }),
        device_info_file: Some("/var/run/k8s.cni.cncf.io/devinfo/cni/n".into()),
        requested: Requested {
            ips: vec!["10.1.0.7/24".parse().unwrap(), "fd00::7".parse().unwrap()],
            mac: Some(RequestedMac::parse("02:00:00:00:00:01", Dialect::V1_3).unwrap()),
            guid: Some("02:00:00:00:00:00:00:01".parse().unwrap()),
            device: Some("0000:01:10.0".to_owned()),
        },
        segment: Some(Segment::device("0000:01:00.0").in_vlan(7)),
        default_route: Some(vec!["10.1.0.1".parse().unwrap()]),
        is_auxiliary: true,
        selection: Some(NetworksDigest::of("demo/n")),
    }
}

fn header() -> Header {
    let key = Key {
        container: "c1".parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    };
    let pod = PodName {
        namespace: "demo".to_owned(),
        name: "web".to_owned(),
        uid: Some("u".to_owned()),
    };
    Header {
        boot: "boot".to_owned(),
        netns: "/run/netns/pod".to_owned(),
        netns_id: "4:4026532000".to_owned(),
        args: "K8S_POD_NAMESPACE=demo;K8S_POD_NAME=web".to_owned(),
        pod: Some(pod),
        networks: Some(NetworksDigest::of("net-a")),
        ..Header::new(
            &key,
            vec![
                attachment(),
                Attachment::for_tests(r#"{"cniVersion":"1.0.0","type":"bridge"}"#),
            ],
        )
    }
}

/// A device with every field.
pub(in crate::journal) fn device() -> DeviceState {
    DeviceState {
        device: "0000:01:10.0".parse().unwrap(),
        generation: Some(7),
        driver: Some("iavf".to_owned()),
        netdev: Some(NetdevState {
            name: "ens1f0v0".to_owned(),
            address: vec![2, 0, 0, 0, 0, 1],
            mtu: 1500,
        }),
        physical: Some("0000:01:00.0".parse().unwrap()),
        function: Some(VfState {
            index: 0,
            mac: Some("02:00:00:00:00:01".parse().unwrap()),
            vlan: Some(VfVlan {
                id: 7,
                qos: 1,
                protocol: VlanProtocol::Service,
            }),
            spoof_check: Some(true),
            trust: Some(false),
            rss_query: Some(false),
            link_state: Some(VfLinkState::Auto),
            rates: Some(VfRates { min: 1, max: 100 }),
            node_guid: Some("02:00:00:00:00:00:00:01".parse().unwrap()),
            port_guid: Some("02:00:00:00:00:00:00:02".parse().unwrap()),
        }),
    }
}

fn result() -> CniResult {
    let text = r#"{
        "cniVersion": "1.1.0",
        "interfaces": [{ "name": "net1", "mac": "02:00:00:00:00:01", "mtu": 1500,
            "sandbox": "/run/netns/pod", "socketPath": "/run/s", "pciID": "0000:01:10.0" }],
        "ips": [{ "interface": 0, "address": "10.1.0.7/24", "gateway": "10.1.0.1" }],
        "routes": [{ "dst": "0.0.0.0/0", "gw": "10.1.0.1", "mtu": 1400, "advmss": 1360,
            "priority": 5, "table": 100, "scope": 0 }],
        "dns": { "nameservers": ["10.1.0.1"], "domain": "d", "search": ["s"], "options": ["o"] }
    }"#;
    CniResult::parse(text.as_bytes(), Version::V1_1_0).unwrap()
}

fn routes() -> RouteChange {
    let rest = || vec![RawAttribute::try_from("8:0800020078050000".to_owned()).unwrap()];
    let removed = DefaultRoute {
        family: Family::V4,
        next_hops: vec![NextHop {
            gateway: Some("10.1.0.1".parse().unwrap()),
            interface: Some("eth0".to_owned()),
            onlink: true,
            extra_weight: 1,
            rest: rest(),
        }],
        metric: Some(5),
        protocol: 4,
        scope: 1,
        tos: 8,
        from: Some("10.2.0.0/16".parse().unwrap()),
        prefsrc: Some("10.1.0.7".parse().unwrap()),
        next_hop_id: Some(3),
        expires: Some(60),
        rest: rest(),
    };
    let added = DefaultRoute::via("fd00::1".parse().unwrap(), "net1", None);
    RouteChange {
        removed: vec![removed],
        added: vec![added],
    }
}

/// Writes a record with every kind of step.
fn write_record(journal: &Journal) {
    let (device, result, routes) = ([device()], result(), routes());
    let mut entry = journal.begin(&header()).unwrap();
    entry
        .write(&[Step::Baseline(Cow::Borrowed(&device))])
        .unwrap();
    let steps = [
        Step::Started(0),
        Step::Attached(0, Cow::Borrowed(&result)),
        Step::Failed(0, 2),
        Step::Routes(0, Cow::Borrowed(&routes)),
        Step::Detached(0),
        Step::Started(1),
        Step::Complete,
    ];
    entry.write(&steps).unwrap();
}

#[test]
fn golden_record_is_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    write_record(&Journal::new(dir.path()));
    let written = std::fs::read(dir.path().join("sandboxes/c1@eth0")).unwrap();
    golden::assert_current("sandbox", &written);
}

#[test]
fn golden_record_of_the_previous_release_is_read() {
    let previous = Sandbox::replay(&golden::previous("sandbox")).unwrap();
    assert_eq!(previous.baseline, [device()]);
    assert!(previous.complete && !previous.is_torn);
    assert_eq!(previous.to_detach(), [1]);
    let [first, second] = previous.progress.as_slice() else {
        panic!("two attachments: {previous:?}");
    };
    assert!(first.started && first.detached && second.started && !second.detached);
    assert_eq!(first.result, Some(result()));
    assert_eq!(first.failed_at, Some(2));
    assert_eq!(first.routes, routes());
    let mut expected = header();
    expected.networks = None;
    expected.attachments[0].selection = None;
    expected.attachments[0].device.as_mut().unwrap().claim = None;
    assert_eq!(
        format!("{:?}", previous.header),
        format!("{expected:?}"),
        "both headers have the same meaning"
    );
    // The record of the previous release lacks the keys that are new in this release. This release
    // adds none of these keys when it writes the record again.
    let written = previous.to_bytes().unwrap();
    assert_eq!(written, golden::previous("sandbox"));
}

fn named(ifname: &str) -> Attachment {
    Attachment {
        ifname: ifname.parse().unwrap(),
        ..Attachment::for_tests(r#"{"cniVersion":"1.0.0","type":"bridge"}"#)
    }
}

fn names(sandbox: &Sandbox) -> Vec<&str> {
    let attachments = sandbox.header.attachments.iter();
    attachments.map(|it| it.ifname.as_str()).collect()
}

/// Writes and returns the record of a pod with `net1` and `net2`, during a change that removes
/// `net1` and adds `net3` and `net4`.
fn changing(journal: &Journal) -> Sandbox {
    let mut sandbox = Sandbox::planned(Header {
        boot: boot_id(),
        attachments: vec![named("net1"), named("net2")],
        ..header()
    });
    for progress in &mut sandbox.progress {
        progress.started = true;
        progress.result = Some(result());
    }
    sandbox.complete = true;
    sandbox.begin_change(vec![0], vec![named("net3"), named("net4")]);
    journal.write(&sandbox).unwrap();
    sandbox
}

fn found(journal: &Journal) -> Sandbox {
    match journal.find(&header().key()).unwrap() {
        Lookup::Found(sandbox) => *sandbox,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_del_during_a_change_detaches_only_started_attachments() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    changing(&journal);
    let sandbox = found(&journal);
    assert!(sandbox.complete && !sandbox.is_torn);
    assert_eq!(sandbox.header.networks, Some(NetworksDigest::default()));
    assert_eq!(sandbox.to_detach(), [1, 0], "net3 and net4 are not started");
    assert_eq!(sandbox.unfinished(), [0]);
    let mut entry = journal.reopen(&header().key()).unwrap();
    entry.write(&[Step::Detached(0), Step::Started(2)]).unwrap();
    let sandbox = found(&journal);
    assert_eq!(sandbox.to_detach(), [2, 1]);
    assert_eq!(sandbox.unfinished(), [2]);
    assert!(!sandbox.is_pending(1) && sandbox.is_pending(0) && sandbox.is_pending(3));
}

#[test]
fn a_del_after_a_reboot_during_a_change_detaches_every_network() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    let mut sandbox = changing(&journal);
    sandbox.header.boot = "an earlier boot".to_owned();
    journal.write(&sandbox).unwrap();
    assert_eq!(found(&journal).to_detach(), [3, 2, 1, 0]);
}

#[test]
fn a_record_after_a_change_contains_only_attached_networks() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    let mut sandbox = changing(&journal);
    sandbox.progress[0].detached = true;
    sandbox.progress[2].started = true;
    let digest = NetworksDigest::of("b,c");
    let sandbox = sandbox.end_change(digest.clone());
    journal.write(&sandbox).unwrap();
    let sandbox = found(&journal);
    assert_eq!(names(&sandbox), ["net2", "net3"]);
    assert_eq!(
        (sandbox.to_detach(), sandbox.unfinished()),
        (vec![1, 0], vec![])
    );
    assert!(sandbox.complete && sandbox.header.change.is_none());
    assert_eq!(sandbox.header.networks, Some(digest));
}

#[test]
fn a_change_forgets_a_replaced_route_whose_interface_is_detached() {
    let dir = tempfile::tempdir().unwrap();
    let mut sandbox = changing(&Journal::new(dir.path()));
    let via = |ifname: &str| DefaultRoute::via("10.1.0.1".parse().unwrap(), ifname, None);
    sandbox.progress[1].routes.removed = vec![via("eth0"), via("net1")];
    sandbox.progress[0].detached = true;
    let sandbox = sandbox.end_change(NetworksDigest::default());
    assert_eq!(sandbox.progress[0].routes.removed, [via("eth0")]);
}

#[test]
fn golden_record_during_a_change_is_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    let mut sandbox = changing(&journal);
    sandbox.header.boot = "boot".to_owned();
    journal.write(&sandbox).unwrap();
    let written = std::fs::read(dir.path().join("sandboxes/c1@eth0")).unwrap();
    golden::assert_current("sandbox-during-a-change", &written);
}
