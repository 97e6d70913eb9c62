//! Describes the network devices of a machine: the physical function and the representor of a VF,
//! the character device of a vDPA device, the GUID of a port, and the device information for a pod.
//!
//! The crate is for programs that hand devices to workloads and must know exactly which device each
//! workload got: CNI plugins, device plugins, hardware tests. It needs no async runtime and no
//! Kubernetes. It starts no process and writes no file in sysfs.
//!
//! ```text
//!  text ──▶ PciAddress  MacAddr  Guid  IpoibAddr        typed addresses
//!                │
//!  /sys ──▶ Sysfs ──▶ PciFunction  VdpaDevice  Subfunction  RdmaDevice ──▶ Inventory
//!                │         ▲                                    │
//!  devlink ─▶ Switch ──────┘                                    ▼
//!                └────────────────▶ Facts ──▶ complete() ──▶ DeviceInfo ──▶ DeviceInfoDir
//! ```
//!
//! # Describing one device
//!
//! ```
//! use device_info::{Devlink, Facts, Sysfs, complete};
//!
//! let sysfs = Sysfs::host();
//! let mut devlink = Devlink::open().ok();
//! let mut switches = |device: &_| devlink.as_mut()?.switch(device);
//! // The identifier that kubelet allocated: a PCI address, a vDPA device, a subfunction.
//! if let Some(facts) = Facts::read(&sysfs, "0000:01:10.0", &mut switches) {
//!     println!("VF of {:?}, representor {:?}", facts.pf_pci_address, facts.representor_device);
//!     let device_info = complete(None, Some(&facts))?;
//!     println!("{}", serde_json::to_string(&device_info)?);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What an answer means
//!
//! - **Unknown rather than wrong.** `None` and empty lists mean "missing or not known". For
//!   example, a pod's interface is missing from the host's sysfs, and a VF inside a virtual machine
//!   has no physical function. If two values are possible, the crate returns neither.
//!   [`Sysfs::take_remarks`] returns one line for each value that the crate could not read (`EIO`,
//!   more than 4 KiB in an attribute, text that is not a number).
//! - **Current.** Every method reads sysfs when it is called. The crate caches nothing. A device
//!   that vanishes between two calls is unknown from then on.
//! - **Bounded.** The crate reads at most 4 KiB of an attribute, with a single `read`. It reads
//!   links one at a time and never follows them recursively, because physical and virtual
//!   functions link to each other. With devlink, reading one device takes at most 60 system calls
//!   in sysfs, whatever the number of devices. Reading an [`Inventory`] of N functions takes at
//!   most 40 × N system calls. Tests enforce both limits. With 256 VFs, the crate reads one device
//!   in less than 1 ms, and all devices in less than 50 ms
//!   (`cargo bench --features fixtures`). Without devlink, the crate finds the representor of one
//!   device by reading the port name of each interface of the switch. This search takes three
//!   system calls for each interface, in addition to the 60. Reading one device still takes less
//!   than 1 ms.
//!
//! # Errors
//!
//! Each part of the API has its own error type ([`PciAddressError`], [`MacError`], [`GuidError`],
//! [`DeviceInfoError`], [`CompletionError`], [`SocketError`], [`StoreError`], [`DevlinkError`],
//! [`CaptureError`]). Every message is one line with the object, the value and, if there is one,
//! the remedy. Messages quote and shorten values that come from outside. The crate does not panic.
//!
//! # Units and forms
//!
//! The crate writes each address in only one form, in lower case with colons, because CNI plugins
//! compare addresses as text. VFs are numbered from 0, ports of RDMA devices from 1. Sizes are in
//! bytes.
//!
//! # Sources
//!
//! - NPWG Device Information Specification 1.1.0, cited as `DEVINFO 1.1.0 §…`. The crate also reads
//!   and writes version 1.0.0.
//! - PCI SR-IOV 1.1 for the numbers of virtual functions; the kernel's `sysfs-bus-pci`,
//!   `sysfs-class-net`, `sysfs-bus-vdpa`, `linux/devlink.h`.
//! - sysfs trees that were captured from Linux 6.12, for igb, vfio-pci, vDPA, netdevsim, IPoIB and
//!   rxe. Fixtures whose names begin with `unverified_` come from driver sources and data sheets.
//!
//! # Features
//!
//! - `fixtures`: sysfs trees and devlink answers of several machines, some with rare hardware.
//!   Tests can read them instead of `/sys` and devlink.
//! - `pci-names`: a compiled-in table of vendor and device names, which adds 3 MB. [`PciNames`]
//!   uses this table for names that the machine's `pci.ids` lacks. The build script of the crate
//!   `pci-ids` downloads a newer table with curl. In this repository, `.cargo/config.toml` forbids
//!   the download, so that a build without a network gives the same result. Elsewhere, set
//!   `CURL_HOME` to a directory with a `.curlrc` that forbids the download.

pub use capture::{Capture, CaptureError};
pub use device::{Device, DeviceNames};
pub use devlink::{Devlink, DevlinkError, DevlinkHandle, DevlinkPort, EswitchMode, PortFlavour};
pub use guid::{Guid, GuidError};
pub use info::{
    AbsolutePath, AbsolutePathError, CompletionError, DeviceInfo, DeviceInfoError, DeviceKind,
    DeviceName, DeviceNameError, Facts, MemifInfo, MemifMode, MemifRole, PciInfo, SocketError,
    SpecVersion, SpecVersionError, VdpaFacts, VdpaInfo, VhostUserInfo, VhostUserMode,
    WireDeviceInfo, WireMemif, WirePci, WireVdpa, WireVhostUser, complete,
};
pub use inventory::{
    Function, Inventory, PhysicalFunction, RdmaEntry, SubfunctionEntry, VdpaEntry, VirtualFunction,
};
pub use ipoib_addr::{IpoibAddr, IpoibAddrError};
pub use mac_addr::{MacAddr, MacError};
pub use names::PciNames;
#[cfg(feature = "pci-names")]
pub use names::compiled::{device_name, vendor_name};
pub use pci_address::{PciAddress, PciAddressError};
pub use pci_function::{PciFunction, Sriov, Vfio};
pub use phys_port_name::{PhysPortName, PhysPortNameError};
pub use printable::{printable, printable_json};
pub use quoted::Quoted;
pub use rdma::{RdmaDevice, RdmaPort};
pub use store::{CniFileName, DeviceInfoDir, DpFileName, StoreError, UnsafeFile};
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
mod inventory;
mod ipoib_addr;
mod mac_addr;
mod names;
mod octets;
mod pci_address;
mod pci_function;
mod phys_port_name;
mod printable;
mod quoted;
mod rdma;
mod store;
mod subfunction;
mod switch;
mod sysfs;
#[cfg(test)]
mod tests;
mod vdpa;

/// Gives the fuzzer access to the private parser of devlink's answers.
#[cfg(any(test, feature = "fixtures"))]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::devlink::visit_datagram as devlink;
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
