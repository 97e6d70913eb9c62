//! The texts of the errors that end the agent or keep it from starting.

use super::{AgentError, SocketError};
use crate::diagnostic::Problem;

impl Problem for AgentError {
    fn words(&self) -> String {
        match self {
            Self::Privileges(source) => {
                format!("the agent cannot give up its capabilities: {source}")
            }
            Self::Runtime(source) => format!("the agent cannot run: {source}"),
            Self::Directory { path, source } => format!("{}: {source}", path.display()),
            Self::Socket { path, source } => format!("socket {}: {source}", path.display()),
            Self::Api(source) => source.words(),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Privileges(_) => "drop all capabilities in the container's securityContext",
            Self::Runtime(_) => "raise the agent's limits of open files and of processes",
            Self::Directory { .. } => {
                "mount it writable, make root its owner, and start the agent again"
            }
            Self::Socket { source, .. } => match source {
                SocketError::OpenDirectory { instead } => {
                    let instead = instead.display();
                    return Some(format!(
                        "name a path in a separate directory, such as {instead}"
                    ));
                }
                SocketError::File(_) => return None,
                SocketError::Directory(_) => "mount it writable",
                SocketError::NotSocket => "remove the file or name another path",
                SocketError::Peer(_) => "remove the socket",
                SocketError::OtherAgent => "stop that agent first",
                SocketError::Bind(_) => "name a short path on a local file system",
            },
            Self::Api(source) => return source.remedy(),
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use nix::errno::Errno;

    use super::super::PrivilegeError;
    use super::*;

    #[test]
    fn each_error_names_its_object_and_what_to_do() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let socket = |source| AgentError::Socket {
            path: "/run/agent.sock".into(),
            source,
        };
        for (error, line) in [
            (
                AgentError::Privileges(PrivilegeError::NoNewPrivileges(Errno::EPERM)),
                "the agent cannot give up its capabilities: EPERM: Operation not permitted; drop \
                 all capabilities in the container's securityContext",
            ),
            (
                AgentError::Runtime(denied()),
                "the agent cannot run: permission denied; raise the agent's limits of open files and \
                 of processes",
            ),
            (
                AgentError::Directory {
                    path: "/j/publish".into(),
                    source: denied(),
                },
                "/j/publish: permission denied; mount it writable, make root its owner, and start \
                 the agent again",
            ),
            (
                socket(SocketError::Directory(denied())),
                "socket /run/agent.sock: its directory: permission denied; mount it writable",
            ),
            (
                socket(SocketError::OpenDirectory {
                    instead: "/run/agent/agent.sock".into(),
                }),
                "socket /run/agent.sock: its directory is open to other users and contains other \
                 files; name a path in a separate directory, such as /run/agent/agent.sock",
            ),
            (
                socket(SocketError::NotSocket),
                "socket /run/agent.sock: a file that is not a socket has this name; remove the \
                 file or name another path",
            ),
            (
                socket(SocketError::OtherAgent),
                "socket /run/agent.sock: another agent listens there; stop that agent first",
            ),
            (
                socket(SocketError::Bind(denied())),
                "socket /run/agent.sock: permission denied; name a short path on a local file \
                 system",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
