//! What is wrong, in words: what was expected, what was found, and what to do.

use std::fmt;

use ipnet::IpNet;

use super::What;
use crate::verify::hardware::show;

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
