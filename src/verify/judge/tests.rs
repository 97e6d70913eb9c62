//! Tests of the rules of verification.

mod address;
mod identity;
mod master;

use crate::cni::{CniResult, InterfaceName, Version};
use crate::kernel::{Address, Link};
use crate::npwg::{Dialect, RequestedIp};
use crate::plan::Requested;

use super::*;

const IPOIB: &str = "80:00:00:49:fe:80:00:00:00:00:00:00:02:c9:03:00:00:02:00:3a";
const GUID: &str = "02:c9:03:00:00:02:00:3a";

/// A pod's request and a delegate's result.
#[derive(Default)]
struct Asked {
    ips: Vec<RequestedIp>,
    mac: Option<RequestedMac>,
    guid: Option<device_info::Guid>,
    answer: Option<CniResult>,
    device: Option<&'static str>,
    in_user_space: bool,
    later: Option<Vec<InterfaceName>>,
}

impl Asked {
    fn ips(ips: &[&str]) -> Self {
        Self {
            ips: ips.iter().map(|ip| ip.parse().unwrap()).collect(),
            ..Self::default()
        }
    }

    fn mac(mac: &str) -> Self {
        Self {
            mac: Some(RequestedMac::parse(mac, Dialect::V1_0).unwrap()),
            ..Self::default()
        }
    }

    fn guid(guid: &str) -> Self {
        Self {
            guid: Some(guid.parse().unwrap()),
            ..Self::default()
        }
    }

    fn device(device: &'static str) -> Self {
        Self {
            device: Some(device),
            ..Self::default()
        }
    }

    /// Returns a case in which the pod requests nothing and the delegate returned `answer`.
    fn nothing(answer: &str) -> Self {
        Self::default().answered(answer)
    }

    fn answered(self, answer: &str) -> Self {
        Self {
            answer: Some(CniResult::parse(answer.as_bytes(), Version::V1_1_0).unwrap()),
            ..self
        }
    }

    fn below(self, later: &[&str]) -> Self {
        Self {
            later: Some(later.iter().map(|name| name.parse().unwrap()).collect()),
            ..self
        }
    }

    fn judge(&self, observed: &Observed) -> Vec<Finding> {
        let ifname: InterfaceName = "net1".parse().unwrap();
        let requested = Requested {
            ips: self.ips.clone(),
            mac: self.mac,
            guid: self.guid,
            device: None,
        };
        let intended = Intended {
            ifname: &ifname,
            requested: &requested,
            answered: self.answer.as_ref(),
            device: self.device,
            in_user_space: self.in_user_space,
            masters: self.later.as_deref().map_or(Masters::Any, Masters::Among),
        };
        judge(&intended, observed)
    }
}

/// An interface that is up, with two addresses.
fn seen() -> Observed {
    Observed {
        link: Some(Link {
            index: 3,
            name: "net1".to_owned(),
            address: vec![2, 0, 0, 0, 0, 1],
            mtu: 1500,
            up: true,
            carrier: true,
            arp_type: 1,
            ..Link::default()
        }),
        addresses: vec![address("10.1.1.5/24"), address("2001:db8::5/64")],
        master: None,
        device: Vec::new(),
    }
}

fn address(text: &str) -> Address {
    Address {
        index: 3,
        address: text.parse().unwrap(),
        dad_failed: false,
        tentative: false,
        optimistic: false,
    }
}

fn seen_with(change: impl FnOnce(&mut Observed)) -> Observed {
    let mut observed = seen();
    change(&mut observed);
    observed
}

fn link_with(change: impl FnOnce(&mut Link)) -> Observed {
    seen_with(|observed| change(observed.link.as_mut().unwrap()))
}

fn gone() -> Observed {
    Observed::default()
}

fn infiniband() -> Observed {
    link_with(|link| {
        link.arp_type = Link::INFINIBAND;
        link.address = hardware::octets(hardware::parse(IPOIB).unwrap());
    })
}

/// A result with a host interface and `net1`. `interface` adds keys to `net1`.
fn answer(interface: &str, ips: &str) -> String {
    format!(
        r#"{{"cniVersion":"1.1.0","interfaces":[{{"name":"veth0","mac":"02:00:00:00:00:99"}},
        {{"name":"net1","sandbox":"/run/netns/a"{interface}}}],"ips":[{ips}]}}"#
    )
}

/// Compares each finding with the expected weight and the expected part of its text. Checks that
/// each text is one line that begins with the interface.
fn expect(asked: &Asked, observed: &Observed, expected: &[(Weight, &str)]) {
    let findings = asked.judge(observed);
    let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), expected.len(), "{lines:#?}\n{expected:#?}");
    for ((finding, line), (weight, part)) in findings.iter().zip(&lines).zip(expected) {
        assert_eq!(finding.weight, *weight, "{line}");
        assert!(line.starts_with("interface net1: "), "{line}");
        assert!(line.contains(part), "{line}\n{part}");
        assert!(line.contains("; ") && !line.contains('\n'), "{line}");
    }
}

use Weight::{Answered, Requested as Demanded, Warning};

