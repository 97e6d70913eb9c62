//! The kinds of findings.

use device_info::Guid;
use ipnet::IpNet;

use super::Source;
use crate::npwg::{RequestedIp, RequestedMac};

/// A difference between an attachment as intended and as observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The interface is missing.
    Missing,
    /// The name is only an alternative name of another interface.
    AlternativeName {
        /// The name of that interface.
        of: String,
    },
    /// The delegate answered another interface name than it was given.
    AnsweredName {
        /// The answered name.
        found: String,
    },
    /// The interface is on another device than the allocated one.
    Device {
        /// The allocated device.
        expected: String,
        /// The names of the interface's device.
        found: Vec<String>,
    },
    /// The delegate answered another device than the allocated one.
    AnsweredDevice {
        /// The allocated device.
        expected: String,
        /// The answered device.
        found: String,
    },
    /// The kernel does not report the interface's device.
    UnknownDevice {
        /// The allocated device.
        expected: String,
    },
    /// The allocated device is bound to another driver than at ADD, or it is gone.
    Driver {
        /// The device.
        device: String,
        /// The driver at ADD.
        expected: String,
        /// The current driver, if any.
        found: Option<String>,
    },
    /// The program cannot open the allocated device, because it has no character device.
    NoCharacterDevice {
        /// The device.
        device: String,
        /// Its driver.
        driver: String,
    },
    /// A setting on the physical function differs from the definition.
    Function {
        /// The virtual function.
        device: String,
        /// The definition's key.
        key: &'static str,
        /// The value of the key.
        expected: String,
        /// The value that the physical function reports.
        found: String,
    },
    /// The settings on the physical function cannot be read.
    HiddenFunction {
        /// The virtual function.
        device: String,
        /// The reason.
        reason: HiddenFunction,
    },
    /// The hardware address differs.
    HardwareAddress {
        /// The expected address.
        expected: RequestedMac,
        /// The source of the expected address.
        source: Source,
        /// The kernel's octets.
        found: Vec<u8>,
    },
    /// The hardware address cannot be checked: a master has changed it, and the kernel reports no
    /// permanent address.
    HiddenHardwareAddress {
        /// The expected address.
        expected: RequestedMac,
        /// The master.
        master: String,
    },
    /// The hardware address of a result is invalid.
    BrokenHardwareAddress {
        /// The text in the result.
        found: String,
    },
    /// The result has no hardware address, and there is no interface to ask.
    NoHardwareAddress {
        /// The requested address.
        expected: RequestedMac,
    },
    /// The GUID differs, or the interface has none.
    Guid {
        /// The requested GUID.
        expected: Guid,
        /// The kernel's octets.
        found: Vec<u8>,
    },
    /// The MTU differs.
    Mtu {
        /// The answered MTU.
        expected: u32,
        /// The kernel's MTU.
        found: u32,
    },
    /// The interface is down.
    Down,
    /// The interface has no carrier.
    NoCarrier,
    /// An IP address is missing, or its prefix differs.
    Address {
        /// The expected address.
        expected: RequestedIp,
        /// The source of the expected address.
        source: Source,
        /// The addresses of the interface.
        found: Vec<IpNet>,
    },
    /// Another node uses the address.
    Duplicate {
        /// The address.
        address: IpNet,
    },
    /// The kernel has not finished the duplicate check of the address.
    Tentative {
        /// The address.
        address: IpNet,
        /// Whether the interface has the carrier that the check needs.
        carrier: bool,
    },
    /// The delegate answered a socket whose directory does not exist.
    Socket {
        /// The path of the socket.
        path: String,
    },
    /// An interface has enslaved this one that should not have.
    Master {
        /// The master.
        found: String,
    },
}

/// Why the settings on a physical function cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HiddenFunction {
    /// The physical function has no interface on the host, or its driver reports no VFs.
    NotReported,
    /// The kernel refused the request, with this error.
    Unreadable(String),
}
