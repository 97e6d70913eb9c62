//! IP addresses and duplicate address detection.

use super::*;
use crate::cost::linear;

// clause: NPWG-1.3 §4.1.2.1.3 assigned: the interface has the requested addresses
// clause: NPWG-1.0 §4.1.2.1.3.2 assigned: the check fails if an address is missing
#[test]
fn requested_ips_must_be_on_the_interface() {
    let table: [(&[&str], &[&str]); 7] = [
        (&["10.1.1.5"], &[]),
        (&["10.1.1.5/24"], &[]),
        (&["2001:db8:0::5/64"], &[]),
        (
            &["10.1.1.5/16"],
            &[
                "IP address 10.1.1.5/16 was requested, but the interface has 10.1.1.5/24, \
                 2001:db8::5/64;",
            ],
        ),
        (&["10.1.1.6"], &["IP address 10.1.1.6 was requested"]),
        (
            &["10.1.1.6", "10.1.1.5", "2001:db8::6/64"],
            &["10.1.1.6 was", "2001:db8::6/64 was"],
        ),
        (&["::ffff:10.1.1.5"], &["was requested"]),
    ];
    for (ips, parts) in table {
        let expected: Vec<_> = parts.iter().map(|part| (Demanded, *part)).collect();
        expect(&Asked::ips(ips), &seen(), &expected);
    }
    let bare = seen_with(|observed| observed.addresses.clear());
    let part = "IP address 10.1.1.5 was requested, but the interface has none;";
    expect(&Asked::ips(&["10.1.1.5"]), &bare, &[(Demanded, part)]);
}

#[test]
fn ips_in_the_result_must_be_on_the_interface() {
    let answering = |ips: &str| Asked::nothing(&answer("", ips));
    let part =
        "IP address 10.1.1.5/16 was returned by the delegate, but the interface has 10.1.1.5/24";
    expect(
        &answering(r#"{"interface":1,"address":"10.1.1.5/16"}"#),
        &seen(),
        &[(Answered, part)],
    );
    // An address without a valid interface index counts as an address of this interface. An address
    // with the index of a host interface does not.
    for (index, findings) in [("-1", 1), ("7", 1), ("null", 1), ("0", 0)] {
        let asked = answering(&format!(
            r#"{{"interface":{index},"address":"10.1.1.9/24"}}"#
        ));
        let expected = [(Answered, "10.1.1.9/24 was returned")];
        expect(&asked, &seen(), &expected[..findings]);
    }
    // The pod requested an address, the delegate returned it, and the interface lacks it. This
    // causes only one finding.
    let both = Asked::ips(&["10.1.1.9"])
        .answered(&answer("", r#"{"interface":1,"address":"10.1.1.9/24"}"#));
    expect(&both, &seen(), &[(Demanded, "10.1.1.9 was requested")]);
    // The request has no prefix, so 10.1.1.5/24 on the interface meets it. The result has another
    // prefix, so 10.1.1.5/24 does not match the result.
    let prefix = Asked::ips(&["10.1.1.5"])
        .answered(&answer("", r#"{"interface":1,"address":"10.1.1.5/16"}"#));
    expect(&prefix, &seen(), &[(Answered, "10.1.1.5/16 was returned")]);
}

/// Returns [`seen`] with this carrier, and with these flags on its last address.
fn dad(failed: bool, tentative: bool, optimistic: bool, carrier: bool) -> Observed {
    seen_with(|observed| {
        observed.link.as_mut().unwrap().carrier = carrier;
        let address = observed.addresses.last_mut().unwrap();
        address.dad_failed = failed;
        address.tentative = tentative;
        address.optimistic = optimistic;
    })
}

#[test]
fn unsuccessful_dad_is_an_error_only_with_a_carrier() {
    let requested = || Asked::ips(&["2001:db8::5"]);
    let answered = || Asked::nothing(&answer("", r#"{"interface":1,"address":"2001:db8::5/64"}"#));
    let failed = "IP address 2001:db8::5/64 is in use by another host";
    let pending = "IP address 2001:db8::5/64 is still being checked";
    let stuck = "IP address 2001:db8::5/64 cannot be checked";
    for (asked, weight) in [(requested(), Demanded), (answered(), Answered)] {
        expect(&asked, &dad(true, false, false, true), &[(weight, failed)]);
        // The kernel keeps the tentative flag on an address that failed.
        expect(&asked, &dad(true, true, false, true), &[(weight, failed)]);
        expect(&asked, &dad(false, true, false, true), &[(weight, pending)]);
        expect(&asked, &dad(false, true, true, true), &[]);
        expect(
            &asked,
            &dad(false, true, false, false),
            &[(Warning, "no carrier"), (Warning, stuck)],
        );
    }
    // If neither the request nor the result contains the address, a duplicate is only a warning. An
    // unfinished check is then no finding.
    let nothing = Asked::default();
    expect(
        &nothing,
        &dad(true, false, false, true),
        &[(Warning, failed)],
    );
    expect(&nothing, &dad(false, true, false, true), &[]);
}

/// A privileged pod may have any number of addresses.
#[test]
fn thousands_of_addresses_are_compared_in_linear_time() {
    let nets = |count: u32| (0..count).map(|number| std::net::Ipv4Addr::from(0x0b00_0000 + number));
    let many = seen_with(|observed| {
        let one = observed.addresses[0].clone();
        let with = |address: std::net::Ipv4Addr| crate::kernel::Address {
            address: format!("{address}/8").parse().unwrap(),
            ..one.clone()
        };
        observed.addresses = nets(100_000).map(with).collect();
    });
    let answered =
        nets(1000).map(|address| format!(r#"{{"interface":1,"address":"{address}/9"}}"#));
    let answered: Vec<String> = answered.collect();
    let asked = Asked::nothing(&answer("", &answered.join(",")));
    let findings = linear(|| asked.judge(&many));
    assert_eq!(findings.len(), 1000);
    assert!(
        findings
            .iter()
            .all(|finding| finding.to_string().len() < 1000)
    );
}
