//! Compares the hardware addresses in CNI results with those in the kernel.

use device_info::MacAddr;

use crate::baseline::port_guid;
use crate::npwg::RequestedMac;

/// Parses a hardware address of a result. Returns [`None`] if the text is not a hardware address.
pub(super) fn parse(text: &str) -> Option<RequestedMac> {
    let ethernet = MacAddr::parse_observed(text).map(RequestedMac::Ethernet);
    ethernet
        .or_else(|_| text.parse().map(RequestedMac::Ipoib))
        .ok()
}

/// Returns whether the kernel's octets are the expected address.
///
/// Compares all octets of an Ethernet address. Of an IPoIB address, compares only the port GUID,
/// because the queue pair number changes on every restart of the interface (RFC 4391 §9.1.1).
pub(super) fn is(octets: &[u8], expected: RequestedMac) -> bool {
    match expected {
        RequestedMac::Ethernet(address) => octets == address.octets(),
        RequestedMac::Ipoib(address) => port_guid(octets) == Some(address.port_guid()),
    }
}

/// Returns the octets of an address, in the form in which the kernel reports addresses.
pub(super) fn octets(address: RequestedMac) -> Vec<u8> {
    match address {
        RequestedMac::Ethernet(address) => address.octets().to_vec(),
        RequestedMac::Ipoib(address) => address.octets().to_vec(),
    }
}

/// Formats an address for messages. The kernel's addresses can have any length; tunnels may have no
/// address.
pub(super) fn show(octets: &[u8]) -> String {
    if octets.is_empty() {
        return "none".to_owned();
    }
    let pairs: Vec<_> = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    pairs.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT_A: &str = "80:00:00:49:fe:80:00:00:00:00:00:00:02:c9:03:00:00:02:00:3a";
    const RESTARTED: &str = "80:00:00:51:fe:80:00:00:00:00:00:00:02:c9:03:00:00:02:00:3a";
    const PORT_B: &str = "80:00:00:49:fe:80:00:00:00:00:00:00:02:c9:03:00:00:02:00:3b";

    fn octets(text: &str) -> Vec<u8> {
        super::octets(parse(text).unwrap())
    }

    #[test]
    fn ipoib_addresses_match_if_their_port_guids_match() {
        let expected = parse(PORT_A).unwrap();
        assert!(is(&octets(PORT_A), expected));
        assert!(is(&octets(RESTARTED), expected));
        assert!(!is(&octets(PORT_B), expected));
        assert!(!is(&octets(PORT_A)[14..], expected));
        assert!(!is(&[], expected));
    }

    #[test]
    fn mac_addresses_match_whatever_the_letter_case() {
        let expected = parse("02:00:5E:00:00:AA").unwrap();
        assert!(is(&[2, 0, 0x5e, 0, 0, 0xaa], expected));
        assert!(!is(&[2, 0, 0x5e, 0, 0, 0xab], expected));
        assert!(!is(&octets(PORT_A), expected));
        assert_eq!(parse("02-00-5e-00-00-aa"), Some(expected));
        assert_eq!(parse("eth0"), None);
    }

    #[test]
    fn octets_are_shown_as_the_kernel_shows_them() {
        assert_eq!(show(&[2, 0, 0xab]), "02:00:ab");
        assert_eq!(show(&[]), "none");
    }
}
