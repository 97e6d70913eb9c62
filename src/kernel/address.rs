//! An address on a link, as `RTM_NEWADDR` describes it.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};

/// An IP address of a link, with its state in duplicate address detection.
///
/// Duplicate address detection exists only for IPv6 (RFC 4862 §5.4). For an IPv4 address,
/// `dad_failed`, `tentative` and `optimistic` are false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The index of the link.
    pub index: u32,
    /// The address and its prefix length.
    pub address: IpNet,
    /// Whether another host on the link has the same address. The kernel does not use such an
    /// address.
    pub dad_failed: bool,
    /// True while the check for duplicates runs, and also after the check has found a duplicate.
    /// During the check, the kernel uses the address only if `optimistic` is true.
    pub tentative: bool,
    /// Whether the kernel uses the address even during the check for duplicates (RFC 4429).
    pub optimistic: bool,
}

impl Address {
    /// Returns whether the kernel must finish the check for duplicates before it uses the address.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.tentative && !self.optimistic && !self.dad_failed
    }

    /// Reads a message. Returns [`None`] if the message contains no valid IP address.
    pub(super) fn read(message: AddressMessage) -> Option<Self> {
        let mut local = None;
        let mut address = None;
        let mut flags = u32::from(message.header.flags.bits());
        for attribute in message.attributes {
            match attribute {
                AddressAttribute::Local(ip) => local = Some(ip),
                AddressAttribute::Address(ip) => address = Some(ip),
                // This attribute has all flags. The header has only their lowest eight bits.
                AddressAttribute::Flags(all) => flags = all.bits(),
                _ => {}
            }
        }
        let flags = AddressFlags::from_bits_retain(flags);
        // On a point-to-point link, IFA_LOCAL is the address of this end and IFA_ADDRESS is the
        // address of the peer.
        let ip: IpAddr = local.or(address)?;
        Some(Self {
            index: message.header.index,
            address: IpNet::new(ip, message.header.prefix_len).ok()?,
            dad_failed: flags.contains(AddressFlags::Dadfailed),
            tentative: flags.contains(AddressFlags::Tentative),
            optimistic: flags.contains(AddressFlags::Optimistic),
        })
    }
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::address::AddressHeaderFlags;

    use super::*;

    fn message(prefix: u8, flags: u8, attributes: Vec<AddressAttribute>) -> AddressMessage {
        let mut message = AddressMessage::default();
        message.header.index = 3;
        message.header.prefix_len = prefix;
        message.header.flags = AddressHeaderFlags::from_bits_retain(flags);
        message.attributes = attributes;
        message
    }

    #[test]
    fn the_address_on_a_point_to_point_link_is_the_local_one() {
        let ours: IpAddr = "10.0.0.1".parse().unwrap();
        let theirs: IpAddr = "10.0.0.2".parse().unwrap();
        for attributes in [
            vec![
                AddressAttribute::Address(theirs),
                AddressAttribute::Local(ours),
            ],
            vec![AddressAttribute::Address(ours)],
        ] {
            let address = Address::read(message(32, 0, attributes)).unwrap();
            assert_eq!(address.address, "10.0.0.1/32".parse().unwrap());
            assert_eq!(address.index, 3);
        }
    }

    #[test]
    fn the_flags_attribute_replaces_the_flags_of_the_header() {
        let ip = || AddressAttribute::Address("2001:db8::1".parse().unwrap());
        let flags = |bits| AddressAttribute::Flags(AddressFlags::from_bits_retain(bits));
        // (flags in the header, flags in the attribute, failed, tentative, optimistic, pending)
        let table = [
            (0x00, None, false, false, false, false),
            (0x40, None, false, true, false, true),
            (0x00, Some(0x40), false, true, false, true),
            (0x40, Some(0x80), false, false, false, false),
            (0x00, Some(0x44), false, true, true, false),
            (0x00, Some(0x48), true, true, false, false),
            (0x00, Some(0x200), false, false, false, false),
        ];
        for (short, long, failed, tentative, optimistic, pending) in table {
            let attributes = std::iter::once(ip()).chain(long.map(flags)).collect();
            let address = Address::read(message(64, short, attributes)).unwrap();
            assert_eq!(
                (
                    address.dad_failed,
                    address.tentative,
                    address.optimistic,
                    address.is_pending()
                ),
                (failed, tentative, optimistic, pending),
                "{short:#x} {long:?}"
            );
        }
    }

    #[test]
    fn a_message_without_a_valid_address_is_ignored() {
        let ip = AddressAttribute::Address("10.0.0.1".parse().unwrap());
        assert_eq!(Address::read(message(24, 0, Vec::new())), None);
        assert_eq!(Address::read(message(64, 0, vec![ip])), None);
    }
}
