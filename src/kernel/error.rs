//! Errors of requests to the kernel.

use std::io;
use std::time::Duration;

use netlink_packet_core::DecodeError;
use thiserror::Error;

use super::NetnsError;

/// A request to the kernel that failed or got no usable answer.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The namespace cannot be entered.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// A netlink socket cannot be opened.
    #[error("netlink: {step}: {source}; check the limits on open files and on memory")]
    Socket {
        /// The step that failed.
        step: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// The kernel refused the request.
    #[error("{action}: {source}{}; {}", in_parentheses(.explanation.as_deref()), remedy(.source))]
    Refused {
        /// The request and its object.
        action: String,
        /// The error number.
        source: io::Error,
        /// The kernel's own explanation (`NLMSGERR_ATTR_MSG`), if it sent one.
        explanation: Option<String>,
    },
    /// No readable answer came in time.
    #[error("{action}: the kernel gave no readable answer within {} ms; look for a hanging network driver in dmesg", within.as_millis())]
    Silent {
        /// The request and its object.
        action: String,
        /// How long the request waited.
        within: Duration,
    },
    /// The socket closed before the answer.
    #[error("{action}: the netlink socket closed before the answer; try again")]
    Closed {
        /// The request and its object.
        action: String,
    },
    /// The kernel's answer cannot be parsed.
    #[error(
        "{action}: cannot parse the kernel's answer: {source}; report it with the kernel's version"
    )]
    Garbled {
        /// The request and its object.
        action: String,
        /// The parser's error.
        source: DecodeError,
    },
    /// A list changed faster than it could be read.
    #[error("{action}: the list changed during {attempts} reads in a row; try again")]
    Unsteady {
        /// The request and its object.
        action: String,
        /// The number of attempts.
        attempts: u32,
    },
    /// The interface of a route is missing.
    #[error("route \"{route}\": no interface {interface:?} in this namespace; attach it first")]
    NoInterface {
        /// The route, as `ip route` would write it.
        route: String,
        /// The missing interface.
        interface: String,
    },
    /// A default route without gateway and without interface.
    #[error("route \"{route}\": it has neither a gateway nor an interface; add one")]
    NoNextHop {
        /// The route, as `ip route` would write it.
        route: String,
    },
    /// This process lacks capabilities.
    #[error("missing {} in the effective set; run Jackfield as root", missing.join(" and "))]
    Capabilities {
        /// Their names, such as `CAP_NET_ADMIN`.
        missing: Vec<&'static str>,
    },
}

fn in_parentheses(explanation: Option<&str>) -> String {
    explanation.map_or_else(String::new, |text| format!(" ({text})"))
}

/// The remedy for an error number.
fn remedy(source: &io::Error) -> &'static str {
    use nix::libc;
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "run Jackfield with CAP_NET_ADMIN",
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
            "give the pod an address in the gateway's subnet, or choose a gateway within reach"
        }
        Some(libc::ENETDOWN) => "set the interface up first",
        Some(libc::EINVAL) => "check the gateway and the interface that it is reached through",
        Some(libc::ENODEV) => "check that the interface is still in this namespace",
        Some(libc::ENOBUFS | libc::ENOMEM) => "free memory on this node",
        _ => "check the interface and the kernel's log",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_object_the_kernels_words_and_the_remedy() {
        let refused = |number, explanation: Option<&str>| {
            KernelError::Refused {
                action: "adding route \"default via 10.9.0.1 dev net1\"".to_owned(),
                source: io::Error::from_raw_os_error(number),
                explanation: explanation.map(str::to_owned),
            }
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

    /// Returns the C library's text for an error number, which differs between musl and glibc.
    fn plain(number: i32) -> String {
        let text = io::Error::from_raw_os_error(number).to_string();
        text.split(" (os error").next().unwrap().to_owned()
    }

    #[test]
    fn missing_capabilities_are_named_in_one_line() {
        let error = KernelError::Capabilities {
            missing: vec!["CAP_NET_ADMIN", "CAP_SYS_ADMIN"],
        };
        assert_eq!(
            error.to_string(),
            "missing CAP_NET_ADMIN and CAP_SYS_ADMIN in the effective set; run Jackfield as root"
        );
    }
}
