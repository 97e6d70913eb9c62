//! The texts of findings: the expected value, the found value and a remedy.

use std::fmt;

use ipnet::IpNet;

use super::{HiddenFunction, Mismatch};
use crate::verify::hardware::show;

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(
                "it is not in the pod, but the delegate reported success; check the delegate's log",
            ),
            Self::AlternativeName { of } => write!(
                f,
                "it is only an alternative name of interface {of:?}; make the delegate use CNI_IFNAME \
                 as the name"
            ),
            Self::AnsweredName { found } => write!(
                f,
                "the delegate answered interface {found:?}; make it use CNI_IFNAME"
            ),
            Self::Device { expected, found } => write!(
                f,
                "it is device {}, not the allocated {expected}; make the delegate use deviceID",
                found.join(" or ")
            ),
            Self::AnsweredDevice { expected, found } => write!(
                f,
                "the delegate answered device {found:?}, not the allocated {expected}; make it use \
                 deviceID"
            ),
            Self::UnknownDevice { expected } => write!(
                f,
                "the kernel does not report its device, so the allocated {expected} cannot be \
                 confirmed; use Linux 5.14 or later"
            ),
            Self::Driver {
                device,
                expected,
                found: Some(found),
            } => write!(
                f,
                "device {device} is bound to driver {found} but was attached on {expected}; bind it \
                 to {expected}"
            ),
            Self::Driver {
                device, expected, ..
            } => write!(
                f,
                "device {device} is unbound or missing but was attached on driver {expected}; bind \
                 it to {expected}, or recreate the pod"
            ),
            Self::NoCharacterDevice { device, driver } => write!(
                f,
                "device {device} on driver {driver} has no character device; load the driver's \
                 module and check udev"
            ),
            Self::Function {
                device,
                key,
                expected,
                found,
            } => write!(
                f,
                "device {device}: on its physical function {key} is {found} instead of {expected}; \
                 make the delegate set it, or check what changed it since"
            ),
            Self::HiddenFunction { device, reason } => write!(
                f,
                "device {device}: cannot read its settings on its physical function: {reason}; check \
                 them with ip link"
            ),
            Self::HardwareAddress {
                expected,
                source,
                found,
            } => write!(
                f,
                "its hardware address is {}, but {expected} was {source}; make a plugin of the chain \
                 set it",
                show(found)
            ),
            Self::HiddenHardwareAddress { expected, master } => write!(
                f,
                "its hardware address {expected} is hidden below {master:?}; check it on the device's \
                 physical function"
            ),
            Self::BrokenHardwareAddress { found } => write!(
                f,
                "the delegate answered {found:?}, which is not a hardware address; make it answer \
                 octets separated by colons"
            ),
            Self::NoHardwareAddress { expected } => write!(
                f,
                "hardware address {expected} was requested, but the delegate answered none; check it \
                 on the device's physical function"
            ),
            Self::Guid { expected, found } => write!(
                f,
                "its hardware address is {}, but GUID {expected} was requested; make a plugin of the \
                 chain set it",
                show(found)
            ),
            Self::Mtu { expected, found } => write!(
                f,
                "its MTU is {found}, but the delegate answered {expected}; configure an MTU that the \
                 device supports"
            ),
            Self::Down => f.write_str("it is down; make the delegate set it up"),
            Self::NoCarrier => f.write_str("it has no carrier; check cable, switch and peer"),
            Self::Address {
                expected,
                source,
                found,
            } => {
                write!(f, "IP address {expected} was {source}, but it has ")?;
                list(f, found)?;
                f.write_str("; check the IPAM plugin and its range")
            }
            Self::Duplicate { address } => write!(
                f,
                "IP address {address} is in use by another host on that network; free it there or \
                 choose another"
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
                "the delegate answered socket {path:?}, whose directory is missing; make it answer \
                 the absolute path of a socket"
            ),
            Self::Master { found } => write!(
                f,
                "it is enslaved to {found:?}, which is not a later attachment of this pod; release \
                 it"
            ),
        }
    }
}

impl fmt::Display for HiddenFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReported => f.write_str(
                "the physical function has no interface on the host, or its driver does not \
                 report virtual functions",
            ),
            Self::Unreadable(error) => f.write_str(error),
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
