//! A requested hardware address.

use std::fmt;

use device_info::{IpoibAddr, MacAddr, MacError};
use serde::{Deserialize, Serialize};

use super::Dialect;

/// The value of `mac` (NPWG 1.3 §4.1.2.1.4, NPWG 1.0 §4.1.2.1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestedMac {
    /// Six bytes: an Ethernet address.
    Ethernet(MacAddr),
    /// Twenty bytes: an IPoIB address, in NPWG 1.0 only.
    Ipoib(IpoibAddr),
}

impl RequestedMac {
    /// Reads an address in a format that the given version of NPWG allows.
    ///
    /// # Errors
    ///
    /// [`MacError`] when the text is not an address that an interface can have.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, MacError> {
        if dialect == Dialect::V1_0
            && let Ok(address) = text.parse()
        {
            return Ok(Self::Ipoib(address));
        }
        text.parse().map(Self::Ethernet)
    }
}

impl fmt::Display for RequestedMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ethernet(address) => address.fmt(f),
            Self::Ipoib(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPOIB: &str = "80:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22";

    // clause: NPWG-1.3 §4.1.2.1.4 valid: a 6-byte Ethernet MAC address
    // clause: NPWG-1.0 §4.1.2.1.4 valid: an Ethernet address has 6 bytes, an IPoIB address has 20
    #[test]
    fn a_mac_of_twenty_bytes_is_valid_in_npwg_1_0_only() {
        let parse =
            |text: &str, dialect| RequestedMac::parse(text, dialect).map(|mac| mac.to_string());
        for dialect in [Dialect::V1_0, Dialect::V1_3] {
            for text in ["02:23:45:67:89:AB", "02-23-45-67-89-ab", "0223.4567.89ab"] {
                assert_eq!(parse(text, dialect).as_deref(), Ok("02:23:45:67:89:ab"));
            }
            for text in [
                "",
                "02:23:45:67:89",
                "24:8a:07:03:00:8d:ae:2f",
                "02-23:45-67-89-01",
            ] {
                parse(text, dialect).unwrap_err();
            }
        }
        for text in [IPOIB.to_owned(), IPOIB.replace(':', "-")] {
            assert_eq!(parse(&text, Dialect::V1_0).as_deref(), Ok(IPOIB));
            parse(&text, Dialect::V1_3).unwrap_err();
        }
    }

    #[test]
    fn an_address_reads_back_from_a_record() {
        for text in ["02:23:45:67:89:ab", IPOIB] {
            let mac = RequestedMac::parse(text, Dialect::V1_0).unwrap();
            let json = serde_json::to_string(&mac).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<RequestedMac>(&json).unwrap(), mac);
        }
    }
}
