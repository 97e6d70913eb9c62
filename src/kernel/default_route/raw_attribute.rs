//! A route attribute in the kernel's own encoding.

use std::fmt::Write as _;

use netlink_packet_core::{DefaultNla, NLA_F_NESTED, NLA_F_NET_BYTEORDER, Nla};
use netlink_packet_route::route::RouteAttribute;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An attribute that Jackfield stores without interpreting it. So Jackfield can restore a route
/// with all its attributes, even attributes that a later kernel introduces.
///
/// The JSON form is a string, `TYPE:HEX` (`8:0800020078050000`). The octets are those of the
/// kernel's message, so a number such as an MTU is in the byte order of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RawAttribute {
    kind: u16,
    value: Vec<u8>,
}

/// A text that is not a raw attribute.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("route attribute {0:?} is not valid; write it as TYPE:HEX, such as 8:0800020078050000")]
pub struct RawAttributeError(String);

impl From<&RouteAttribute> for RawAttribute {
    fn from(attribute: &RouteAttribute) -> Self {
        let mut value = vec![0; attribute.value_len()];
        attribute.emit_value(&mut value);
        let mut kind = attribute.kind();
        if attribute.is_nested() {
            kind |= NLA_F_NESTED;
        }
        if attribute.is_network_byteorder() {
            kind |= NLA_F_NET_BYTEORDER;
        }
        Self { kind, value }
    }
}

impl From<&RawAttribute> for RouteAttribute {
    fn from(raw: &RawAttribute) -> Self {
        Self::Other(DefaultNla::new(raw.kind, raw.value.clone()))
    }
}

impl From<RawAttribute> for String {
    fn from(raw: RawAttribute) -> Self {
        let mut text = format!("{}:", raw.kind);
        for octet in raw.value {
            // Writing to a String cannot fail.
            let _ = write!(text, "{octet:02x}");
        }
        text
    }
}

impl TryFrom<String> for RawAttribute {
    type Error = RawAttributeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        parse(&text).ok_or(RawAttributeError(text))
    }
}

/// The maximum length of an attribute's value. The 16-bit length field of an attribute also counts
/// the header of four octets.
const LONGEST: usize = u16::MAX as usize - 4;

fn parse(text: &str) -> Option<RawAttribute> {
    let (kind, hex) = text.split_once(':')?;
    let digit = |digit: char| u8::try_from(digit.to_digit(16)?).ok();
    let digits = hex.chars().map(digit).collect::<Option<Vec<u8>>>()?;
    let (pairs, odd) = digits.as_chunks::<2>();
    let is_valid = odd.is_empty() && pairs.len() <= LONGEST;
    is_valid.then_some(RawAttribute {
        kind: kind.parse().ok()?,
        value: pairs.iter().map(|[high, low]| high << 4 | low).collect(),
    })
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::route::RouteMetric;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_raw_attribute_round_trips_through_text(kind: u16, value: Vec<u8>) {
            let raw = RawAttribute { kind, value };
            prop_assert_eq!(RawAttribute::try_from(String::from(raw.clone())), Ok(raw));
        }
    }

    #[test]
    fn an_invalid_raw_attribute_is_refused_and_quoted() {
        for text in ["", "8", "8:0", "8:0g", "x:00", "65536:00", "-1:00", "8:é"] {
            let error = RawAttribute::try_from(text.to_owned()).unwrap_err();
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn a_raw_attribute_has_the_octets_of_the_kernel() {
        let metrics = RouteAttribute::Metrics(vec![RouteMetric::Mtu(1400)]);
        let raw = RawAttribute::from(&metrics);
        let mut octets = vec![8, 0, 2, 0];
        octets.extend(1400_u32.to_ne_bytes());
        assert_eq!(raw.kind, 8);
        assert_eq!(raw.value, octets);
        let again = RouteAttribute::from(&raw);
        assert_eq!(again.kind(), metrics.kind());
        assert_eq!(again.value_len(), metrics.value_len());
    }
}
