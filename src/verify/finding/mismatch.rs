//! The kinds of findings. Each message contains a remedy. If a value differs, the message also
//! contains the expected and the found value.

use device_info::Guid;
use ipnet::IpNet;
use thiserror::Error;

use super::Source;
use crate::diagnostic::SharedError;
use crate::npwg::{RequestedIp, RequestedMac};
use crate::verify::hardware::show;

/// A difference between an attachment as intended and as observed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Mismatch {
    /// The interface is missing.
    #[error("it is not in the pod, but the delegate reported success; check the delegate's log")]
    Missing,
    /// The interface has this name, and `CNI_IFNAME` is only its alternative name.
    #[error(
        "it is only an alternative name of interface {0:?}; make the delegate use CNI_IFNAME as \
         the name"
    )]
    AlternativeName(String),
    /// The delegate returned this interface name instead of `CNI_IFNAME`.
    #[error("the delegate returned interface {0:?}; make the delegate use CNI_IFNAME")]
    AnsweredName(String),
    /// The interface is on a different device than the allocated device.
    #[error(
        "it is device {}, not the allocated {expected}; make the delegate use deviceID",
        .found.join(" or ")
    )]
    Device {
        /// The allocated device.
        expected: String,
        /// The names of the interface's device. A virtio device has two: `virtioN` and the address
        /// of its PCI function.
        found: Vec<String>,
    },
    /// The delegate returned a different device than the allocated device.
    #[error(
        "the delegate returned device {found:?}, not the allocated {expected}; make the delegate use \
         deviceID"
    )]
    AnsweredDevice {
        /// The allocated device.
        expected: String,
        /// The returned device.
        found: String,
    },
    /// The kernel does not report the interface's device, so verification cannot confirm this
    /// allocated device.
    #[error(
        "the kernel does not report its device, so the allocated {0} cannot be confirmed; use Linux \
         5.14 or later"
    )]
    UnknownDevice(String),
    /// The allocated device is gone, unbound, or bound to a different driver than at ADD.
    #[error("device {device} is {}", rebound(.expected, .found.as_deref()))]
    Driver {
        /// The device.
        device: String,
        /// The driver at ADD.
        expected: String,
        /// The current driver, if any.
        found: Option<String>,
    },
    /// The allocated device is meant for a user-space program, but has no device node that the
    /// program can open.
    #[error(
        "device {device} on driver {driver} has no character device; load the driver's module and \
         check udev"
    )]
    NoCharacterDevice {
        /// The device.
        device: String,
        /// Its driver.
        driver: String,
    },
    /// A setting on the physical function differs from the value that the definition or the pod
    /// requests.
    #[error(
        "device {device}: on its physical function, {key} is {found:?} instead of {expected:?}; \
         make the delegate set it, or find what changed it"
    )]
    Function {
        /// The virtual function.
        device: String,
        /// The key of the setting, such as `vlan`.
        key: &'static str,
        /// The requested value.
        expected: String,
        /// The value that the physical function reports.
        found: String,
    },
    /// The settings on the physical function cannot be read.
    #[error(
        "device {device}: cannot read its settings on its physical function: {reason}; check them \
         with `ip link`"
    )]
    HiddenFunction {
        /// The virtual function.
        device: String,
        /// The reason.
        reason: HiddenFunction,
    },
    /// The interface has a different hardware address than expected.
    #[error(
        "its hardware address is {}, but {expected} was {origin}; make a plugin of the chain set it",
        show(.found)
    )]
    HardwareAddress {
        /// The expected address.
        expected: RequestedMac,
        /// The source of the expected address. The message shows it as `requested` or
        /// `returned by the delegate`.
        origin: Source,
        /// The kernel's octets.
        found: Vec<u8>,
    },
    /// The hardware address cannot be checked, because a master has changed it and the kernel
    /// reports no permanent address.
    #[error(
        "its hardware address cannot be read while it is enslaved to {master:?}; compare \
         {expected} with the address on the device's physical function"
    )]
    HiddenHardwareAddress {
        /// The expected address.
        expected: RequestedMac,
        /// The master.
        master: String,
    },
    /// The hardware address of a result is invalid.
    #[error(
        "the delegate returned {0:?}, which is not a hardware address; make it return octets \
         separated by colons"
    )]
    BrokenHardwareAddress(String),
    /// The pod requested this hardware address, but the result has no hardware address, and there
    /// is no kernel interface to check.
    #[error(
        "hardware address {0} was requested, but the delegate returned none; check it on the \
         device's physical function"
    )]
    NoHardwareAddress(RequestedMac),
    /// The GUID differs, or the interface has none.
    #[error(
        "its hardware address is {}, but GUID {expected} was requested; make a plugin of the chain \
         set it",
        show(.found)
    )]
    Guid {
        /// The requested GUID.
        expected: Guid,
        /// The kernel's octets.
        found: Vec<u8>,
    },
    /// The MTU differs.
    #[error(
        "its MTU is {found}, but the delegate returned {expected}; configure an MTU that the device \
         supports"
    )]
    Mtu {
        /// The returned MTU.
        expected: u32,
        /// The kernel's MTU.
        found: u32,
    },
    /// The interface is down.
    #[error("it is down; make the delegate bring it up")]
    Down,
    /// The interface has no carrier.
    #[error("it has no carrier; check cable, switch and peer")]
    NoCarrier,
    /// An IP address is missing, or its prefix differs.
    #[error(
        "IP address {expected} was {origin}, but the interface has {}; check the IPAM plugin and its \
         range",
        listed(.found)
    )]
    Address {
        /// The expected address.
        expected: RequestedIp,
        /// The source of the expected address, as in [`HardwareAddress`](Self::HardwareAddress).
        origin: Source,
        /// The addresses of the interface.
        found: Vec<IpNet>,
    },
    /// Another host uses the address.
    #[error(
        "IP address {0} is in use by another host; free it on that host or choose another address"
    )]
    Duplicate(IpNet),
    /// The kernel has not finished the duplicate check of the address.
    #[error(
        "IP address {0} is still being checked for duplicates; shorten the check (sysctl \
         dad_transmits) or disable it (accept_dad)"
    )]
    Tentative(IpNet),
    /// The kernel cannot finish the duplicate check of the address, because the interface is down
    /// or has no carrier.
    #[error(
        "IP address {0} cannot be checked for duplicates without a carrier; check cable, switch and \
         peer"
    )]
    TentativeWithoutCarrier(IpNet),
    /// The delegate returned a socket whose path is relative or whose directory does not exist.
    #[error(
        "the delegate returned socket {0:?}, but the path is relative or its directory is missing; \
         make the delegate return the absolute path of a socket"
    )]
    Socket(String),
    /// This master has enslaved the attachment's interface. CHECK accepts a master only if the
    /// master is the interface of a later attachment. For example, a later attachment can be a
    /// bond.
    #[error(
        "it is enslaved to {0:?}, which is not the interface of a later attachment of this pod; \
         release it from {0:?}"
    )]
    Master(String),
}

/// Why the settings on a physical function cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HiddenFunction {
    /// The physical function has no interface on the host, or its driver reports no VFs.
    #[error(
        "the physical function has no interface on the host, or its driver does not report virtual \
         functions"
    )]
    NotReported,
    /// The settings cannot be read. Contains the error.
    #[error(transparent)]
    Unreadable(SharedError),
}

fn rebound(expected: &str, found: Option<&str>) -> String {
    match found {
        Some(found) => {
            format!(
                "bound to driver {found}, but was attached with driver {expected}; bind it to \
                 {expected}"
            )
        }
        None => format!(
            "unbound or missing, but was attached with driver {expected}; bind it to {expected}, \
             or recreate the pod"
        ),
    }
}

fn listed(addresses: &[IpNet]) -> String {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    match addresses.as_slice() {
        [] => "none".to_owned(),
        addresses => addresses.join(", "),
    }
}
