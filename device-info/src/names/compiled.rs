//! The compiled-in names of vendors and devices. They add 3 MB to the program, so they need the
//! feature `pci-names`.

use pci_ids::FromId;

use crate::pci_function::PciFunction;

/// Returns the name of a vendor: `Mellanox Technologies` for `15b3`.
#[must_use]
pub fn vendor_name(vendor: u16) -> Option<&'static str> {
    pci_ids::Vendor::from_id(vendor).map(pci_ids::Vendor::name)
}

/// Returns the name of a device: `ConnectX Family mlx5Gen Virtual Function` for `15b3:101e`.
#[must_use]
pub fn device_name(vendor: u16, device: u16) -> Option<&'static str> {
    pci_ids::Device::from_vid_pid(vendor, device).map(pci_ids::Device::name)
}

impl PciFunction {
    /// Returns the vendor's name, followed by the device's name if it is known. `None` if the
    /// vendor's name is unknown.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let vendor = self.vendor()?;
        let vendor_name = vendor_name(vendor)?;
        match self.device().and_then(|device| device_name(vendor, device)) {
            Some(device) => Some(format!("{vendor_name} {device}")),
            None => Some(vendor_name.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The build script of `pci-ids` runs curl to download a newer table. In this repository,
    /// `.cargo/config.toml` forbids the download. If curl downloads a file that is not the table,
    /// the table of `pci-ids` is empty, and this test fails.
    #[test]
    fn the_names_exist_without_a_download() {
        assert_eq!(vendor_name(0x15b3), Some("Mellanox Technologies"));
        let name = device_name(0x15b3, 0x101e);
        assert!(
            name.is_some_and(|name| name.contains("Virtual Function")),
            "{name:?}"
        );
        assert_eq!(vendor_name(0x8086), Some("Intel Corporation"));
        assert_eq!(device_name(0x15b3, 0xfff0), None);
    }
}
