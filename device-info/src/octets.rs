//! Octets in hexadecimal: MACs, GUIDs and IPoIB addresses. Reads every form that Go's `ParseMAC`
//! reads. Writes only one form, because other plugins compare the text byte by byte.

use std::fmt;

/// Reads exactly `N` octets of two hexadecimal digits each. Colons or dashes separate octets, or
/// dots separate pairs of octets: `02:00:00:00:00:01`, `02-00-00-00-00-01`, `0200.0000.0001`.
pub(crate) fn parse<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (separator, digits) = match text.as_bytes() {
        [_, _, b':', ..] => (':', 2),
        [_, _, b'-', ..] => ('-', 2),
        [_, _, _, _, b'.', ..] => ('.', 4),
        _ => return None,
    };
    let mut octets = [0_u8; N];
    let mut left = octets.iter_mut();
    for part in text.split(separator) {
        if part.len() != digits {
            return None;
        }
        for digits in part.as_bytes().as_chunks::<2>().0 {
            *left.next()? = pair(digits)?;
        }
    }
    left.next().is_none().then_some(octets)
}

/// Reads exactly `N` octets of two hexadecimal digits each, without separators.
pub(crate) fn parse_bare<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut octets = [0_u8; N];
    for (octet, digits) in octets.iter_mut().zip(pairs) {
        *octet = pair(digits)?;
    }
    Some(octets)
}

/// Writes octets in lower case with colons between them.
pub(crate) fn write(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (position, octet) in octets.iter().enumerate() {
        if position > 0 {
            f.write_str(":")?;
        }
        write!(f, "{octet:02x}")?;
    }
    Ok(())
}

fn pair(digits: &[u8]) -> Option<u8> {
    match digits {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

/// Parses a hexadecimal digit. Unlike `from_str_radix`, refuses a sign.
fn digit(character: u8) -> Option<u8> {
    char::from(character)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// Serializes with `Display` and deserializes with the given function.
macro_rules! serde_as_text {
    ($type:ty, $parse:expr) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
                $parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_text;
