//! Device, hardware address, GUID.

use super::*;

#[test]
fn identity_the_interface_is_the_device_that_was_allocated() {
    let is = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        seen_with(|observed| observed.device = names)
    };
    let asked = Asked::device("0000:3b:02.a");
    expect(&asked, &is(&["0000:3b:02.a"]), &[]);
    expect(&asked, &is(&["0000:3B:02.A"]), &[]);
    expect(&asked, &is(&["virtio3", "0000:3b:02.a"]), &[]);
    let part = "it is device 0000:3b:02.b, allocated was 0000:3b:02.a";
    expect(&asked, &is(&["0000:3b:02.b"]), &[(Demanded, part)]);
    let part = "it is device virtio3 or 10000:3b:02.a, allocated";
    expect(
        &asked,
        &is(&["virtio3", "10000:3b:02.a"]),
        &[(Demanded, part)],
    );
    let part = "does not say which device it is, allocated was 0000:3b:02.a";
    expect(&asked, &is(&[]), &[(Warning, part)]);
    expect(&Asked::default(), &is(&["0000:3b:02.b"]), &[]);
}

// clause: NPWG-1.3 §4.1.2.1.4 assigned: it is the interface's
// clause: NPWG-1.0 §4.1.2.1.4.2 assigned: fails where it was not
#[test]
fn mac_is_the_requested_and_the_answered_one() {
    let requested = "its hardware address is 02:00:00:00:00:01, requested was 02:00:00:00:00:02";
    let said = "is 02:00:00:00:00:01, answered by the delegate was 02:00:00:00:00:03";
    let answers = |mac: &str| answer(&format!(r#","mac":"{mac}""#), "");
    let asked = || Asked::mac("02:00:00:00:00:02");
    expect(&asked(), &seen(), &[(Demanded, requested)]);
    // The answer that repeats the wish is no second finding, another one is.
    let echo = asked().answered(&answers("02:00:00:00:00:02"));
    expect(&echo, &seen(), &[(Demanded, requested)]);
    let both = asked().answered(&answers("02:00:00:00:00:03"));
    expect(&both, &seen(), &[(Demanded, requested), (Answered, said)]);

    expect(
        &Asked::nothing(&answers("02:00:00:00:00:03")),
        &seen(),
        &[(Answered, said)],
    );
    expect(&Asked::nothing(&answers("02:00:00:00:00:01")), &seen(), &[]);
    for silent in ["", "00:00:00:00:00:00"] {
        expect(&Asked::nothing(&answers(silent)), &seen(), &[]);
    }
    let broken = "answered hardware address \"02-00\", which is none";
    expect(
        &Asked::nothing(&answers("02-00")),
        &seen(),
        &[(Answered, broken)],
    );
    let none = link_with(|link| link.address.clear());
    let part = "its hardware address is none, requested";
    expect(&asked(), &none, &[(Demanded, part)]);
}

// clause: NPWG-1.0 §4.1.2.1.4 valid: an IPoIB address of 20 bytes
// clause: NPWG-1.3 §4.1.2.1.10 assigned: the lower 8 bytes of the IPoIB address
#[test]
fn guid_is_what_an_infiniband_port_is_known_by() {
    let restarted = IPOIB.replacen("00:49", "00:51", 1);
    let other = IPOIB.replace("00:3a", "00:3b");
    expect(&Asked::mac(&restarted), &infiniband(), &[]);
    expect(
        &Asked::nothing(&answer(&format!(r#","mac":"{restarted}""#), "")),
        &infiniband(),
        &[],
    );
    let part = "00:3a, requested was 80:";
    expect(&Asked::mac(&other), &infiniband(), &[(Demanded, part)]);

    expect(&Asked::guid(GUID), &infiniband(), &[]);
    let part = "requested was one with GUID 02:c9:03:00:00:02:00:3b";
    expect(
        &Asked::guid("02:c9:03:00:00:02:00:3b"),
        &infiniband(),
        &[(Demanded, part)],
    );
    let part = "is 02:00:00:00:00:01, requested was one with GUID";
    expect(&Asked::guid(GUID), &seen(), &[(Demanded, part)]);
    // Twenty octets on something else than InfiniBand are no port's.
    let mut alike = infiniband();
    alike.link.as_mut().unwrap().arp_type = 1;
    expect(&Asked::guid(GUID), &alike, &[(Demanded, "GUID")]);
}

#[test]
fn identity_that_the_delegate_answers_is_the_allocated_device_too() {
    let says = |pci: &str| {
        let answer = answer(&format!(r#","pciID":"{pci}""#), "");
        Asked {
            in_user_space: true,
            ..Asked::device("0000:01:10.0").answered(&answer)
        }
    };
    for same in ["0000:01:10.0", ""] {
        expect(&says(same), &gone(), &[]);
    }
    for other in ["0000:01:10.2", "eth0"] {
        let part = format!("the delegate answered device {other:?}, allocated was 0000:01:10.0");
        expect(&says(other), &gone(), &[(Demanded, &part)]);
    }
}
