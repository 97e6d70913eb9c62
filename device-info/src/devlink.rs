//! devlink over generic netlink: switch modes and ports.

use std::fmt;
use std::io;
use std::time::Duration;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeVal;
use serde::{Deserialize, Serialize};

use crate::pci_address::PciAddress;
use crate::switch::Switch;
use message::{Reply, Request};
pub use port::{DevlinkPort, EswitchMode, PortFlavour};

mod message;
mod port;

/// How long to wait for each datagram of an answer. The kernel usually answers in microseconds. But
/// while a driver reloads, the kernel may keep the device locked for seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The maximum number of datagrams in an answer. A full datagram has at least 4 KiB, enough for
/// about 30 ports.
const MAX_DATAGRAMS: usize = 4096;

/// A device's bus and name in devlink: `pci/0000:03:00.0`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DevlinkHandle {
    /// The bus: `pci`, `netdevsim`, `auxiliary`.
    pub bus: String,
    /// The device's name on that bus.
    pub name: String,
}

impl From<PciAddress> for DevlinkHandle {
    fn from(address: PciAddress) -> Self {
        Self {
            bus: "pci".to_owned(),
            name: address.to_string(),
        }
    }
}

impl fmt::Display for DevlinkHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.bus, self.name)
    }
}

/// A socket to devlink in the network namespace of the thread that opened it.
///
/// A call waits at most two seconds for each datagram of an answer. devlink shows a device only in
/// the network namespace that owns the device, usually the host's.
#[derive(Debug)]
pub struct Devlink {
    socket: Socket,
    family: u16,
    sequence: u32,
}

impl Devlink {
    /// Opens the socket and asks for devlink's family number.
    ///
    /// # Errors
    ///
    /// - [`DevlinkError::Absent`] if this kernel has no devlink. Without devlink, the crate finds
    ///   representors through sysfs.
    /// - Another [`DevlinkError`] if the socket fails, if devlink refuses or does not answer, or if
    ///   the answer is unreadable.
    pub fn open() -> Result<Self, DevlinkError> {
        let mut socket = Socket::new(NETLINK_GENERIC).map_err(DevlinkError::socket)?;
        socket.bind_auto().map_err(DevlinkError::socket)?;
        let patience = TimeVal::new(PATIENCE.as_secs().try_into().unwrap_or(2), 0);
        setsockopt(&socket, sockopt::ReceiveTimeout, &patience)
            .map_err(|errno| DevlinkError::socket(errno.into()))?;
        let mut devlink = Self {
            socket,
            family: message::CONTROL,
            sequence: 0,
        };
        let family = devlink
            .ask(&Request::family("devlink"))
            .map_err(|error| match error {
                DevlinkError::Refused {
                    errno: Errno::ENOENT,
                    ..
                } => DevlinkError::Absent,
                other => other,
            })?
            .iter()
            .find_map(Reply::family_id)
            .ok_or(DevlinkError::Absent)?;
        devlink.family = family;
        Ok(devlink)
    }

