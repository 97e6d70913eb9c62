//! Messages of the kernel without the attributes that nobody here reads.
//!
//! A link's description is a thousand bytes long, of which a tenth is read; taking the rest apart,
//! counters of IPv6 and settings of every address family, was a quarter of what an ADD computes.

use netlink_packet_core::{DecodeError, NetlinkDeserializable, NetlinkHeader};
use netlink_packet_route::RouteNetlinkMessage;
use nix::libc;

use crate::kernel::link;

/// Where the attributes of a link begin: behind `struct ifinfomsg`.
const LINK_HEADER: usize = 16;
/// An attribute's own header: length and kind.
const ATTRIBUTE_HEADER: usize = 4;
/// The bits of a kind that say how the value is written.
const FLAGS: u16 = 0xc000;

/// A message; of a link it has the attributes of [`link::READ`] alone.
#[derive(Debug)]
pub(in crate::kernel::netlink) struct Narrowed(pub(in crate::kernel::netlink) RouteNetlinkMessage);

impl NetlinkDeserializable for Narrowed {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        if header.message_type == libc::RTM_NEWLINK {
            let narrowed = narrow(payload, &link::READ);
            return RouteNetlinkMessage::deserialize(header, &narrowed).map(Self);
        }
        RouteNetlinkMessage::deserialize(header, payload).map(Self)
    }
}

/// A link's payload with the attributes of these kinds. From the first one on that is broken it is
/// left as it is, for the parser to complain.
fn narrow(payload: &[u8], kinds: &[u16]) -> Vec<u8> {
    let mut narrowed = Vec::with_capacity(payload.len().min(256));
    let (header, mut rest) = payload.split_at(payload.len().min(LINK_HEADER));
    narrowed.extend_from_slice(header);
    while let Some((length, kind)) = attribute(rest) {
        let whole = length.next_multiple_of(ATTRIBUTE_HEADER).min(rest.len());
        let (attribute, later) = rest.split_at(whole);
        if kinds.contains(&kind) {
            narrowed.extend_from_slice(attribute);
        }
        rest = later;
    }
    narrowed.extend_from_slice(rest);
    narrowed
}

/// Length and kind of the first attribute, if it is a whole one.
fn attribute(rest: &[u8]) -> Option<(usize, u16)> {
    let [a, b, c, d, ..] = *rest else {
        return None;
    };
    let length = usize::from(u16::from_ne_bytes([a, b]));
    let kind = u16::from_ne_bytes([c, d]) & !FLAGS;
    (ATTRIBUTE_HEADER..=rest.len())
        .contains(&length)
        .then_some((length, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nla(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(ATTRIBUTE_HEADER + value.len()).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn payload(attributes: &[Vec<u8>]) -> Vec<u8> {
        [&[7; LINK_HEADER][..], &attributes.concat()].concat()
    }

    #[test]
    fn what_is_read_stays_and_the_rest_goes() {
        let attributes = [
            nla(3, b"eth0\0"),
            nla(9, b"123"),
            nla(0x8000 | 18, b"12345"),
            nla(4, b"1234"),
        ];
        let kept = [attributes[0].clone(), attributes[2].clone()];
        assert_eq!(narrow(&payload(&attributes), &[3, 18]), payload(&kept));
        assert_eq!(narrow(&payload(&[]), &[3]), payload(&[]));
    }

    #[test]
    fn what_is_broken_is_left_to_the_parser() {
        for tail in [&[2, 0, 9, 0][..], &[200, 0, 9, 0, 1], &[1, 0]] {
            let broken = [payload(&[nla(3, b"e\0")]), tail.to_vec()].concat();
            assert_eq!(narrow(&broken, &[3]), broken);
        }
        assert_eq!(narrow(&[1, 2], &[3]), [1, 2]);
    }
}
