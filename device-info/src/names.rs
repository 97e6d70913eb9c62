//! Names of vendors and devices.
//!
//! The names are only for people. No decision depends on them.

use std::collections::{BTreeMap, BTreeSet};

use crate::inventory::{Function, Inventory};
use crate::printable::printable;

#[cfg(feature = "pci-names")]
pub(crate) mod compiled;

/// The maximum length of a name, in bytes. The longest name in the PCI ID database of 2025 has 119
/// bytes.
const LONGEST: usize = 160;

/// Names of vendors and devices from a table in `pci.ids` format.
///
/// With the feature `pci-names`, the compiled-in table supplies the names that this table lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PciNames {
    vendors: BTreeMap<u16, String>,
    devices: BTreeMap<(u16, u16), String>,
}

impl PciNames {
    /// Takes the names of the `wanted` vendors and devices from a table, in one pass. Skips lines
    /// that are not in `pci.ids` format. Makes the names printable, and shortens a name of more
    /// than 160 bytes.
    #[must_use]
    pub fn parse(table: &[u8], wanted: &BTreeSet<(u16, u16)>) -> Self {
        let vendors: BTreeSet<u16> = wanted.iter().map(|(vendor, _)| *vendor).collect();
        let mut names = Self::default();
        let mut within = None;
        for line in table.split(|byte| *byte == b'\n') {
            match line {
                // An empty line, a comment, or the subsystem of a device.
                [] | [b'#', ..] | [b'\t', b'\t', ..] => {}
                [b'\t', device @ ..] => {
                    let device = within.zip(numbered(device));
                    if let Some((vendor, (device, name))) = device
                        && wanted.contains(&(vendor, device))
                    {
                        names.devices.entry((vendor, device)).or_insert(name);
                    }
                }
                vendor => {
                    let vendor = numbered(vendor).filter(|(vendor, _)| vendors.contains(vendor));
                    within = vendor.as_ref().map(|(vendor, _)| *vendor);
                    if let Some((vendor, name)) = vendor {
                        names.vendors.entry(vendor).or_insert(name);
                    }
                }
            }
        }
        names
    }

    /// Returns the name of a vendor: `Mellanox Technologies` for `15b3`.
    #[must_use]
    pub fn vendor(&self, vendor: u16) -> Option<&str> {
        let name = self.vendors.get(&vendor).map(String::as_str);
        name.or_else(|| compiled_in(vendor, None))
    }

    /// Returns the name of a device: `ConnectX Family mlx5Gen Virtual Function` for `15b3:101e`.
    #[must_use]
    pub fn device(&self, vendor: u16, device: u16) -> Option<&str> {
        let name = self.devices.get(&(vendor, device)).map(String::as_str);
        name.or_else(|| compiled_in(vendor, Some(device)))
    }
}

impl Function {
    /// Returns the vendor ID and device ID.
    fn numbers(&self) -> Option<(u16, u16)> {
        self.vendor.zip(self.device)
    }

    /// Returns the vendor's name, followed by the device's name if it is known. `None` if the
    /// vendor's name is unknown.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let vendor = self.vendor_name.as_ref()?;
        Some(match &self.device_name {
            Some(device) => format!("{vendor} {device}"),
            None => vendor.clone(),
        })
    }
}

impl Inventory {
    /// Sets the names of vendors and devices from a table in `pci.ids` format ([`PciNames`]). Reads
    /// the table once.
    pub fn name(&mut self, table: &[u8]) {
        let numbers = self
            .all_functions()
            .filter_map(|function| function.numbers())
            .collect();
        let names = PciNames::parse(table, &numbers);
        for function in self.all_functions() {
            let Some((vendor, device)) = function.numbers() else {
                continue;
            };
            function.vendor_name = names.vendor(vendor).map(str::to_owned);
            function.device_name = names.device(vendor, device).map(str::to_owned);
        }
    }

