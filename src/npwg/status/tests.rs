//! Tests of status entries and of the annotation that contains them.

use serde_json::json;

use super::*;
use crate::cni::Version;
use crate::cost::linear;

fn result(text: &str) -> CniResult {
    CniResult::parse(text.as_bytes(), Version::V1_1_0).unwrap()
}

/// Returns the entry of a further network, as text.
fn entry(result: Option<&CniResult>) -> String {
    serde_json::to_string(&source(result)).unwrap()
}

fn source(result: Option<&CniResult>) -> StatusEntry {
    StatusEntry::from_result(StatusSource {
        name: "default/sriov-a",
        is_default: false,
        result,
        ifname: &"net1".parse().unwrap(),
        requested_default_route: None,
        device_info: None,
        addresses: StatusAddresses::Prefix,
    })
}

// clause: NPWG-1.3 §5.3 keys: an entry has the specified keys
// clause: NPWG-1.3 §5.1 source
// clause: NPWG-1.3 §5.1.1 as much
// clause: NPWG-1.3 §5.3.2
// clause: NPWG-1.3 §5.3.3
// clause: NPWG-1.3 §5.3.4 mac
// clause: NPWG-1.3 §5.3.6
// clause: NPWG-1.3 §5.3.6.1
// clause: NPWG-1.3 §5.3.6.2
// clause: NPWG-1.3 §5.3.6.3
// clause: NPWG-1.3 §5.3.2.1: the first interface with a valid sandbox
// clause: NPWG-1.3 §5.1.1 first sandbox
// clause: NPWG-1.3 §5.3.4.1: the MAC of the first interface with a valid sandbox
// clause: NPWG-1.3 §5.3.6.4: the gateways, if the pod requested a default route
#[test]
fn an_entry_has_every_key_in_the_specified_order() {
    let result = result(
        r#"{"interfaces":[{"name":"veth7","mac":"02:00:00:00:00:07"},
            {"name":"net1","mac":"02:00:00:00:00:01","mtu":9000,"sandbox":"/n"},
            {"name":"net1b","sandbox":"/n"}],
        "ips":[{"address":"192.0.2.9/24","interface":0},{"address":"192.0.2.2/24","interface":1},
            {"address":"2001:db8::2230/32","interface":1},{"address":"192.0.2.3/24","interface":2},
            {"address":"192.0.2.4/24"}],
        "dns":{"nameservers":["192.0.2.1"],"domain":"example.com","search":["a"],"options":["ndots:5"]}}"#,
    );
    let entry = StatusEntry::from_result(StatusSource {
        name: "default/sriov-a",
        is_default: true,
        result: Some(&result),
        ifname: &"eth0".parse().unwrap(),
        requested_default_route: Some(&[
            "192.0.2.1".parse().unwrap(),
            "2001:db8::1".parse().unwrap(),
        ]),
        device_info: Some(json!({"type": "pci", "version": "1.1.0"})),
        addresses: StatusAddresses::Prefix,
    });
    let text = serde_json::to_string(&entry).unwrap();
    assert_eq!(
        text,
        r#"{"name":"default/sriov-a","interface":"net1","ips":["192.0.2.2/24","2001:db8::2230/32"],"mac":"02:00:00:00:00:01","mtu":9000,"default":true,"dns":{"nameservers":["192.0.2.1"],"domain":"example.com","search":["a"]},"default-route":["192.0.2.1","2001:db8::1"],"device-info":{"type":"pci","version":"1.1.0"}}"#
    );
    assert_eq!(serde_json::from_str::<StatusEntry>(&text).unwrap(), entry);
}

// clause: NPWG-1.3 §5.1.1 minimal
// clause: NPWG-1.3 §5.3.5 required
#[test]
fn an_attachment_without_a_result_has_a_minimal_entry() {
    let minimal = r#"{"name":"default/sriov-a","interface":"net1","default":false}"#;
    assert_eq!(entry(None), minimal);
    assert_eq!(entry(Some(&CniResult::default())), minimal);
}

