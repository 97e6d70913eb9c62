//! Why the kernel could not be asked, or what it refused.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::NetnsError;

/// A question to the kernel that got no usable answer.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The namespace cannot be entered.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// A netlink socket, or what drives it, cannot be made.
    #[error("netlink: {step}: {source}; check the limits on open files and on memory")]
    Socket {
        /// What failed.
        step: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel said no.
    #[error("{action}: {source}{}; {}", said(.explanation.as_deref()), remedy(.source))]
    Refused {
        /// What was asked of it, with its object.
        action: String,
        /// The error number.
        source: io::Error,
        /// The kernel's own words, where it has any.
        explanation: Option<String>,
    },
    /// No answer that could be read came in time.
    #[error("{action}: the kernel gave no readable answer within {} ms; look for a hanging network driver in dmesg", within.as_millis())]
    Silent {
        /// What was asked of it, with its object.
        action: String,
        /// How long it was waited for.
        within: Duration,
    },
    /// The socket was closed under way.
    #[error("{action}: the netlink socket closed before the answer; try again")]
    Closed {
        /// What was asked of it, with its object.
        action: String,
    },
    /// The kernel said something that is no message.
    #[error(
        "{action}: the kernel's answer cannot be read: {cause}; report it with the kernel's version"
    )]
    Garbled {
        /// What was asked, with its object.
        action: String,
        /// What is wrong with the answer.
        cause: String,
    },
    /// What was to be listed changed faster than it could be read.
    #[error("{action}: it changed while being read, {attempts} times in a row; try again")]
    Unsteady {
        /// What was asked of it, with its object.
        action: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// A route's interface is not there.
    #[error("route \"{route}\": no interface {interface:?} in this namespace; attach it first")]
    NoInterface {
        /// The route, as `ip route` would write it.
        route: String,
        /// The name that is missing.
        interface: String,
    },
    /// A default route that no request can describe.
    #[error("route \"{route}\": {problem}; give it a gateway or an interface")]
    Route {
        /// The route, as `ip route` would write it.
        route: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Privileges that this process does not have.
    #[error("missing {}; run Jackfield as root, with it in the effective set", missing.join(" and "))]
    Capabilities {
        /// Their names, as `CAP_NET_ADMIN`.
        missing: Vec<&'static str>,
    },
}

fn said(explanation: Option<&str>) -> String {
    explanation.map_or_else(String::new, |text| format!(" ({text})"))
}

/// One remedy for each error number that is worth one.
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

    /// The C library's words differ: musl and glibc do not agree.
    fn plain(number: i32) -> String {
        let text = io::Error::from_raw_os_error(number).to_string();
        text.split(" (os error").next().unwrap().to_owned()
    }

    #[test]
    fn missing_privileges_are_named_in_one_line() {
        let error = KernelError::Capabilities {
            missing: vec!["CAP_NET_ADMIN", "CAP_SYS_ADMIN"],
        };
        assert_eq!(
            error.to_string(),
            "missing CAP_NET_ADMIN and CAP_SYS_ADMIN; run Jackfield as root, with it in the \
             effective set"
        );
    }
}
