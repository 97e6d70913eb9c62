//! The address of a PCI function.

use std::fmt;
use std::str::FromStr;

use crate::octets::serde_as_text;
use crate::quoted::Quoted;

/// The address of a PCI function: domain, bus, device, function, as in `0000:01:10.2`.
///
/// The Device Information Specification calls this form the standard BDF format
/// (`DEVINFO 1.1.0 §3.1.3.1`). The domain is 32 bits wide, so the crate reads four to eight digits
/// for the domain. It writes at least four. Functions behind Intel's VMD have a domain of five
/// digits (`10000:00:04.0`).
///
/// Addresses compare as numbers, as in the kernel's enumeration. For example, `ffff:00:00.0` is
/// less than `10000:00:00.0`, although its text is greater.
///
/// ```
/// use device_info::PciAddress;
///
/// let vf: PciAddress = "0000:01:10.2".parse()?;
/// assert_eq!((vf.domain(), vf.bus(), vf.device(), vf.function()), (0, 1, 0x10, 2));
/// assert_eq!("0000:3B:00.0".parse::<PciAddress>()?.to_string(), "0000:3b:00.0");
/// assert!("01:10.2".parse::<PciAddress>().is_err());
/// # Ok::<(), device_info::PciAddressError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

impl PciAddress {
    /// Returns the PCI domain (segment), 32 bits wide.
    #[must_use]
    pub const fn domain(self) -> u32 {
        self.domain
    }

    /// Returns the bus within the domain.
    #[must_use]
    pub const fn bus(self) -> u8 {
        self.bus
    }

    /// Returns the device on the bus, 0 to 31.
    #[must_use]
    pub const fn device(self) -> u8 {
        self.device
    }

    /// Returns the function of the device, 0 to 7.
    #[must_use]
    pub const fn function(self) -> u8 {
        self.function
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl FromStr for PciAddress {
    type Err = PciAddressError;

    fn from_str(text: &str) -> Result<Self, PciAddressError> {
        parse(text).ok_or_else(|| PciAddressError(Quoted::new(text)))
    }
}

fn parse(text: &str) -> Option<PciAddress> {
    let (domain, rest) = text.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let address = PciAddress {
        domain: hex(domain, 4, 8)?,
        bus: u8::try_from(hex(bus, 2, 2)?).ok()?,
        device: u8::try_from(hex(device, 2, 2)?).ok()?,
        function: u8::try_from(hex(function, 1, 1)?).ok()?,
    };
    (address.device < 32 && address.function < 8).then_some(address)
}

/// Parses a hexadecimal number of `least` to `most` digits. Unlike `from_str_radix`, refuses a
/// sign.
fn hex(text: &str, least: usize, most: usize) -> Option<u32> {
    let fits = (least..=most).contains(&text.len());
    let digits = text.bytes().all(|character| character.is_ascii_hexdigit());
    (fits && digits)
        .then(|| u32::from_str_radix(text, 16).ok())
        .flatten()
}

/// A text that is not the address of a PCI function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is not a PCI address; write domain:bus:device.function in hexadecimal, such as 0000:01:10.2"
)]
pub struct PciAddressError(Quoted);

serde_as_text!(PciAddress, PciAddress::from_str);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    // clause: DEVINFO-1.1.0 §3.1.3.1: the address has the standard BDF format
    fn the_standard_format_is_read_and_written_in_lower_case() {
        for (text, canonical) in [
            ("0000:01:10.2", "0000:01:10.2"),
            ("0000:AF:1F.7", "0000:af:1f.7"),
            ("10000:00:04.0", "10000:00:04.0"),
            ("ffffffff:ff:1f.7", "ffffffff:ff:1f.7"),
            ("00000000:01:00.0", "0000:01:00.0"),
        ] {
            let address: PciAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), canonical);
        }
    }

    #[test]
    fn an_address_behind_vmd_keeps_the_five_digits_of_its_domain() {
        let address: PciAddress = "10000:e1:00.0".parse().unwrap();
        assert_eq!(address.domain(), 0x1_0000);
        assert_eq!(address.to_string(), "10000:e1:00.0");
    }

    #[test]
    fn text_that_is_no_pci_address_is_refused_in_one_line() {
        for text in [
            "",
            "01:10.2",
            "000:01:10.2",
            "100000000:01:10.2",
            "0000:02:01:6",
            "0000:01:20.0",
            "0000:01:10.8",
            "0000:1:10.2",
            "0000:01:10.2 ",
            " 0000:01:10.2",
            "+000:01:10.2",
            "0000:01:+1.2",
            "0000:01:10.2/..",
            "0000:01:10",
            "mlx5_core.sf.4",
            "é000:01:10.2",
        ] {
            let error = text.parse::<PciAddress>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
            assert!(error.contains("such as 0000:01:10.2"), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn addresses_sort_as_numbers_not_as_text() {
        let mut addresses: Vec<PciAddress> = [
            "10000:00:00.0",
            "ffff:00:00.0",
            "0000:01:10.0",
            "0000:01:00.2",
        ]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect();
        addresses.sort();
        let sorted: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        assert_eq!(
            sorted,
            [
                "0000:01:00.2",
                "0000:01:10.0",
                "ffff:00:00.0",
                "10000:00:00.0"
            ]
        );
    }

    #[test]
    fn an_address_is_a_string_in_json() {
        let address: PciAddress = serde_json::from_str("\"0000:01:10.2\"").unwrap();
        assert_eq!(serde_json::to_string(&address).unwrap(), "\"0000:01:10.2\"");
        assert!(serde_json::from_str::<PciAddress>("\"eth0\"").is_err());
    }

    proptest! {
        #[test]
        fn every_address_survives_formatting_and_parsing(domain: u32, bus: u8, device in 0_u8..32, function in 0_u8..8) {
            let address = PciAddress { domain, bus, device, function };
            prop_assert_eq!(address.to_string().parse::<PciAddress>().unwrap(), address);
        }

        #[test]
        fn parsing_never_panics(text in ".*") {
            let _ = text.parse::<PciAddress>();
        }
    }
}