    /// Returns the mode of a device's switch.
    ///
    /// Returns `None` for a device without its own switch, and for a device that devlink does not
    /// know.
    ///
    /// # Errors
    ///
    /// [`DevlinkError`] if the socket fails, if the answer is missing or unreadable, or if the
    /// kernel refuses the request for a reason other than a missing device or switch.
    pub fn eswitch_mode(
        &mut self,
        device: &DevlinkHandle,
    ) -> Result<Option<EswitchMode>, DevlinkError> {
        match self.ask(&Request::eswitch(device)) {
            Ok(replies) => Ok(replies.iter().find_map(Reply::eswitch_mode)),
            Err(DevlinkError::Refused { errno, .. }) if means_none(errno) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Returns the ports of a device, including representors. Returns no port for a device that
    /// devlink does not know.
    ///
    /// # Errors
    ///
    /// [`DevlinkError`] if the socket fails, if the answer is missing or unreadable, or if the
    /// kernel refuses the request for a reason other than a missing device or switch.
    pub fn ports(&mut self, device: &DevlinkHandle) -> Result<Vec<DevlinkPort>, DevlinkError> {
        // Kernels before 6.6 return the ports of all devices, so keep only the ports of this
        // device.
        match self.ask(&Request::ports(device)) {
            Ok(replies) => Ok(replies
                .iter()
                .filter(|reply| reply.is_of(device))
                .filter_map(Reply::port)
                .collect()),
            Err(DevlinkError::Refused { errno, .. }) if means_none(errno) => Ok(Vec::new()),
            Err(other) => Err(other),
        }
    }

    /// Returns the switch of a device. Returns `None` if devlink reports no switch mode for the
    /// device or does not answer.
    pub fn switch(&mut self, device: &DevlinkHandle) -> Option<Switch> {
        Switch::read(self, device)
            .ok()
            .filter(|switch| switch.mode.is_some())
    }

    /// Sends one request and collects its complete answer.
    fn ask(&mut self, request: &Request) -> Result<Vec<Reply>, DevlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = request.encode(self.family, self.sequence);
        self.socket
            .send_to(&bytes, &SocketAddr::new(0, 0), 0)
            .map_err(DevlinkError::socket)?;
        let mut replies = Vec::new();
        let mut buffer = Vec::with_capacity(1 << 16);
        for _ in 0..MAX_DATAGRAMS {
            buffer.clear();
            match self.socket.recv_from(&mut buffer, 0) {
                Ok((_, sender)) if sender.port_number() != 0 => continue,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(DevlinkError::Silent(request.what()));
                }
                Err(error) => return Err(DevlinkError::socket(error)),
            }
            if message::collect(&buffer, self.sequence, request, &mut replies)? {
                return Ok(replies);
            }
        }
        Err(DevlinkError::Garbled(request.what()))
    }
}

/// Parses a datagram as an answer, and reads every kind of value from its replies.
#[cfg(any(test, feature = "fixtures"))]
#[doc(hidden)]
pub fn visit_datagram(datagram: &[u8]) -> Result<(), DevlinkError> {
    let device = DevlinkHandle {
        bus: "pci".to_owned(),
        name: "0000:03:00.0".to_owned(),
    };
    let mut replies = Vec::new();
    message::collect(datagram, 1, &Request::ports(&device), &mut replies)?;
    for reply in &replies {
        reply.is_of(&device);
        reply.port();
        reply.eswitch_mode();
        reply.family_id();
    }
    Ok(())
}

/// Returns whether the error number means that the device is missing or has no switch.
fn means_none(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ENODEV | Errno::EOPNOTSUPP | Errno::ENOENT | Errno::EINVAL
    )
}

/// Why a request to devlink failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DevlinkError {
    /// This kernel has no devlink.
    #[error("this kernel has no devlink; representors are looked up in sysfs")]
    Absent,
    /// The socket failed.
    #[error(
        "the netlink socket failed: {0}; check whether this process may open NETLINK_GENERIC sockets"
    )]
    Socket(#[source] Errno),
    /// The kernel refused the request.
    #[error("devlink refused {what}: {}; check the device with `devlink dev show`", errno.desc())]
    Refused {
        /// The request.
        what: String,
        /// The kernel's reason.
        errno: Errno,
    },
    /// No answer came in time.
    #[error(
        "devlink did not report {0} within 2 s; the device's driver may be resetting, so try again"
    )]
    Silent(String),
    /// The answer is not valid netlink or is too long.
    #[error(
        "devlink's answer about {0} cannot be parsed; report this error with the kernel's version"
    )]
    Garbled(String),
}

impl DevlinkError {
    fn socket(error: io::Error) -> Self {
        Self::Socket(Errno::from_raw(error.raw_os_error().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_with_devlink_answers_about_an_unknown_device() {
        let mut devlink = match Devlink::open() {
            Ok(devlink) => devlink,
            Err(DevlinkError::Absent) => return,
            Err(other) => panic!("{other}"),
        };
        let unknown = DevlinkHandle {
            bus: "pci".to_owned(),
            name: "ffffffff:ff:1f.7".to_owned(),
        };
        assert_eq!(devlink.eswitch_mode(&unknown), Ok(None));
        assert_eq!(devlink.ports(&unknown), Ok(Vec::new()));
        assert_eq!(devlink.switch(&unknown), None);
    }
}
