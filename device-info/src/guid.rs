//! The GUID of an InfiniBand node or port.

use std::fmt;
use std::str::FromStr;

use crate::octets::{self, serde_as_text};
use crate::quoted::Quoted;

/// A GUID of InfiniBand: eight octets, written in lower case with colons between them.
///
/// Reads these forms: `02:00:00:00:00:00:00:3e`, `02-00-00-00-00-00-00-3e`, `0200.0000.0000.003e`,
/// `020000000000003e`, `0x020000000000003e`, and `0200:0000:0000:003e` as in sysfs. Writes only the
/// first form, because ib-sriov-cni compares GUIDs as text.
///
/// As with [`MacAddr`](crate::MacAddr), use [`FromStr`] for a *requested* GUID: it refuses zero,
/// all ones and GUIDs with the group bit. Use [`From<[u8; 8]>`](From) or [`Guid::parse_observed`]
/// for an *observed* GUID, because a VF without a GUID shows zeros.
///
/// ```
/// use device_info::Guid;
///
/// let guid: Guid = "24:8A:07:03:00:8D:AE:2E".parse()?;
/// assert_eq!(guid, "248a:0703:008d:ae2e".parse()?);
/// assert_eq!(guid.to_string(), "24:8a:07:03:00:8d:ae:2e");
/// # Ok::<(), device_info::GuidError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid([u8; 8]);

impl Guid {
    /// Returns the eight octets, most significant first.
    #[must_use]
    pub const fn octets(self) -> [u8; 8] {
        self.0
    }

    /// Returns whether every octet is zero. The kernel shows zeros for a VF without a GUID.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == [0; 8]
    }

    /// Returns whether the group bit (bit 0 of the first octet) is set. EUI-64 reserves this
    /// bit for groups, so a port's GUID never has the bit set.
    #[must_use]
    pub const fn has_group_bit(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Reads a GUID without checking whether a port can have it.
    ///
    /// # Errors
    ///
    /// [`GuidError`] if the text has none of the forms that [`Guid`] reads.
    pub fn parse_observed(text: &str) -> Result<Self, GuidError> {
        parse_forms(text).map(Self).ok_or_else(|| form_error(text))
    }
}

impl From<[u8; 8]> for Guid {
    fn from(octets: [u8; 8]) -> Self {
        Self(octets)
    }
}

impl FromStr for Guid {
    type Err = GuidError;

    fn from_str(text: &str) -> Result<Self, GuidError> {
        let guid = Self::parse_observed(text)?;
        if guid.is_zero() {
            Err(GuidError::Zero(guid))
        } else if guid.0 == [0xff; 8] {
            Err(GuidError::AllOnes(guid))
        } else if guid.has_group_bit() {
            Err(GuidError::Group(guid))
        } else {
            Ok(guid)
        }
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        octets::write(&self.0, f)
    }
}

fn parse_forms(text: &str) -> Option<[u8; 8]> {
    octets::parse(text)
        .or_else(|| octets::parse_bare(text.strip_prefix("0x").unwrap_or(text)))
        .or_else(|| parse_sysfs(text))
}

/// Parses `0200:0000:0000:003e`, the form of `node_guid` and `gids/N`.
fn parse_sysfs(text: &str) -> Option<[u8; 8]> {
    let mut octets = [0_u8; 8];
    let mut parts = text.split(':');
    for pair in octets.as_chunks_mut::<2>().0 {
        *pair = octets::parse_bare(parts.next()?)?;
    }
    parts.next().is_none().then_some(octets)
}

fn form_error(text: &str) -> GuidError {
    let value = Quoted::new(text);
    match octets::parse::<20>(text) {
        Some([.., a, b, c, d, e, f, g, h]) => GuidError::Ipoib {
            value,
            port: Guid([a, b, c, d, e, f, g, h]),
        },
        None => GuidError::Form(value),
    }
}

