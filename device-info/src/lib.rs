//! What a network device of this machine is: addresses, sysfs, and the NPWG Device Information
//! Specification 1.1.0.

pub use guid::{Guid, GuidError};
pub use ipoib_addr::{IpoibAddr, IpoibAddrError};
pub use mac_addr::{MacAddr, MacError};
pub use pci_address::{PciAddress, PciAddressError};

mod guid;
mod ipoib_addr;
mod mac_addr;
mod octets;
mod pci_address;
mod quoted;
