//! Reserving and releasing resources, also after a process was killed halfway.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::allocation::AllocatedDevice;
use crate::cni::RawObject;
use crate::plan::{Requested, Segment};

const DEVICE: &str = "0000:01:10.0";
const MAC: &str = "02:00:00:00:00:01";

fn device() -> Exclusive {
    Exclusive::Device(DEVICE.parse().unwrap())
}

/// The header of a sandbox whose only attachment has the device, the MAC and a GUID.
fn header(container: &str) -> Header {
    let key = Key {
        container: container.parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    };
    let config = r#"{"cniVersion":"1.0.0","name":"n","type":"sriov"}"#;
    let attachment = Attachment {
        device: Some(AllocatedDevice {
            id: DEVICE.to_owned(),
            resource: "r".to_owned(),
            driver: None,
            origin: None,
            claim: None,
        }),
        requested: Requested {
            mac: Some(RequestedMac::Ethernet(MAC.parse().unwrap())),
            guid: Some("02:00:00:00:00:00:00:3e".parse().unwrap()),
            ..Requested::default()
        },
        segment: Some(Segment::bridge("br0", 0)),
        ..Attachment::for_tests(config)
    };
    Header::new(&key, vec![attachment])
}

fn journal() -> (tempfile::TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    (dir, journal)
}

fn begun(journal: &Journal, container: &str) -> Header {
    let header = header(container);
    journal.begin(&header).unwrap();
    header
}

/// Takes `what` for the sandbox of `header`. Returns the other container that already holds
/// `what`, if there is one.
fn take(journal: &Journal, header: &Header, what: &Exclusive) -> Option<String> {
    let soon = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let turn = Turn::take(&journal.dir.join("locks"), soon).unwrap();
    let holder = journal.take(&header.key(), what, &turn).unwrap();
    holder.map(|sandbox| sandbox.header.container.to_string())
}

#[test]
fn a_resource_has_only_one_holder_at_a_time() {
    let (_dir, journal) = journal();
    let (one, two) = (begun(&journal, "one"), begun(&journal, "two"));
    let all = Exclusive::of(&one.attachments[0]);
    assert_eq!(all.len(), 3, "device, MAC and GUID");
    for what in &all {
        assert_eq!(take(&journal, &one, what), None);
        assert_eq!(take(&journal, &one, what), None, "no conflict with itself");
        assert_eq!(take(&journal, &two, what), Some("one".to_owned()));
    }
    journal.give_back(&two.key(), &two.attachments);
    assert_eq!(
        take(&journal, &two, &device()),
        Some("one".to_owned()),
        "sandbox two cannot release the device of sandbox one"
    );
    journal.give_back(&one.key(), &one.attachments);
    journal.forget(&one.key()).unwrap();
    for what in &all {
        assert_eq!(take(&journal, &two, what), None);
    }
}

#[test]
fn a_link_to_a_missing_record_reserves_nothing() {
    let (_dir, journal) = journal();
    let (one, two) = (begun(&journal, "one"), begun(&journal, "two"));
    assert_eq!(take(&journal, &one, &device()), None);
    // Simulates a process that is killed after it removed the record and before it removes the
    // link.
    journal.forget(&one.key()).unwrap();
    assert_eq!(take(&journal, &two, &device()), None);
}

#[test]
fn a_link_to_a_record_without_the_device_reserves_nothing() {
    let (_dir, journal) = journal();
    let one = begun(&journal, "one");
    assert_eq!(take(&journal, &one, &device()), None);
    journal.forget(&one.key()).unwrap();
    let mut other = header("one");
    other.attachments.clear();
    journal.begin(&other).unwrap();
    let two = begun(&journal, "two");
    assert_eq!(take(&journal, &two, &device()), None);
}

#[test]
fn exactly_one_of_many_simultaneous_calls_gets_the_device() {
    let (_dir, journal) = journal();
    let headers: Vec<Header> = (0..8)
        .map(|number| begun(&journal, &format!("c{number}")))
        .collect();
    let winners = std::thread::scope(|scope| {
        let takes: Vec<_> = headers
            .iter()
            .map(|header| scope.spawn(|| take(&journal, header, &device()).is_none()))
            .collect();
        let won = takes.into_iter().map(|take| take.join().unwrap());
        won.filter(|won| *won).count()
    });
    assert_eq!(winners, 1);
}

#[test]
fn an_address_is_exclusive_only_on_its_segment() {
    let (_dir, journal) = journal();
    let one = begun(&journal, "one");
    for what in &Exclusive::of(&one.attachments[0]) {
        assert_eq!(take(&journal, &one, what), None);
    }
    for (number, segment) in [
        Segment::bridge("br1", 0),
        Segment::bridge("br0", 7),
        Segment::network(&format!("{}/{}", "n".repeat(63), "d".repeat(253))),
    ]
    .into_iter()
    .enumerate()
    {
        let mut other = header(&format!("other-{number}"));
        other.attachments[0].segment = Some(segment);
        journal.begin(&other).unwrap();
        let [device, mac, guid] = &Exclusive::of(&other.attachments[0])[..] else {
            panic!("expected device, MAC and GUID");
        };
        assert_eq!(take(&journal, &other, device), Some("one".to_owned()));
        assert_eq!(take(&journal, &other, mac), None);
        assert_eq!(take(&journal, &other, guid), None);
    }
}

/// In the previous release, the name of a link contained no segment (layer-2 network).
#[test]
fn a_reservation_of_the_previous_release_is_found_and_released() {
    let (_dir, journal) = journal();
    let mut one = header("one");
    one.attachments[0].segment = None;
    journal.begin(&one).unwrap();
    let mac = journal.dir.join(FOLDER).join(format!("mac-{MAC}"));
    fs::create_dir(journal.dir.join(FOLDER)).unwrap();
    symlink(one.key().file_name(), &mac).unwrap();
    let two = begun(&journal, "two");
    let unnamed = Exclusive::of(&two.attachments[0])[1].without_segment();
    let holder = journal.other_holder(&two.key(), &unnamed.unwrap()).unwrap();
    assert_eq!(holder.unwrap().header.container.as_str(), "one");
    journal.give_back(&one.key(), &one.attachments);
    assert!(fs::symlink_metadata(mac).is_err());
}

/// The reference plugins take a MAC from `args.cni` as well as from the capability `mac`.
#[test]
fn an_address_in_cni_args_is_exclusive() {
    let (_dir, journal) = journal();
    let one = begun(&journal, "one");
    for what in &Exclusive::of(&one.attachments[0]) {
        take(&journal, &one, what);
    }
    let mut other = header("other");
    let attachment = &mut other.attachments[0];
    attachment.device = None;
    attachment.requested = Requested::default();
    attachment.cni_args = RawObject::parse(format!(r#"{{"Mac":"{MAC}","x":1}}"#).as_bytes()).ok();
    journal.begin(&other).unwrap();
    let [mac] = &Exclusive::of(&other.attachments[0])[..] else {
        panic!("expected a MAC");
    };
    assert_eq!(take(&journal, &other, mac), Some("one".to_owned()));
}
