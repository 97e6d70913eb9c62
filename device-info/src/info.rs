//! The NPWG Device Information Specification 1.1.0.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use complete::{CompletionError, complete};
pub use error::DeviceInfoError;
pub use facts::{Facts, VdpaFacts};
pub use socket::SocketError;
pub use text::{AbsolutePath, AbsolutePathError, DeviceName, DeviceNameError};
pub use version::{SpecVersion, SpecVersionError};
pub use wire::{WireDeviceInfo, WireMemif, WirePci, WireVdpa, WireVhostUser};

use crate::pci_address::PciAddress;
use crate::vdpa::VdpaDriver;

mod complete;
mod convert;
mod error;
mod facts;
mod socket;
mod text;
mod version;
mod wire;

/// Device information for a pod (`DEVINFO 1.1.0 §3`), complete and valid.
///
/// Keeps keys that the specification does not define, so that a program can read, complete and
/// write a file without loss. To read a file of another program, use [`WireDeviceInfo`], which does
/// not check values. [`TryFrom`] or [`complete()`] turns a `WireDeviceInfo` into a `DeviceInfo`.
///
/// ```
/// use device_info::{DeviceInfo, DeviceKind};
///
/// let info: DeviceInfo = serde_json::from_str(
///     r#"{"type": "pci", "version": "1.1.0", "pci": {"pci-address": "0000:01:02.2"}}"#,
/// )?;
/// let DeviceKind::Pci(pci) = info.kind() else { panic!() };
/// assert_eq!(pci.pci_address.to_string(), "0000:01:02.2");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WireDeviceInfo", into = "WireDeviceInfo")]
pub struct DeviceInfo {
    version: SpecVersion,
    kind: DeviceKind,
    extra: Map<String, Value>,
}

/// A kind of device with its keys (`DEVINFO 1.1.0 §3.1.1`).
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceKind {
    /// A PCI function (§3.1.3).
    Pci(PciInfo),
    /// A vDPA device (§3.1.4).
    Vdpa(VdpaInfo),
    /// A vhost-user socket (§3.1.5).
    VhostUser(VhostUserInfo),
    /// A memif socket (§3.1.6).
    Memif(MemifInfo),
}

/// A PCI function (`DEVINFO 1.1.0 §3.1.3`).
#[derive(Clone, Debug, PartialEq)]
pub struct PciInfo {
    /// The function's PCI address.
    pub pci_address: PciAddress,
    /// The device `/dev/vhost-net`, through which a DPDK program exchanges packets with the kernel.
    pub vhost_net: Option<AbsolutePath>,
    /// The names of the RDMA devices. In a file, one string has all names, separated by commas.
    pub rdma_devices: Vec<DeviceName>,
    /// The physical function.
    pub pf_pci_address: Option<PciAddress>,
    /// The function's representor. New in 1.1.0.
    pub representor_device: Option<DeviceName>,
    /// Keys that the specification does not define.
    pub extra: Map<String, Value>,
}

/// A vDPA device (`DEVINFO 1.1.0 §3.1.4`).
#[derive(Clone, Debug, PartialEq)]
pub struct VdpaInfo {
    /// The device's name on the vDPA bus.
    pub parent_device: DeviceName,
    /// The driver through which the device is used: `vhost` for a user-space program, `virtio` for
    /// the kernel.
    pub driver: VdpaDriver,
    /// The path of the device: its character device for `vhost`, its directory in sysfs for
    /// `virtio`.
    pub path: AbsolutePath,
    /// The PCI function behind the vDPA device.
    pub pci_address: Option<PciAddress>,
    /// The physical function of [`VdpaInfo::pci_address`].
    pub pf_pci_address: Option<PciAddress>,
    /// The representor of the function. New in 1.1.0.
    pub representor_device: Option<DeviceName>,
    /// Keys that the specification does not define.
    pub extra: Map<String, Value>,
}

/// A vhost-user socket (`DEVINFO 1.1.0 §3.1.5`).
#[derive(Clone, Debug, PartialEq)]
pub struct VhostUserInfo {
    /// The role of the container's application.
    pub mode: VhostUserMode,
    /// The path of the socket.
    pub path: AbsolutePath,
    /// Keys that the specification does not define.
    pub extra: Map<String, Value>,
}

/// A memif socket (`DEVINFO 1.1.0 §3.1.6`).
#[derive(Clone, Debug, PartialEq)]
pub struct MemifInfo {
    /// The role of the container's application.
    pub role: MemifRole,
    /// The path of the socket.
    pub path: AbsolutePath,
    /// The kind of packets.
    pub mode: MemifMode,
    /// Keys that the specification does not define.
    pub extra: Map<String, Value>,
}

/// Defines an enum with one variant for each word that the specification allows.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$word_doc])* $variant),+ }

        impl $name {
            /// The words, for messages.
            pub(crate) const WORDS: &str = concat!("one of", $(" ", $word),+);

            /// Returns the specification's word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            pub(crate) fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word $(| $alias)* => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// The role of the container's application on a vhost-user socket (`DEVINFO 1.1.0 §3.1.5.1`).
    VhostUserMode {
        /// The application uses a socket that the host creates, so the socket must exist after the
        /// attachment.
        Client = "client",
        /// The application creates the socket after the attachment.
        Server = "server",
    }
}

words! {
    /// The role of the container's application on a memif socket (`DEVINFO 1.1.0 §3.1.6.1`).
    MemifRole {
        /// The application creates the socket after the attachment.
        Master = "master",
        /// The application uses a socket that the host creates, so the socket must exist after the
        /// attachment.
        Slave = "slave",
    }
}

words! {
    /// The kind of packets on a memif socket (`DEVINFO 1.1.0 §3.1.6.3`).
    MemifMode {
        /// Ethernet frames.
        Ethernet = "ethernet",
        /// IP packets.
        Ip = "ip",
        /// Reserved. NPWG's Go library (`network-attachment-definition-client`) calls this mode
        /// `punt`. This crate also reads `punt`, but always writes `inject-punt`.
        InjectPunt = "inject-punt" | "punt",
    }
}

impl DeviceInfo {
    /// Makes device information for a device, in the latest version that this crate supports.
    #[must_use]
    pub fn new(kind: DeviceKind) -> Self {
        Self {
            version: SpecVersion::V1_1_0,
            kind,
            extra: Map::new(),
        }
    }

    /// Returns the version of the specification. If the device has a representor, the version is at
    /// least 1.1.0.
    #[must_use]
    pub fn version(&self) -> SpecVersion {
        self.version
    }

    /// Returns the kind of device with its keys.
    #[must_use]
    pub fn kind(&self) -> &DeviceKind {
        &self.kind
    }

    /// Returns the keys that the specification does not define.
    #[must_use]
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }
}

impl DeviceKind {
    /// Returns the specification's word: `pci`, `vdpa`, `vhost-user`, `memif`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Pci(_) => "pci",
            Self::Vdpa(_) => "vdpa",
            Self::VhostUser(_) => "vhost-user",
            Self::Memif(_) => "memif",
        }
    }

    /// Returns the oldest specification version that defines all keys with a value in `self`.
    fn needs(&self) -> SpecVersion {
        let representor = match self {
            Self::Pci(pci) => pci.representor_device.is_some(),
            Self::Vdpa(vdpa) => vdpa.representor_device.is_some(),
            Self::VhostUser(_) | Self::Memif(_) => false,
        };
        if representor {
            SpecVersion::V1_1_0
        } else {
            SpecVersion::V1_0_0
        }
    }
}

#[cfg(test)]
mod tests;
