//! The proof of an attachment on a real kernel: observed, waited for, judged.

use std::time::{Duration, Instant};

use crate::sandbox::{Sandbox, sandbox};
use jackfield::cni::{CniResult, InterfaceName, Version};
use jackfield::npwg::{Dialect, RequestedMac};
use jackfield::plan::Requested;
use jackfield::verify::{Finding, Intended, Masters, Weight, judge, observe};

const ANSWER: &str = r#"{"cniVersion":"1.1.0",
    "interfaces":[{"name":"net1","mac":"02:00:00:00:00:01","mtu":1400,"sandbox":"/run/netns/a"}],
    "ips":[{"interface":0,"address":"10.1.1.5/24"},{"interface":0,"address":"2001:db8::5/64"}]}"#;

fn attached() -> Sandbox {
    let pod = sandbox();
    pod.ip("link add net1 address 02:00:00:00:00:01 mtu 1400 type veth peer name peer1");
    pod.ip("link set peer1 up");
    pod.ip("link set net1 up");
    pod.ip("address add 10.1.1.5/24 dev net1");
    pod
}

fn prove(pod: &Sandbox, later: Option<&[InterfaceName]>) -> Vec<Finding> {
    let ifname: InterfaceName = "net1".parse().unwrap();
    let answer = CniResult::parse(ANSWER.as_bytes(), Version::V1_1_0).unwrap();
    let requested = Requested {
        ips: vec!["2001:db8::5/64".parse().unwrap()],
        mac: Some(RequestedMac::parse("02:00:00:00:00:01", Dialect::V1_3).unwrap()),
        guid: None,
        device: None,
    };
    let intended = Intended {
        ifname: &ifname,
        requested: &requested,
        answered: Some(&answer),
        device: None,
        in_user_space: false,
        masters: later.map_or(Masters::Any, Masters::Among),
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    let observed = observe(&mut pod.netlink(), &intended, deadline).unwrap();
    judge(&intended, &observed)
}

#[test]
fn an_attachment_is_proven_once_its_addresses_are_settled() {
    let pod = attached();
    pod.ip("address add 2001:db8::5/64 dev net1");
    assert_eq!(prove(&pod, None), []);
}

#[test]
fn an_address_that_somebody_else_has_fails_the_proof() {
    let pod = attached();
    pod.ip("address add 2001:db8::5/64 dev peer1 nodad");
    pod.ip("address add 2001:db8::5/64 dev net1");
    let findings = prove(&pod, None);
    let [finding] = findings.as_slice() else {
        panic!("{findings:?}")
    };
    assert_eq!(finding.weight, Weight::Requested);
    assert!(finding.to_string().contains("2001:db8::5/64 is in use"));
}

#[test]
fn what_was_changed_behind_its_back_is_found_on_check() {
    let pod = attached();
    pod.ip("address add 2001:db8::5/64 dev net1 nodad");
    let later: [InterfaceName; 1] = ["bond0".parse().unwrap()];
    assert_eq!(prove(&pod, Some(&later)), []);
    pod.ip("link add br0 type bridge");
    pod.ip("link set net1 master br0");
    pod.ip("link set net1 mtu 1500 address 02:00:00:00:00:02");
    pod.ip("address del 10.1.1.5/24 dev net1");
    let findings = prove(&pod, Some(&later));
    let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
    let parts = [
        "enslaved to \"br0\"",
        "its hardware address is 02:00:00:00:00:02, but 02:00:00:00:00:01 was requested",
        "its MTU is 1500, but the delegate returned 1400",
        "10.1.1.5/24 was returned by the delegate, but the interface has 2001:db8::5/64",
    ];
    assert_eq!(lines.len(), parts.len(), "{lines:#?}");
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.contains(part), "{line}");
    }
}