#[test]
fn an_attachment_as_intended_has_no_finding() {
    let all = answer(
        r#","mac":"02:00:00:00:00:01","mtu":1500"#,
        r#"{"interface":1,"address":"10.1.1.5/24"},{"address":"2001:db8::5/64"},
           {"interface":0,"address":"10.9.9.9/24"}"#,
    );
    for asked in [
        Asked::default(),
        Asked::nothing("{}"),
        Asked::nothing(&all),
        Asked::ips(&["10.1.1.5/24", "2001:db8::5"]).answered(&all),
        Asked::mac("02:00:00:00:00:01").answered(&all),
    ] {
        expect(&asked, &seen(), &[]);
    }
}

#[test]
fn a_missing_interface_is_a_finding_if_something_requires_it() {
    let line = "it is not in the pod";
    let table = [
        (Asked::default(), None),
        (Asked::nothing("{}"), None),
        (Asked::nothing(&answer("", "")), Some(Answered)),
        (
            Asked::nothing(r#"{"ips":[{"address":"10.1.1.5/24"}]}"#),
            Some(Answered),
        ),
        (Asked::ips(&["10.1.1.5"]), Some(Demanded)),
        (Asked::mac("02:00:00:00:00:01"), Some(Demanded)),
        (Asked::guid(GUID), Some(Demanded)),
        (Asked::device("0000:01:10.0"), Some(Demanded)),
    ];
    for (asked, weight) in table {
        let expected: Vec<_> = weight.into_iter().map(|weight| (weight, line)).collect();
        expect(&asked, &gone(), &expected);
    }
}

// clause: CNI-1.1.0 §2 ADD creates: the interface has the name in CNI_IFNAME
#[test]
fn the_interface_must_have_the_name_cni_ifname() {
    let alias = link_with(|link| link.name = "eth7".to_owned());
    let part = "alternative name of interface \"eth7\"";
    expect(
        &Asked::nothing(&answer("", "")),
        &alias,
        &[(Answered, part)],
    );
    expect(&Asked::ips(&["10.1.1.5"]), &alias, &[(Demanded, part)]);
    let other = r#"{"interfaces":[{"name":"eth7","sandbox":"/a"}]}"#;
    let part = "the delegate returned interface \"eth7\"";
    expect(&Asked::nothing(other), &seen(), &[(Answered, part)]);
    // A delegate may create a second interface in the sandbox.
    let more = r#"{"interfaces":[{"name":"eth7","sandbox":"/a"},{"name":"net1","sandbox":"/a"}]}"#;
    expect(&Asked::nothing(more), &seen(), &[]);
}

#[test]
fn the_mtu_must_match_the_delegates_result() {
    let answering = |mtu: &str| Asked::nothing(&answer(&format!(r#","mtu":{mtu}"#), ""));
    let part = "its MTU is 1500, but the delegate returned 9000";
    expect(&answering("9000"), &seen(), &[(Answered, part)]);
    expect(&answering("1500"), &seen(), &[]);
    expect(&answering("0"), &seen(), &[]);
    expect(&answering("null"), &seen(), &[]);
}

#[test]
fn link_must_be_up_and_should_have_a_carrier() {
    let down = link_with(|link| {
        link.up = false;
        link.carrier = false;
    });
    expect(&Asked::default(), &down, &[(Answered, "it is down")]);
    let unplugged = link_with(|link| link.carrier = false);
    expect(&Asked::default(), &unplugged, &[(Warning, "no carrier")]);
}

#[test]
fn without_an_interface_verification_uses_the_result_of_the_delegate() {
    let user = |asked: Asked| Asked {
        in_user_space: true,
        ..asked
    };
    let answering = answer(
        r#","mac":"02:00:00:00:00:01","mtu":9000"#,
        r#"{"interface":1,"address":"10.1.1.5/24"}"#,
    );
    expect(&user(Asked::nothing(&answering)), &gone(), &[]);
    expect(&user(Asked::device("0000:01:10.0")), &gone(), &[]);
    expect(
        &user(Asked::ips(&["10.1.1.5/24"]).answered(&answering)),
        &gone(),
        &[],
    );
    expect(
        &user(Asked::mac("02:00:00:00:00:01").answered(&answering)),
        &gone(),
        &[],
    );
    let part = "10.1.1.6 was requested, but the interface has 10.1.1.5/24;";
    expect(
        &user(Asked::ips(&["10.1.1.6"]).answered(&answering)),
        &gone(),
        &[(Demanded, part)],
    );
    let part = "is 02:00:00:00:00:01, but 02:00:00:00:00:02 was requested";
    expect(
        &user(Asked::mac("02:00:00:00:00:02").answered(&answering)),
        &gone(),
        &[(Demanded, part)],
    );
    let part = "hardware address 02:00:00:00:00:02 was requested, but the delegate returned none";
    expect(
        &user(Asked::mac("02:00:00:00:00:02")),
        &gone(),
        &[(Warning, part)],
    );
    // Some user-space drivers keep a kernel interface. Verification judges that interface.
    let part = "its MTU is 1500";
    expect(
        &user(Asked::nothing(&answering)),
        &seen_with(|o| o.addresses.truncate(1)),
        &[(Answered, part)],
    );
}
