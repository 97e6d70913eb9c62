//! Tests of the rules for the device, the hardware address and the GUID.

use super::*;

#[test]
fn the_interface_must_belong_to_the_allocated_device() {
    let is = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        seen_with(|observed| observed.device = names)
    };
    let asked = Asked::device("0000:3b:02.a");
    expect(&asked, &is(&["0000:3b:02.a"]), &[]);
    expect(&asked, &is(&["0000:3B:02.A"]), &[]);
    expect(&asked, &is(&["virtio3", "0000:3b:02.a"]), &[]);
    let part = "it is device 0000:3b:02.b, not the allocated 0000:3b:02.a";
    expect(&asked, &is(&["0000:3b:02.b"]), &[(Demanded, part)]);
    let part = "it is device virtio3 or 10000:3b:02.a, not the allocated";
    expect(
        &asked,
        &is(&["virtio3", "10000:3b:02.a"]),
        &[(Demanded, part)],
    );
    let part = "does not report its device, so the allocated 0000:3b:02.a cannot be confirmed";
    expect(&asked, &is(&[]), &[(Warning, part)]);
    expect(&Asked::default(), &is(&["0000:3b:02.b"]), &[]);
}

// clause: NPWG-1.3 §4.1.2.1.4 assigned: the interface has the requested MAC
// clause: NPWG-1.0 §4.1.2.1.4.2 assigned: the check fails if the interface has another MAC
#[test]
fn mac_must_match_the_request_and_the_result() {
    let requested =
        "its hardware address is 02:00:00:00:00:01, but 02:00:00:00:00:02 was requested";
    let unlike_answer = "is 02:00:00:00:00:01, but 02:00:00:00:00:03 was returned by the delegate";
    let answers = |mac: &str| answer(&format!(r#","mac":"{mac}""#), "");
    let asked = || Asked::mac("02:00:00:00:00:02");
    expect(&asked(), &seen(), &[(Demanded, requested)]);
    // A result that repeats the request adds no finding. A different result adds one.
    let echo = asked().answered(&answers("02:00:00:00:00:02"));
    expect(&echo, &seen(), &[(Demanded, requested)]);
    let both = asked().answered(&answers("02:00:00:00:00:03"));
    expect(
        &both,
        &seen(),
        &[(Demanded, requested), (Answered, unlike_answer)],
    );

    expect(
        &Asked::nothing(&answers("02:00:00:00:00:03")),
        &seen(),
        &[(Answered, unlike_answer)],
    );
    expect(&Asked::nothing(&answers("02:00:00:00:00:01")), &seen(), &[]);
    for silent in ["", "00:00:00:00:00:00"] {
        expect(&Asked::nothing(&answers(silent)), &seen(), &[]);
    }
    let broken = "returned \"02-00\", which is not a hardware address";
    expect(
        &Asked::nothing(&answers("02-00")),
        &seen(),
        &[(Answered, broken)],
    );
    let none = link_with(|link| link.address.clear());
    let part = "its hardware address is none, but";
    expect(&asked(), &none, &[(Demanded, part)]);
}

// clause: NPWG-1.0 §4.1.2.1.4 valid: a request may be an IPoIB address of 20 bytes
// clause: NPWG-1.3 §4.1.2.1.10 assigned: the lower 8 bytes of the IPoIB address are the GUID
#[test]
fn guid_identifies_an_infiniband_port() {
    let restarted = IPOIB.replacen("00:49", "00:51", 1);
    let other = IPOIB.replace("00:3a", "00:3b");
    expect(&Asked::mac(&restarted), &infiniband(), &[]);
    expect(
        &Asked::nothing(&answer(&format!(r#","mac":"{restarted}""#), "")),
        &infiniband(),
        &[],
    );
    let part = "00:3a, but 80:";
    expect(&Asked::mac(&other), &infiniband(), &[(Demanded, part)]);

    expect(&Asked::guid(GUID), &infiniband(), &[]);
    let part = "but GUID 02:c9:03:00:00:02:00:3b was requested";
    expect(
        &Asked::guid("02:c9:03:00:00:02:00:3b"),
        &infiniband(),
        &[(Demanded, part)],
    );
    let part = "is 02:00:00:00:00:01, but GUID";
    expect(&Asked::guid(GUID), &seen(), &[(Demanded, part)]);
    // An address of 20 octets on another link type has no GUID.
    let mut alike = infiniband();
    alike.link.as_mut().unwrap().arp_type = 1;
    expect(&Asked::guid(GUID), &alike, &[(Demanded, "GUID")]);
}

#[test]
fn the_device_in_the_result_must_be_the_allocated_device() {
    let answering = |pci: &str| {
        let answer = answer(&format!(r#","pciID":"{pci}""#), "");
        Asked {
            in_user_space: true,
            ..Asked::device("0000:01:10.0").answered(&answer)
        }
    };
    for same in ["0000:01:10.0", ""] {
        expect(&answering(same), &gone(), &[]);
    }
    for other in ["0000:01:10.2", "eth0"] {
        let part =
            format!("the delegate returned device {other:?}, not the allocated 0000:01:10.0");
        expect(&answering(other), &gone(), &[(Demanded, &part)]);
    }
}
