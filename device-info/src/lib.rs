//! What a network device of this machine is: which physical function a VF belongs to and which
//! representor stands for it, where a vDPA device is opened, which GUID a port has, what a pod is
//! to be told of it.
//!
//! For whoever hands devices to workloads and has to be certain which one it was: CNI plugins,
//! device plugins, hardware tests. No async runtime, no Kubernetes, no process started, no file
//! of sysfs written.
//!
//! ```text
//!  text ──▶ PciAddress  MacAddr  Guid  IpoibAddr        what an address is
//!                │
//!  /sys ──▶ Sysfs ──▶ PciFunction  VdpaDevice  Subfunction  RdmaDevice ──▶ Inventory
//!                │         ▲                                    │
//!  devlink ─▶ Switch ──────┘                                    ▼
//!                └────────────────▶ Facts ──▶ complete() ──▶ DeviceInfo ──▶ DeviceInfoDir
//! ```
//!
//! # Asking for one device
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
//! - **Unknown rather than wrong.** `None` and empty lists are "not there or not known": an
//!   interface that a pod has is gone from the host's sysfs, a VF passed into a virtual machine
//!   has no physical function. Of two candidates neither is taken. What the kernel failed to say
//!   (`EIO`, 10 MiB in an attribute, text that is no number) is besides in
//!   [`Sysfs::take_remarks`], a line each.
//! - **Now.** Every method reads when it is called, and nothing is kept. A device that vanishes
//!   between two calls is unknown from then on.
//! - **Bounded.** An attribute is read once and 4 KiB of it at most; links are read one at a time
//!   and never followed by recursion, since physical and virtual functions link to each other.
//!   One device takes at most 60 system calls however many there are, an [`Inventory`] at most 40
//!   for each function; tests hold it to that. With 256 VFs one device resolves in less than 1 ms
//!   and all of them in less than 50 ms (`cargo bench --features fixtures`). Where devlink is not
//!   there a representor is found by the port name of each interface of its switch, at three system
//!   calls each and within the same time.
//!
//! # Errors
//!
//! One type for each way in ([`PciAddressError`], [`MacError`], [`GuidError`],
//! [`DeviceInfoError`], [`CompletionError`], [`SocketError`], [`StoreError`], [`DevlinkError`],
//! [`CaptureError`]). Every message is one line that names the object, the value and what to do;
//! foreign values are quoted and cut. Nothing panics.
//!
//! # Units and forms
//!
//! Addresses have one text each, lower case with colons, since other plugins compare text. VFs
//! and subfunctions are numbered from 0, ports of RDMA devices from 1. Sizes are bytes.
//!
//! # Sources
//!
//! - NPWG Device Information Specification 1.1.0, cited as `DEVINFO 1.1.0 §…`; version 1.0.0 is
//!   read and written too.
//! - PCI SR-IOV 1.1 for the numbers of virtual functions; the kernel's `sysfs-bus-pci`,
//!   `sysfs-class-net`, `sysfs-bus-vdpa`, `linux/devlink.h`.
//! - Real trees of Linux 6.12 for igb, vfio-pci, vDPA, netdevsim, IPoIB and rxe. What is called
//!   `unverified_` in `fixtures` is made from sources and data sheets.
//!
//! # Features
//!
//! - `fixtures`: machines for tests, among them some that nobody has on a desk.
//! - `pci-names`: names of vendors and devices compiled in, for people whose machine has no
//!   `pci.ids` that [`PciNames`] could read. Its table adds 3 MB. The crate behind it runs curl when
//!   it is built; this repository forbids curl the download, so that a build without network is the
//!   same build. Elsewhere set `CURL_HOME` likewise.

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

/// What of this crate reads other parties' octets and has no public name, for a fuzzer.
#[cfg(any(test, feature = "fixtures"))]
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::devlink::understood as devlink;
}

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