/// Why a text is not a GUID that a port can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuidError {
    /// The text has none of the forms that [`Guid`] reads.
    #[error("{0} is not a GUID; write eight octets with colons, such as 02:00:00:00:00:00:00:3e")]
    Form(Quoted),
    /// The text is an IPoIB address of twenty octets, which contains a GUID.
    #[error("{value} is an IPoIB address of 20 octets, not a GUID; its GUID is {port}")]
    Ipoib {
        /// The text.
        value: Quoted,
        /// The port GUID in the address.
        port: Guid,
    },
    /// All zeros.
    #[error(
        "GUID {0} is zero, which no port can have; choose one that your fabric does not use yet"
    )]
    Zero(Guid),
    /// All ones.
    #[error(
        "GUID {0} is all ones, which no port can have; choose one that your fabric does not use yet"
    )]
    AllOnes(Guid),
    /// The GUID of a group.
    #[error(
        "GUID {0} has the group bit, which no port can have; choose one whose first octet is even"
    )]
    Group(Guid),
}

serde_as_text!(Guid, Guid::parse_observed);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_guid_is_read_in_several_forms_and_written_in_one() {
        for (text, canonical) in [
            ("02:00:00:00:00:00:00:3e", "02:00:00:00:00:00:00:3e"),
            ("24:8A:07:03:00:8D:AE:2E", "24:8a:07:03:00:8d:ae:2e"),
            ("248a0703008dae2e", "24:8a:07:03:00:8d:ae:2e"),
            ("0x248a0703008dae2e", "24:8a:07:03:00:8d:ae:2e"),
            ("0c42:a103:00c6:cf52", "0c:42:a1:03:00:c6:cf:52"),
            ("0C-42-A1-03-00-C6-CF-52", "0c:42:a1:03:00:c6:cf:52"),
            ("0c42.a103.00c6.cf52", "0c:42:a1:03:00:c6:cf:52"),
        ] {
            assert_eq!(text.parse::<Guid>().unwrap().to_string(), canonical);
        }
    }

    #[test]
    fn a_guid_that_no_port_can_have_is_refused_in_one_line() {
        for (text, reason) in [
            ("00:00:00:00:00:00:00:00", "is zero"),
            ("0000000000000000", "is zero"),
            ("ff:ff:ff:ff:ff:ff:ff:ff", "all ones"),
            ("0xffffffffffffffff", "all ones"),
            ("55:00:00:00:00:00:00:ff", "group bit"),
            ("0100000000000001", "group bit"),
            ("0x0fffffffffffffff", "group bit"),
            ("0300:0000:0000:0001", "group bit"),
            ("02:00:00:00:00:01", "eight octets"),
            (
                "80:00:00:49:fe:80:00:00:00:00:00:00:02:c9:03:00:00:02:00:3a",
                "its GUID is 02:c9:03:00:00:02:00:3a",
            ),
            ("02-00-00:00-00-00-00-3e", "eight octets"),
            ("02-00-00-00-00-01", "eight octets"),
            (" 02:00:00:00:00:00:00:3e", "eight octets"),
            ("02:00:00:00:00:00:00:3e\n", "eight octets"),
            ("02:00:00:00:00:00:00:3g", "eight octets"),
            ("0X248a0703008dae2e", "eight octets"),
            ("0x248a:0703:008d:ae2e", "eight octets"),
            ("248a0703008dae2", "eight octets"),
            ("0c42:a103:00c6", "eight octets"),
            ("c42:a103:00c6:cf52", "eight octets"),
            ("", "eight octets"),
        ] {
            let error = text.parse::<Guid>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn an_observed_guid_is_not_checked() {
        let seen = Guid::from([0; 8]);
        assert!(seen.is_zero());
        let json = serde_json::to_string(&seen).unwrap();
        assert_eq!(serde_json::from_str::<Guid>(&json).unwrap(), seen);
    }

    proptest! {
        #[test]
        fn every_guid_survives_formatting_and_parsing(octets: [u8; 8]) {
            let guid = Guid::from(octets);
            prop_assert_eq!(Guid::parse_observed(&guid.to_string()).unwrap(), guid);
        }

        #[test]
        fn parsing_never_panics(text in ".*") {
            let _ = text.parse::<Guid>();
        }
    }
}
