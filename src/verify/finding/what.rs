//! Everything that can be wrong with an attachment.

use device_info::Guid;
use ipnet::IpNet;

use super::Source;
use crate::npwg::{RequestedIp, RequestedMac};

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
