//! What is not as it was to be.

use std::fmt;

use device_info::Guid;
use ipnet::IpNet;

use crate::cni::InterfaceName;
use crate::npwg::{RequestedIp, RequestedMac};

use super::hardware::show;

/// One thing that is not as it was to be; its [`Display`](fmt::Display) is one line that names
/// the interface, what was expected, what was found, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The interface of the attachment.
    pub interface: InterfaceName,
    /// What is wrong.
    pub what: What,
    /// How much that matters.
    pub weight: Weight,
}

/// How much a finding matters, lightest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Worth an event; nothing that was promised is missing.
    Warning,
    /// A delegate answered otherwise.
    Answered,
    /// The pod asked otherwise, or kubelet allocated otherwise: always in, whatever is verified
    /// of an answer.
    Requested,
}

/// Who expected something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The pod's selection.
    Requested,
    /// The result of the delegates.
    Answered,
}

impl From<Source> for Weight {
    fn from(source: Source) -> Self {
        match source {
            Source::Requested => Self::Requested,
            Source::Answered => Self::Answered,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requested => "requested",
            Self::Answered => "answered by the delegate",
        })
    }
}

/// What can be wrong with an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// No such interface.
    Missing,
    /// The name is an alternative one of another interface.
    AlternativeName {
        /// That interface's own.
        of: String,
    },
    /// The delegate answered another name than it was given.
    AnsweredName {
        /// The one it answered.
        found: String,
    },
    /// It is another device than the allocated one.
    Device {
        /// The allocated one.
        expected: String,
        /// The names of the one it is.
        found: Vec<String>,
    },
    /// The delegate says that it is another device than the allocated one.
    AnsweredDevice {
        /// The allocated one.
        expected: String,
        /// What the delegate says.
        found: String,
    },
    /// The kernel does not say which device it is.
    UnknownDevice {
        /// The allocated one.
        expected: String,
    },
    /// The allocated device is bound to another driver than it was, or gone.
    Driver {
        /// The device.
        device: String,
        /// The driver that it was bound to.
        expected: String,
        /// The one that it is bound to, if any.
        found: Option<String>,
    },
    /// The allocated device cannot be opened by the program that is to drive it.
    NoCharacterDevice {
        /// The device.
        device: String,
        /// Its driver.
        driver: String,
    },
    /// Its physical function has it otherwise than its definition sets it.
    Function {
        /// The virtual function.
        device: String,
        /// The definition's key.
        key: &'static str,
        /// What the key says.
        expected: String,
        /// What the physical function says.
        found: String,
    },
    /// What its definition sets on its physical function cannot be seen.
    HiddenFunction {
        /// The virtual function.
        device: String,
        /// Why.
        cause: String,
    },
    /// Another hardware address.
    HardwareAddress {
        /// The right one.
        expected: RequestedMac,
        /// Who said so.
        source: Source,
        /// The kernel's octets.
        found: Vec<u8>,
    },
    /// A bond or the like has changed its hardware address, and the kernel keeps no permanent one
    /// to compare with.
    HiddenHardwareAddress {
        /// The right one.
        expected: RequestedMac,
        /// Who has enslaved it.
        master: String,
    },
    /// A result's hardware address is none.
    BrokenHardwareAddress {
        /// What the result says.
        found: String,
    },
    /// In a result there is no hardware address, nor an interface to ask.
    NoHardwareAddress {
        /// The one that was asked for.
        expected: RequestedMac,
    },
    /// Another GUID, or an interface that has none.
    Guid {
        /// The one that was asked for.
        expected: Guid,
        /// The kernel's octets.
        found: Vec<u8>,
    },
    /// Another MTU.
    Mtu {
        /// The answered one.
        expected: u32,
        /// The kernel's.
        found: u32,
    },
    /// It is not set up.
    Down,
    /// It has no carrier.
    NoCarrier,
    /// An IP address is missing, or has another prefix.
    Address {
        /// The right one.
        expected: RequestedIp,
        /// Who said so.
        source: Source,
        /// All that there are.
        found: Vec<IpNet>,
    },
    /// Somebody else has the address.
    Duplicate {
        /// Which.
        address: IpNet,
    },
    /// The kernel has not yet found out whether somebody else has the address.
    Tentative {
        /// Which.
        address: IpNet,
        /// Whether it could find out.
        carrier: bool,
    },
    /// The delegate answered a socket that cannot be.
    Socket {
        /// Its path.
        path: String,
    },
    /// Somebody has enslaved it who should not have.
    Master {
        /// Who.
        found: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interface {}: {}", self.interface, self.what)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(
                "it is not in the pod; see in the delegate's log why it reported success",
            ),
            Self::AlternativeName { of } => write!(
                f,
                "that is an alternative name of interface {of:?} only; let the delegate use \
                 CNI_IFNAME as the name"
            ),
            Self::AnsweredName { found } => write!(
                f,
                "the delegate answered interface {found:?}; let it use CNI_IFNAME"
            ),
            Self::Device { expected, found } => write!(
                f,
                "it is device {}, allocated was {expected}; let the delegate take deviceID",
                found.join(" or ")
            ),
            Self::AnsweredDevice { expected, found } => write!(
                f,
                "the delegate answered device {found:?}, allocated was {expected}; let the \
                 delegate take deviceID"
            ),
            Self::UnknownDevice { expected } => write!(
                f,
                "the kernel does not say which device it is, allocated was {expected}; use \
                 Linux 5.14 or later"
            ),
            Self::Driver {
                device,
                expected,
                found: Some(found),
            } => write!(
                f,
                "device {device} is bound to driver {found}, it was attached on {expected}; bind \
                 it to {expected}"
            ),
            Self::Driver {
                device, expected, ..
            } => write!(
                f,
                "device {device} is unbound or gone, it was attached on driver {expected}; bind \
                 it again, or recreate the pod"
            ),
            Self::NoCharacterDevice { device, driver } => write!(
                f,
                "device {device} on driver {driver} has no character device; load the driver's \
                 module and see whether udev makes it"
            ),
            Self::Function {
                device,
                key,
                expected,
                found,
            } => write!(
                f,
                "device {device}: on its physical function {key} is {found}, it was to be \
                 {expected}; let the delegate set it, or see who changed it since"
            ),
            Self::HiddenFunction { device, cause } => write!(
                f,
                "device {device}: what its definition sets on its physical function cannot be \
                 seen: {cause}; look at it with ip link"
            ),
            Self::HardwareAddress {
                expected,
                source,
                found,
            } => write!(
                f,
                "its hardware address is {}, {source} was {expected}; let a plugin of the chain \
                 set it",
                show(found)
            ),
            Self::HiddenHardwareAddress { expected, master } => write!(
                f,
                "below {master:?} its hardware address {expected} cannot be seen; look at it on \
                 the device's physical function"
            ),
            Self::BrokenHardwareAddress { found } => write!(
                f,
                "the delegate answered hardware address {found:?}, which is none; let it answer \
                 octets with colons"
            ),
            Self::NoHardwareAddress { expected } => write!(
                f,
                "requested was hardware address {expected}, and the delegate answered none; look \
                 at it on the device's physical function"
            ),
            Self::Guid { expected, found } => write!(
                f,
                "its hardware address is {}, requested was one with GUID {expected}; let a \
                 plugin of the chain set it",
                show(found)
            ),
            Self::Mtu { expected, found } => write!(
                f,
                "its MTU is {found}, answered by the delegate was {expected}; give the network \
                 an MTU that its device can have"
            ),
            Self::Down => f.write_str("it is down; let the delegate set it up"),
            Self::NoCarrier => f.write_str("it has no carrier; check cable, switch and peer"),
            Self::Address {
                expected,
                source,
                found,
            } => {
                write!(f, "IP address {expected} was {source}, but it has ")?;
                list(f, found)?;
                f.write_str("; check the IPAM plugin and the range that it may use")
            }
            Self::Duplicate { address } => write!(
                f,
                "IP address {address} is in use by somebody else on that network; free it there \
                 or choose another"
            ),
            Self::Tentative {
                address,
                carrier: true,
            } => write!(
                f,
                "IP address {address} is still being checked for duplicates; wait longer or \
                 disable the check (accept_dad)"
            ),
            Self::Tentative {
                address,
                carrier: false,
            } => write!(
                f,
                "IP address {address} cannot be checked for duplicates without a carrier; check \
                 cable, switch and peer"
            ),
            Self::Socket { path } => write!(
                f,
                "the delegate answered socket {path:?}, whose directory is not there; let it \
                 answer the absolute path of a socket"
            ),
            Self::Master { found } => write!(
                f,
                "it is enslaved to {found:?}, which is no later attachment of this pod; release \
                 it"
            ),
        }
    }
}

fn list(f: &mut fmt::Formatter<'_>, addresses: &[IpNet]) -> fmt::Result {
    match addresses {
        [] => f.write_str("none"),
        [first, others @ ..] => {
            write!(f, "{first}")?;
            others
                .iter()
                .try_for_each(|address| write!(f, ", {address}"))
        }
    }
}
