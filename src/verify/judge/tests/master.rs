//! Interfaces with a master.

use super::*;

/// An interface below a master, with the master's hardware address.
fn enslaved(permanent: Option<&[u8]>) -> Observed {
    seen_with(|observed| {
        let link = observed.link.as_mut().unwrap();
        link.address = vec![2, 0, 0, 0, 0, 0xb0];
        link.perm_address = permanent.map(<[u8]>::to_vec);
        observed.addresses.clear();
        observed.master = Some("bond0".to_owned());
    })
}

// clause: CNI-1.1.0 §2 CHECK later plugin: a later plugin may have enslaved the interface
#[test]
fn verification_of_an_enslaved_interface_uses_its_permanent_address() {
    let asked = || Asked::mac("02:00:00:00:00:01");
    let ours: &[u8] = &[2, 0, 0, 0, 0, 1];
    let other: &[u8] = &[2, 0, 0, 0, 0, 7];
    let below = |asked: Asked| asked.below(&["net2", "bond0"]);
    expect(&below(asked()), &enslaved(Some(ours)), &[]);
    let part = "its hardware address is 02:00:00:00:00:07, but 02:00:00:00:00:01 was requested";
    expect(&below(asked()), &enslaved(Some(other)), &[(Demanded, part)]);
    let part = "its hardware address cannot be read while it is enslaved to \"bond0\"";
    expect(&below(asked()), &enslaved(None), &[(Warning, part)]);
    // The interface has the bond's address now. So an attachment that requests this address has no
    // finding.
    expect(
        &below(Asked::mac("02:00:00:00:00:b0")),
        &enslaved(Some(other)),
        &[],
    );
    // A case without `below` is a verification right after the attachment's ADD. No later
    // attachment exists yet, so the attachment's own chain has enslaved the interface. Verification
    // then ignores the permanent address.
    let part = "its hardware address is 02:00:00:00:00:b0";
    expect(&asked(), &enslaved(Some(ours)), &[(Demanded, part)]);
    // A plugin may have moved the IP addresses to the master, so a missing address is a warning.
    let ip = "10.1.1.5 was requested, but the interface has none";
    expect(
        &below(Asked::ips(&["10.1.1.5"])),
        &enslaved(None),
        &[(Warning, ip)],
    );
}

#[test]
fn only_the_interface_of_a_later_attachment_may_be_the_master() {
    let part = "enslaved to \"bond0\", which is not the interface of a later attachment";
    let asked = || Asked::default().below(&["net2"]);
    expect(&asked(), &enslaved(None), &[(Answered, part)]);
    expect(&Asked::default(), &enslaved(None), &[]);
}
