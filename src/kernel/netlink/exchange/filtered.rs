//! A filter for link messages. Before the parser runs, the filter drops the attributes that
//! Jackfield does not read.
//!
//! The description of a link has about a thousand bytes, and Jackfield needs about a hundred of
//! them. Without this filter, a quarter of an ADD's CPU time would go into parsing the rest: IPv6
//! counters and the settings of every address family.

use netlink_packet_core::{DecodeError, NetlinkDeserializable, NetlinkHeader};
use netlink_packet_route::RouteNetlinkMessage;
use nix::libc;

use crate::kernel::link;

/// The length of `struct ifinfomsg`. The attributes of a link follow it.
const LINK_HEADER: usize = 16;
/// The length of an attribute's header, which contains the attribute's length and kind.
const ATTRIBUTE_HEADER: usize = 4;
/// The flag bits in an attribute's kind.
const FLAGS: u16 = 0xc000;

/// A parsed message. A link message contains only the attributes in [`link::READ`].
#[derive(Debug)]
pub(in crate::kernel::netlink) struct FilteredMessage(
    pub(in crate::kernel::netlink) RouteNetlinkMessage,
);

impl NetlinkDeserializable for FilteredMessage {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        if header.message_type == libc::RTM_NEWLINK {
            let filtered = filter_attributes(payload, &link::READ);
            return RouteNetlinkMessage::deserialize(header, &filtered).map(Self);
        }
        RouteNetlinkMessage::deserialize(header, payload).map(Self)
    }
}

/// Returns a link's payload with only the attributes whose kind is in `kinds`. Keeps everything
/// from the first malformed attribute on, so that the parser reports that attribute.
fn filter_attributes(payload: &[u8], kinds: &[u16]) -> Vec<u8> {
    let mut filtered = Vec::with_capacity(payload.len().min(256));
    let (header, mut rest) = payload.split_at(payload.len().min(LINK_HEADER));
    filtered.extend_from_slice(header);
    while let Some((length, kind)) = attribute(rest) {
        let whole = length.next_multiple_of(ATTRIBUTE_HEADER).min(rest.len());
        let (attribute, later) = rest.split_at(whole);
        if kinds.contains(&kind) {
            filtered.extend_from_slice(attribute);
        }
        rest = later;
    }
    filtered.extend_from_slice(rest);
    filtered
}

/// Returns the length and the kind of the first attribute, or [`None`] if the attribute is
/// incomplete or malformed.
fn attribute(rest: &[u8]) -> Option<(usize, u16)> {
    let [a, b, c, d] = *rest.first_chunk()?;
    let length = usize::from(u16::from_ne_bytes([a, b]));
    let kind = u16::from_ne_bytes([c, d]) & !FLAGS;
    let is_complete = (ATTRIBUTE_HEADER..=rest.len()).contains(&length);
    is_complete.then_some((length, kind))
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
    fn the_filter_keeps_only_the_wanted_attributes() {
        let attributes = [
            nla(3, b"eth0\0"),
            nla(9, b"123"),
            nla(0x8000 | 18, b"12345"),
            nla(4, b"1234"),
        ];
        let kept = [attributes[0].clone(), attributes[2].clone()];
        assert_eq!(
            filter_attributes(&payload(&attributes), &[3, 18]),
            payload(&kept)
        );
        assert_eq!(filter_attributes(&payload(&[]), &[3]), payload(&[]));
    }

    #[test]
    fn the_filter_keeps_broken_attributes() {
        for tail in [&[2, 0, 9, 0][..], &[200, 0, 9, 0, 1], &[1, 0]] {
            let broken = [payload(&[nla(3, b"e\0")]), tail.to_vec()].concat();
            assert_eq!(filter_attributes(&broken, &[3]), broken);
        }
        assert_eq!(filter_attributes(&[1, 2], &[3]), [1, 2]);
    }
}
