//! Errors of requests to the kernel.

use std::io;
use std::time::Duration;

use netlink_packet_core::DecodeError;
use thiserror::Error;

use super::NetnsError;

/// Why a request to the kernel cannot be sent, or why it failed.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The namespace cannot be opened or entered.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// A netlink socket cannot be opened.
    #[error("netlink: opening a socket: {0}; check the limits on open files and on memory")]
    Socket(#[source] io::Error),
    /// A request failed or got no valid answer.
    #[error("{action}: {source}")]
    Request {
        /// What the request does, such as `listing interfaces`.
        action: String,
        /// Why the request failed.
        source: NetlinkError,
    },
    /// The interface of a route is missing.
    #[error("route \"{route}\": interface {interface:?} does not exist; attach it first")]
    NoInterface {
        /// The route in the notation of `ip route`.
        route: String,
        /// The missing interface.
        interface: String,
    },
    /// This default route, in the notation of `ip route`, has neither a gateway nor an interface.
    #[error("route \"{0}\": neither a gateway nor an interface; add a gateway")]
    NoNextHop(String),
    /// The calling thread lacks these capabilities, such as `CAP_NET_ADMIN`.
    #[error(
        "the effective capability set of Jackfield lacks {}; run Jackfield as root",
        .0.join(" and ")
    )]
    Capabilities(Vec<&'static str>),
}

impl KernelError {
    /// Whether the failure is temporary, so that the same request may succeed later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Netns(cause) => cause.is_shortage(),
            Self::Socket(_) => true,
            Self::Request { source, .. } => source.is_passing(),
            Self::NoInterface { .. } | Self::NoNextHop(_) | Self::Capabilities(_) => false,
        }
    }
}

/// Why a request failed.
#[derive(Debug, Error)]
pub enum NetlinkError {
    /// The kernel refused the request.
    #[error("{source}{}; {}", in_parentheses(.explanation.as_deref()), remedy(.source))]
    Refused {
        /// The error number.
        source: io::Error,
        /// The kernel's own explanation (`NLMSGERR_ATTR_MSG`), if it sent one.
        explanation: Option<String>,
    },
    /// Within this time, the kernel sent no answer, or no further piece of an answer.
    #[error("the kernel gave no readable answer within {} ms; look for a hanging network driver in dmesg", .0.as_millis())]
    Silent(Duration),
    /// The request could not be sent, or the socket failed before the answer arrived.
    #[error("the netlink socket closed before the answer; try again")]
    Closed,
    /// The kernel's answer cannot be parsed.
    #[error("cannot parse the kernel's answer: {0}; report this error with the kernel's version")]
    Garbled(#[source] DecodeError),
    /// Jackfield sent the request this many times, and every answer was incomplete. Usually, the
    /// requested list changed while the kernel sent it.
    #[error("the list changed during {0} reads in a row; try again")]
    Unsteady(u32),
}

impl NetlinkError {
    /// Returns a refusal with this error number.
    pub(super) fn errno(number: i32, explanation: Option<String>) -> Self {
        let source = io::Error::from_raw_os_error(number);
        Self::Refused {
            source,
            explanation,
        }
    }

    /// Returns true if the answer is missing or incomplete, or if the kernel lacked memory. In
    /// these cases, the same request may succeed later.
    fn is_passing(&self) -> bool {
        !matches!(self, Self::Refused { .. } | Self::Garbled(_))
            || self.is_errno(nix::libc::ENOMEM)
            || self.is_errno(nix::libc::ENOBUFS)
    }

    /// Returns whether the kernel refused the request with this error number.
    pub(super) fn is_errno(&self, number: i32) -> bool {
        matches!(self, Self::Refused { source, .. } if source.raw_os_error() == Some(number))
    }

    /// Converts this error to a [`KernelError::Request`]. `action` says what the request does, such
    /// as `listing interfaces`.
    pub(crate) fn about(self, action: impl Into<String>) -> KernelError {
        let (action, source) = (action.into(), self);
        KernelError::Request { action, source }
    }
}

/// Converts an I/O error to a refusal without an explanation.
impl From<io::Error> for NetlinkError {
    fn from(source: io::Error) -> Self {
        Self::Refused {
            source,
            explanation: None,
        }
    }
}

fn in_parentheses(explanation: Option<&str>) -> String {
    explanation.map_or_else(String::new, |text| format!(" ({text})"))
}

/// Returns the remedy for the error number.
fn remedy(source: &io::Error) -> &'static str {
    use nix::libc;
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "run Jackfield with CAP_NET_ADMIN",
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
            "give the pod an address in the gateway's subnet, or choose a gateway within reach"
        }
        Some(libc::ENETDOWN) => "set the interface up first",
        Some(libc::EINVAL) => "check the values, such as a route's gateway and interface",
        Some(libc::ENODEV) => "check that the interface still exists",
        Some(libc::ENOBUFS | libc::ENOMEM) => "free memory on this node",
        _ => "check the interface and the kernel's log",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_refusal_contains_cause_and_remedy() {
        let refused = |number, explanation: Option<&str>| {
            NetlinkError::errno(number, explanation.map(str::to_owned))
                .about("adding route \"default via 10.9.0.1 dev net1\"")
                .to_string()
        };
        assert_eq!(
            refused(nix::libc::ENETUNREACH, Some("Nexthop has invalid gateway")),
            "adding route \"default via 10.9.0.1 dev net1\": Network unreachable (os error 101) \
             (Nexthop has invalid gateway); give the pod an address in the gateway's subnet, or \
             choose a gateway within reach"
                .replace("Network unreachable", &plain(nix::libc::ENETUNREACH))
        );
        assert!(refused(nix::libc::EPERM, None).ends_with("run Jackfield with CAP_NET_ADMIN"));
    }

    /// Returns the C library's text for an error number. The text differs between musl and glibc.
    fn plain(number: i32) -> String {
        let text = io::Error::from_raw_os_error(number).to_string();
        text.split(" (os error").next().unwrap().to_owned()
    }

    #[test]
    fn missing_capabilities_are_named_in_one_line() {
        let error = KernelError::Capabilities(vec!["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]);
        assert_eq!(
            error.to_string(),
            "the effective capability set of Jackfield lacks CAP_NET_ADMIN and CAP_SYS_ADMIN; \
             run Jackfield as root"
        );
    }
}