    /// Returns all functions: physical functions, virtual functions, and functions without SR-IOV.
    fn all_functions(&mut self) -> impl Iterator<Item = &mut Function> {
        let physical = self.physical_functions.iter_mut().flat_map(|pf| {
            let vfs = pf.vfs.iter_mut().map(|vf| &mut vf.function);
            std::iter::once(&mut pf.function).chain(vfs)
        });
        physical.chain(&mut self.functions)
    }
}

#[cfg(feature = "pci-names")]
fn compiled_in(vendor: u16, device: Option<u16>) -> Option<&'static str> {
    match device {
        None => compiled::vendor_name(vendor),
        Some(device) => compiled::device_name(vendor, device),
    }
}

#[cfg(not(feature = "pci-names"))]
fn compiled_in(_vendor: u16, _device: Option<u16>) -> Option<&'static str> {
    None
}

/// Parses `8086  Intel Corporation`: four hexadecimal digits, blanks, a name.
fn numbered(line: &[u8]) -> Option<(u16, String)> {
    let (number, name) = line.split_at_checked(4)?;
    let blanks = name.first()?.is_ascii_whitespace();
    if !blanks || !number.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let number = str::from_utf8(number).ok()?;
    let number = u16::from_str_radix(number, 16).ok()?;
    let name = String::from_utf8_lossy(name.trim_ascii());
    (!name.is_empty()).then(|| (number, printable(&name, LONGEST).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of vendors and devices that the compiled-in table lacks.
    const TABLE: &str = "\
# Syntax:
# vendor  vendor_name

fff1  Vendor One
\t0001  Device 1
\t\tfff2 0002  a card with it
\t0002  Device 2
fff2  Vendor Two
\t0001  Device 1 of Two
fff1  Vendor One again
\t0001  Device 1 again
C 02  Network controller
\t0003  Ethernet controller
fff3 \n\t0001  Device of a vendor without a name
+ff4  no number
fff5no blank
";

    fn wanted(list: &[(u16, u16)]) -> BTreeSet<(u16, u16)> {
        list.iter().copied().collect()
    }

    #[test]
    fn the_first_name_of_each_wanted_device_is_read() {
        let numbers = [0xfff1, 0xfff2, 0xfff3, 0xfff4, 0xfff5];
        let list: Vec<(u16, u16)> = numbers.iter().map(|vendor| (*vendor, 1)).collect();
        let names = PciNames::parse(TABLE.as_bytes(), &wanted(&list));
        let named = numbers.map(|vendor| (names.vendor(vendor), names.device(vendor, 1)));
        assert_eq!(
            named,
            [
                (Some("Vendor One"), Some("Device 1")),
                (Some("Vendor Two"), Some("Device 1 of Two")),
                (None, None),
                (None, None),
                (None, None),
            ]
        );
        assert_eq!(names.devices.len(), 2, "{names:?}");
        assert_eq!(PciNames::parse(b"", &wanted(&list)).vendors.len(), 0);
    }

    #[test]
    fn a_name_is_short_and_printable() {
        let long = format!("fff1  \u{9b}31m\u{202e}{}\r\n", "x".repeat(4096));
        let names = PciNames::parse(long.as_bytes(), &wanted(&[(0xfff1, 1)]));
        let name = names.vendor(0xfff1).unwrap();
        assert!(name.starts_with(r"\u{9b}31m\u{202e}xx"), "{name}");
        assert!(name.len() <= LONGEST, "{name}");
        let odd = PciNames::parse(b"fff1  A\xff\x1bB", &wanted(&[(0xfff1, 1)]));
        assert_eq!(odd.vendor(0xfff1), Some("A\u{fffd}\\u{1b}B"));
    }

    #[cfg(feature = "pci-names")]
    #[test]
    fn the_compiled_in_table_supplies_missing_names() {
        let names = PciNames::parse(b"8086  Another Intel", &wanted(&[(0x8086, 0x1572)]));
        assert_eq!(names.vendor(0x8086), Some("Another Intel"));
        assert_eq!(names.vendor(0x15b3), Some("Mellanox Technologies"));
        assert!(names.device(0x8086, 0x1572).is_some());
    }
}