// clause: NPWG-1.3 §5.3.3.1 sandbox
// clause: NPWG-1.3 §5.3.3.1 no sandbox
// clause: NPWG-1.3 §5.3.3.1 otherwise
// clause: NPWG-1.3 §5.3.4 with interface
#[test]
fn an_entry_has_the_addresses_in_the_pod() {
    let table = [
        (
            r#"{"interfaces":[{"name":"veth7","mac":"02:00:00:00:00:07"}],"ips":[{"address":"192.0.2.2/24"},{"address":"192.0.2.9/24","interface":0},{"address":"2001:db8::2/64","interface":-1}]}"#,
            r#"{"name":"default/sriov-a","ips":["192.0.2.2/24","2001:db8::2/64"],"default":false}"#,
        ),
        (
            r#"{"ips":[{"address":"192.0.2.2/24"}]}"#,
            r#"{"name":"default/sriov-a","interface":"net1","ips":["192.0.2.2/24"],"default":false}"#,
        ),
        (
            r#"{"interfaces":[{"name":"net1","sandbox":"/n"}],"ips":[{"address":"192.0.2.2/24"}]}"#,
            r#"{"name":"default/sriov-a","interface":"net1","ips":["192.0.2.2/24"],"default":false}"#,
        ),
        (
            r#"{"interfaces":[{"name":"veth7"},{"name":"net1","sandbox":"/n"}],"ips":[{"address":"192.0.2.2/24","interface":0}]}"#,
            r#"{"name":"default/sriov-a","interface":"net1","default":false}"#,
        ),
        (
            r#"{"interfaces":[{"name":"net1","sandbox":"/n"}],"ips":[{"address":"192.0.2.2/24","interface":7}]}"#,
            r#"{"name":"default/sriov-a","interface":"net1","ips":["192.0.2.2/24"],"default":false}"#,
        ),
    ];
    for (answered, expected) in table {
        assert_eq!(entry(Some(&result(answered))), expected, "{answered}");
    }
}

