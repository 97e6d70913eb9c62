//! The link-layer address of an IPoIB interface.

use std::fmt;
use std::str::FromStr;

use crate::guid::Guid;
use crate::octets::{self, serde_as_text};
use crate::quoted::Quoted;

/// The link-layer address of an IPoIB interface. This address has 20 octets: 1 octet for flags, 3
/// octets for the queue pair number, and 16 octets for the GID. The GID consists of a subnet prefix
/// (8 octets) and the **port** GUID (8 octets).
///
/// The address does not identify the interface, because the queue pair number changes with every
/// restart of the interface. Compare [`IpoibAddr::port_guid`], or use [`IpoibAddr::is_same_port`].
///
/// ```
/// use device_info::{Guid, IpoibAddr};
///
/// let seen: IpoibAddr = "80:00:00:49:fe:80:00:00:00:00:00:00:02:c9:03:00:00:02:00:3a".parse()?;
/// assert_eq!(seen.port_guid(), Guid::parse_observed("02c9:0300:0002:003a")?);
/// assert_eq!(seen.queue_pair(), 0x49);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpoibAddr([u8; 20]);

impl IpoibAddr {
    /// Returns the twenty octets in the kernel's order.
    #[must_use]
    pub const fn octets(self) -> [u8; 20] {
        self.0
    }

    /// Returns the octets of the port GUID: octets 12 to 19 of the address, counted from 0.
    #[must_use]
    pub const fn port_guid_octets(self) -> [u8; 8] {
        let [.., a, b, c, d, e, f, g, h] = self.0;
        [a, b, c, d, e, f, g, h]
    }

    /// Returns the port GUID. It does not change when the queue pair number changes.
    #[must_use]
    pub fn port_guid(self) -> Guid {
        Guid::from(self.port_guid_octets())
    }

    /// Returns the queue pair number (24 bits). It changes with every restart of the interface.
    #[must_use]
    pub const fn queue_pair(self) -> u32 {
        let [_, high, middle, low, ..] = self.0;
        u32::from_be_bytes([0, high, middle, low])
    }

    /// Returns whether both addresses have the same port GUID. Ignores flags, queue pair numbers
    /// and subnet prefixes.
    #[must_use]
    pub fn is_same_port(self, other: Self) -> bool {
        self.port_guid() == other.port_guid()
    }
}

impl From<[u8; 20]> for IpoibAddr {
    fn from(octets: [u8; 20]) -> Self {
        Self(octets)
    }
}

impl FromStr for IpoibAddr {
    type Err = IpoibAddrError;

    fn from_str(text: &str) -> Result<Self, IpoibAddrError> {
        octets::parse(text)
            .map(Self)
            .ok_or_else(|| IpoibAddrError(Quoted::new(text)))
    }
}

impl fmt::Display for IpoibAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        octets::write(&self.0, f)
    }
}

/// A text that is not the address of an IPoIB interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not an IPoIB address; write 20 octets with colons, as the kernel shows them")]
pub struct IpoibAddrError(Quoted);

serde_as_text!(IpoibAddr, IpoibAddr::from_str);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEEN: &str = "80:00:00:49:fe:80:00:00:00:00:00:00:02:c9:03:00:00:02:00:3a";

    #[test]
    fn the_last_eight_octets_are_the_port_guid() {
        let seen: IpoibAddr = SEEN.parse().unwrap();
        assert_eq!(seen.port_guid().to_string(), "02:c9:03:00:00:02:00:3a");
        assert_eq!(seen.queue_pair(), 0x49);
    }

    #[test]
    fn a_port_stays_the_same_if_its_queue_pair_number_changes() {
        let seen: IpoibAddr = SEEN.parse().unwrap();
        let later: IpoibAddr = SEEN.replacen("00:00:49", "00:01:7f", 1).parse().unwrap();
        assert_ne!(seen, later);
        assert!(seen.is_same_port(later));
    }

    #[test]
    fn an_address_of_the_wrong_length_is_refused_with_a_remedy() {
        for text in ["", "02:00:00:00:00:01", &SEEN[3..], &format!("{SEEN}:00")] {
            let error = text.parse::<IpoibAddr>().unwrap_err().to_string();
            assert!(error.contains("write 20 octets"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn every_address_survives_formatting_and_parsing(octets: [u8; 20]) {
            let address = IpoibAddr::from(octets);
            prop_assert_eq!(address.to_string().parse::<IpoibAddr>().unwrap(), address);
        }
    }
}
