//! The MAC address of an Ethernet interface.

use std::fmt;
use std::str::FromStr;

use crate::octets::{self, serde_as_text};
use crate::quoted::Quoted;

/// A MAC address: six octets, written in lower case with colons between them. Parsing also accepts
/// dashes, and Cisco's notation `0200.0000.0001`.
///
/// Use [`FromStr`] for a *requested* address: it refuses addresses that no interface can have
/// (zero, broadcast, multicast). Use [`From<[u8; 6]>`](From) or [`MacAddr::parse_observed`] for an
/// *observed* address. They accept any address, because a VF without an administrative MAC shows
/// zeros. Deserialization reads stored addresses, so it checks the form only.
///
/// ```
/// use device_info::MacAddr;
///
/// let wanted: MacAddr = "60:00:00:00:00:E1".parse()?;
/// assert_eq!(wanted.to_string(), "60:00:00:00:00:e1");
///
/// let seen = MacAddr::from([0; 6]);
/// assert!(seen.is_zero());
/// assert!(seen.to_string().parse::<MacAddr>().is_err());
/// # Ok::<(), device_info::MacError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddr([u8; 6]);

impl MacAddr {
    /// Returns the six octets in the order of transmission.
    #[must_use]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// Returns whether every octet is zero. The kernel shows zeros as the administrative MAC of a
    /// VF if nobody has set this MAC.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == [0; 6]
    }

    /// Returns whether this is `ff:ff:ff:ff:ff:ff`.
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        self.0 == [0xff; 6]
    }

    /// Returns whether the group bit (bit 0 of the first octet) is set. The broadcast address has
    /// this bit too.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Reads an address without checking whether an interface can have it.
    ///
    /// # Errors
    ///
    /// [`MacError`] if the text has none of the forms `02:00:00:00:00:01`, `02-00-00-00-00-01` and
    /// `0200.0000.0001`.
    pub fn parse_observed(text: &str) -> Result<Self, MacError> {
        octets::parse(text)
            .map(Self)
            .ok_or_else(|| form_error(text))
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(octets: [u8; 6]) -> Self {
        Self(octets)
    }
}

impl FromStr for MacAddr {
    type Err = MacError;

    fn from_str(text: &str) -> Result<Self, MacError> {
        let address = Self::parse_observed(text)?;
        if address.is_zero() {
            Err(MacError::Zero(address))
        } else if address.is_broadcast() {
            Err(MacError::Broadcast(address))
        } else if address.is_multicast() {
            Err(MacError::Multicast(address))
        } else {
            Ok(address)
        }
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        octets::write(&self.0, f)
    }
}

fn form_error(text: &str) -> MacError {
    let value = Quoted::new(text);
    if octets::parse::<20>(text).is_some() {
        MacError::Ipoib(value)
    } else if octets::parse::<8>(text).is_some() {
        MacError::Guid(value)
    } else {
        MacError::Form(value)
    }
}

/// Why a text is not a MAC address that an interface can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MacError {
    /// The text has none of the forms that [`MacAddr::parse_observed`] reads.
    #[error("{0} is not a MAC address; write six octets with colons, such as 02:00:00:00:00:01")]
    Form(Quoted),
    /// Eight octets: a GUID.
    #[error(
        "{0} is a GUID of eight octets, not a MAC address; request it with the key infiniband-guid, or write six octets"
    )]
    Guid(Quoted),
    /// Twenty octets: an IPoIB address.
    #[error(
        "{0} is an IPoIB address, not a MAC address; request its last eight octets with the key infiniband-guid, or write six octets"
    )]
    Ipoib(Quoted),
    /// All zeros.
    #[error(
        "MAC address {0} is zero, which no interface can have; write a unicast address, such as 02:00:00:00:00:01"
    )]
    Zero(MacAddr),
    /// All ones.
    #[error(
        "MAC address {0} is broadcast, which no interface can have; write a unicast address, such as 02:00:00:00:00:01"
    )]
    Broadcast(MacAddr),
    /// The group bit is set.
    #[error(
        "MAC address {0} is multicast (its first octet is odd), which no interface can have; make the first octet even"
    )]
    Multicast(MacAddr),
}

serde_as_text!(MacAddr, MacAddr::parse_observed);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_unicast_address_is_accepted_and_written_in_lower_case() {
        for text in ["60:00:00:00:00:E1", "60-00-00-00-00-e1", "6000.0000.00E1"] {
            let address: MacAddr = text.parse().unwrap();
            assert_eq!(address.to_string(), "60:00:00:00:00:e1");
            assert_eq!(address.octets(), [0x60, 0, 0, 0, 0, 0xe1]);
        }
    }

    #[test]
    fn a_mac_that_no_interface_can_have_is_refused_in_one_line() {
        for (text, reason, remedy) in [
            (
                "01:00:5e:00:00:01",
                "multicast",
                "make the first octet even",
            ),
            ("ff:ff:ff:ff:ff:ff", "broadcast", "write a unicast address"),
            ("00:00:00:00:00:00", "zero", "write a unicast address"),
            (
                "02-00:00-00:00-01",
                "not a MAC address",
                "six octets with colons",
            ),
            (
                "0200.0000.0001.",
                "not a MAC address",
                "six octets with colons",
            ),
            (
                "02.00.00.00.00.01",
                "not a MAC address",
                "six octets with colons",
            ),
            (
                "020000000001",
                "not a MAC address",
                "six octets with colons",
            ),
            ("2:0:0:0:0:1", "not a MAC address", "six octets with colons"),
            (
                "02:00:00:00:00",
                "not a MAC address",
                "six octets with colons",
            ),
            (
                " 02:00:00:00:00:01",
                "not a MAC address",
                "six octets with colons",
            ),
            (
                "02:00:00:00:00:0g",
                "not a MAC address",
                "six octets with colons",
            ),
            (
                "02:00:00:00:00:+1",
                "not a MAC address",
                "six octets with colons",
            ),
            ("", "not a MAC address", "six octets with colons"),
            ("02:00:00:00:00:00:00:3e", "GUID", "infiniband-guid"),
            ("02-00-00-00-00-00-00-3e", "GUID", "infiniband-guid"),
            (
                "80:00:00:49:fe:80:00:00:00:00:00:00:02:c9:03:00:00:02:00:3a",
                "IPoIB",
                "infiniband-guid",
            ),
        ] {
            let error = text.parse::<MacAddr>().unwrap_err().to_string();
            for part in [text, reason, remedy] {
                assert!(error.contains(part), "{error} lacks {part}");
            }
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn an_observed_address_may_be_any_address() {
        for octets in [[0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
            let seen = MacAddr::from(octets);
            assert_eq!(MacAddr::parse_observed(&seen.to_string()).unwrap(), seen);
            let json = serde_json::to_string(&seen).unwrap();
            assert_eq!(serde_json::from_str::<MacAddr>(&json).unwrap(), seen);
        }
    }

    proptest! {
        #[test]
        fn every_unicast_address_survives_formatting_and_parsing(octets: [u8; 6]) {
            let address = MacAddr::from(octets);
            match address.to_string().parse::<MacAddr>() {
                Ok(read) => prop_assert_eq!(read, address),
                Err(_) => prop_assert!(address.is_zero() || address.is_multicast()),
            }
        }

        #[test]
        fn parsing_never_panics(text in ".*") {
            let _ = text.parse::<MacAddr>();
        }
    }
}
