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

/// A device as a pod is told of it (`DEVINFO 1.1.0 §3`): complete and well-formed.
///
/// Keys that the specification does not know survive, so that a file can be read, completed and
/// written again without loss. What somebody else wrote is read as [`WireDeviceInfo`], which
/// takes anything, and becomes one of these by [`TryFrom`] or by [`complete`].
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

/// What kind of device, with what belongs to it (`DEVINFO 1.1.0 §3.1.1`).
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
    /// The function's address.
    pub pci_address: PciAddress,
    /// The character device of the exceptional path.
    pub vhost_net: Option<AbsolutePath>,
    /// The RDMA devices; written with commas between them, as device plugins do.
    pub rdma_devices: Vec<DeviceName>,
    /// The physical function.
    pub pf_pci_address: Option<PciAddress>,
    /// The interface that stands for the function in the host's switch. New in 1.1.0.
    pub representor_device: Option<DeviceName>,
    /// Keys that the specification does not know.
    pub extra: Map<String, Value>,
}

/// A vDPA device (`DEVINFO 1.1.0 §3.1.4`).
#[derive(Clone, Debug, PartialEq)]
pub struct VdpaInfo {
    /// The device's name on the vDPA bus.
    pub parent_device: DeviceName,
    /// How it is used.
    pub driver: VdpaDriver,
    /// Where it is opened.
    pub path: AbsolutePath,
    /// The PCI function behind it.
    pub pci_address: Option<PciAddress>,
    /// The physical function of that.
    pub pf_pci_address: Option<PciAddress>,
    /// The interface that stands for the function in the host's switch. New in 1.1.0.
    pub representor_device: Option<DeviceName>,
    /// Keys that the specification does not know.
    pub extra: Map<String, Value>,
}

/// A vhost-user socket (`DEVINFO 1.1.0 §3.1.5`).
#[derive(Clone, Debug, PartialEq)]
pub struct VhostUserInfo {
    /// Who makes the socket.
    pub mode: VhostUserMode,
    /// The socket.
    pub path: AbsolutePath,
    /// Keys that the specification does not know.
    pub extra: Map<String, Value>,
}

/// A memif socket (`DEVINFO 1.1.0 §3.1.6`).
#[derive(Clone, Debug, PartialEq)]
pub struct MemifInfo {
    /// Who makes the socket.
    pub role: MemifRole,
    /// The socket.
    pub path: AbsolutePath,
    /// What goes through it.
    pub mode: MemifMode,
    /// Keys that the specification does not know.
    pub extra: Map<String, Value>,
}

/// A closed set of words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal $(| $alias:literal)*),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$word_doc])* $variant),+ }

        impl $name {
            /// The words of the specification, for messages.
            pub(crate) const WORDS: &str = concat!("one of", $(" ", $word),+);

            /// The word that the specification has for it.
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
    /// Who makes a vhost-user socket (`DEVINFO 1.1.0 §3.1.5.1`).
    VhostUserMode {
        /// The host makes it, so it must be there.
        Client = "client",
        /// The application in the container makes it, later.
        Server = "server",
    }
}

words! {
    /// Who makes a memif socket (`DEVINFO 1.1.0 §3.1.6.1`).
    MemifRole {
        /// The application in the container makes it, later.
        Master = "master",
        /// The host makes it, so it must be there.
        Slave = "slave",
    }
}

words! {
    /// What goes through a memif socket (`DEVINFO 1.1.0 §3.1.6.3`).
    MemifMode {
        /// Ethernet frames.
        Ethernet = "ethernet",
        /// IP packets.
        Ip = "ip",
        /// Reserved. The reference library calls it `punt`, which is read and not written.
        InjectPunt = "inject-punt" | "punt",
    }
}

impl DeviceInfo {
    /// Makes one of a device of a kind, in the version of the specification that this crate
    /// serves.
    #[must_use]
    pub fn new(kind: DeviceKind) -> Self {
        Self {
            version: SpecVersion::V1_1_0,
            kind,
            extra: Map::new(),
        }
    }

    /// The version of the specification: never below that of the keys that are used.
    #[must_use]
    pub fn version(&self) -> SpecVersion {
        self.version
    }

    /// What kind of device.
    #[must_use]
    pub fn kind(&self) -> &DeviceKind {
        &self.kind
    }

    /// Keys that the specification does not know.
    #[must_use]
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }
}

impl DeviceKind {
    /// The word of the specification: `pci`, `vdpa`, `vhost-user`, `memif`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Pci(_) => "pci",
            Self::Vdpa(_) => "vdpa",
            Self::VhostUser(_) => "vhost-user",
            Self::Memif(_) => "memif",
        }
    }

    /// The oldest version that knows all keys that are used.
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