#[test]
fn an_mtu_of_zero_is_omitted() {
    let result = result(r#"{"interfaces":[{"name":"net1","mtu":0,"sandbox":"/n"}]}"#);
    assert_eq!(source(Some(&result)).mtu, None);
}

#[test]
fn an_entry_without_interface_shows_no_mac() {
    let nameless = r#"{"interfaces":[{"name":"","mac":"02:00:00:00:00:01","sandbox":"/n"}]}"#;
    let entry = source(Some(&result(nameless)));
    assert_eq!((&entry.interface, &entry.mac), (&None, &None));
    assert!(!serde_json::to_string(&entry).unwrap().contains("mac"));
}

#[test]
fn addresses_are_written_without_prefix_if_requested() {
    let result = result(r#"{"ips":[{"address":"192.0.2.2/24"},{"address":"2001:db8::2/64"}]}"#);
    let entry = StatusEntry::from_result(StatusSource {
        name: "cbr0",
        is_default: true,
        result: Some(&result),
        ifname: &"eth0".parse().unwrap(),
        requested_default_route: Some(&[]),
        device_info: None,
        addresses: StatusAddresses::Address,
    });
    assert_eq!(
        serde_json::to_string(&entry).unwrap(),
        r#"{"name":"cbr0","interface":"eth0","ips":["192.0.2.2","2001:db8::2"],"default":true,"default-route":[]}"#
    );
}

#[test]
fn an_entry_of_another_writer_is_read_leniently() {
    let read: StatusEntry = serde_json::from_str(
        r#"{"name":"x","ips":null,"dns":{},"default":null,"org.example.a":1,"gateway":["x"]}"#,
    )
    .unwrap();
    assert_eq!(
        read,
        StatusEntry {
            name: "x".to_owned(),
            dns: Some(Dns::default()),
            ..StatusEntry::default()
        }
    );
}

// clause: NPWG-1.3 §5.1 others: keys and entries of other writers survive
// clause: NPWG-1.3 §5.3 keys: keys with a period belong to other writers
#[test]
fn keys_and_entries_of_other_writers_survive() {
    let existing = r#"[
      {"name":"cbr0","interface":"eth0","ips":["10.0.0.9"],"default":true,"dns":{},"org.example.seen":1.10},
      {"name":"default/hot-plugged","interface":"net7","ips":["10.9.0.1"],"n":9007199254740993},
      {"name":"default/old","interface":"net1","gateway":["10.0.0.1"],"org.example.a":{"b": 1}},
      {"name":"default/sriov-b","org.example.c":2}]"#;
    let mut cluster = source(None);
    (cluster.name, cluster.interface, cluster.default) =
        ("calico".to_owned(), Some("eth0".to_owned()), true);
    let mut third = source(None);
    (third.name, third.interface) = ("default/sriov-b".to_owned(), Some("net2".to_owned()));
    assert_eq!(
        merge_status(Some(existing), &[cluster, source(None), third]),
        concat!(
            r#"[{"name":"calico","interface":"eth0","default":true,"org.example.seen":1.10},"#,
            r#"{"name":"default/sriov-a","interface":"net1","default":false,"org.example.a":{"b": 1}},"#,
            r#"{"name":"default/sriov-b","interface":"net2","default":false,"org.example.c":2},"#,
            r#"{"name":"default/hot-plugged","interface":"net7","ips":["10.9.0.1"],"n":9007199254740993}]"#
        )
    );
}

/// The new sandbox of the pod has fewer networks than the earlier sandbox. One network has a
/// different interface.
#[test]
fn the_merge_drops_only_entries_of_an_earlier_sandbox() {
    let entry = |name: &str, interface: &str| StatusEntry {
        name: name.to_owned(),
        interface: Some(interface.to_owned()),
        default: interface == "eth0",
        ..StatusEntry::default()
    };
    let unnamed = StatusEntry {
        interface: None,
        ..entry("demo/c", "")
    };
    let [eth0, net1, net2] = [("cbr0", "eth0"), ("demo/a", "net1"), ("demo/b", "net2")]
        .map(|(name, interface)| entry(name, interface));
    let signed = |mut entries: Vec<StatusEntry>| {
        StatusEntry::sign(&mut entries);
        entries
    };
    let told = merge_status(None, &signed(vec![eth0.clone(), net1, net2, unnamed]));
    let foreign = r#"{"name":"others/hot-plugged","interface":"hot0","default":false}"#;
    let told = format!("[{foreign},{}", &told[1..]);
    let ours = signed(vec![eth0.clone(), entry("demo/a", "foo")]);
    let later = merge_status(Some(&told), &ours);
    assert_eq!(
        later,
        format!(
            r#"[{{"name":"cbr0","interface":"eth0","default":true,"io.jackfield.attached":["demo/a@foo"]}},{{"name":"demo/a","interface":"foo","default":false}},{foreign}]"#
        )
    );
    assert_eq!(
        merge_status(Some(&later), &[eth0]),
        format!(r#"[{{"name":"cbr0","interface":"eth0","default":true}},{foreign}]"#)
    );
}

// clause: NPWG-1.3 §5.3.5 one
#[test]
fn a_new_default_network_replaces_the_earlier_one() {
    let mut cluster = source(None);
    (cluster.interface, cluster.default) = (Some("eth0".to_owned()), true);
    let merged = merge_status(
        Some(r#"[{"name":"cbr0","interface":"eth1","default":true}]"#),
        &[cluster],
    );
    assert_eq!(merged.matches(r#""default":true"#).count(), 1, "{merged}");
}

// clause: NPWG-1.3 §4.2 entry: a network that is attached twice has two entries
#[test]
fn a_network_that_is_attached_twice_has_two_entries() {
    let mut second = source(None);
    second.interface = Some("net2".to_owned());
    let ours = [source(None), second];
    let merged = merge_status(None, &ours);
    assert_eq!(
        serde_json::from_str::<Vec<StatusEntry>>(&merged).unwrap(),
        ours
    );
    assert_eq!(merge_status(Some(&merged), &ours), merged);
}

#[test]
fn a_value_that_is_not_a_list_is_replaced() {
    let deep = "[".repeat(100_000);
    for existing in ["", "null", "{}", "[", "[7]", "net-a", &deep] {
        assert_eq!(
            merge_status(Some(existing), &[source(None)]),
            r#"[{"name":"default/sriov-a","interface":"net1","default":false}]"#
        );
    }
    assert_eq!(merge_status(None, &[]), "[]");
}

// clause: NPWG-1.3 §5.1.1 before 0.3.0
// clause: NPWG-1.3 §5.3.3.1 before 0.3.0: the addresses come from ip4 and ip6
#[test]
fn a_result_of_cni_0_2_0_or_earlier_becomes_an_entry() {
    let text = r#"{"ip4":{"ip":"192.0.2.2/24","gateway":"192.0.2.1"},"ip6":{"ip":"2001:db8::2/64"},
        "dns":{"nameservers":["192.0.2.53"]}}"#;
    for version in [Version::V0_1_0, Version::V0_2_0] {
        let result = CniResult::parse(text.as_bytes(), version).unwrap();
        assert_eq!(
            entry(Some(&result)),
            r#"{"name":"default/sriov-a","interface":"net1","ips":["192.0.2.2/24","2001:db8::2/64"],"default":false,"dns":{"nameservers":["192.0.2.53"]}}"#
        );
    }
}

#[test]
fn merging_a_large_status_takes_linear_time() {
    let numbers = 0..40_000;
    let attached: Vec<String> = numbers.clone().map(|number| format!("a{number}")).collect();
    let first = serde_json::json!({"name": "x", "io.jackfield.attached": attached});
    let others = numbers
        .clone()
        .map(|number| format!(r#"{{"name":"b{number}"}}"#));
    let dotted = numbers.map(|number| format!(r#""k.{number}":0"#));
    let dotted: Vec<String> = dotted.collect();
    let ours = format!(r#"{{"interface":"net1",{}}}"#, dotted.join(","));
    let all: Vec<String> = [first.to_string(), ours]
        .into_iter()
        .chain(others)
        .collect();
    let existing = format!("[{}]", all.join(","));
    let entries = vec![source(None); 64];
    let merged = linear(|| merge_status(Some(&existing), &entries));
    assert!(merged.contains(r#""k.39999":0"#) && merged.contains("b39999"));
}
