//! What a network device of this machine is: addresses, sysfs, and the NPWG Device Information
//! Specification 1.1.0.

pub use capture::{Capture, CaptureError};
pub use device::{Device, Identity};
pub use devlink::{Devlink, DevlinkError, DevlinkHandle, DevlinkPort, EswitchMode, PortFlavour};
pub use guid::{Guid, GuidError};
pub use info::{
    AbsolutePath, AbsolutePathError, CompletionError, DeviceInfo, DeviceInfoError, DeviceKind,
    DeviceName, DeviceNameError, Facts, MemifInfo, MemifMode, MemifRole, PciInfo, SocketError,
    SpecVersion, SpecVersionError, VdpaFacts, VdpaInfo, VhostUserInfo, VhostUserMode,
    WireDeviceInfo, WireMemif, WirePci, WireVdpa, WireVhostUser, complete,
};
pub use ipoib_addr::{IpoibAddr, IpoibAddrError};
pub use mac_addr::{MacAddr, MacError};
pub use pci_address::{PciAddress, PciAddressError};
pub use pci_function::{PciFunction, Sriov, Vfio};
pub use phys_port_name::{PhysPortName, PhysPortNameError};
pub use quoted::Quoted;
pub use rdma::{RdmaDevice, RdmaPort};
pub use store::{CniFileName, DeviceInfoDir, DpFileName, StoreError};
pub use subfunction::Subfunction;
pub use switch::Switch;
pub use sysfs::{AttributeError, MAX_ATTRIBUTE, Sysfs, natural_order};
pub use vdpa::{VdpaDevice, VdpaDriver, VdpaDriverError};

mod capture;
mod device;
mod device_node;
mod devlink;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod guid;
mod info;
mod ipoib_addr;
mod mac_addr;
mod octets;
mod pci_address;
mod pci_function;
mod phys_port_name;
mod quoted;
mod rdma;
mod store;
mod subfunction;
mod switch;
mod sysfs;
#[cfg(test)]
mod tests;
mod vdpa;
