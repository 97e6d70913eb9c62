//! Why the agent cannot start, or ends with an error.

use std::io;
use std::path::PathBuf;

use caps::CapsHashSet;
use caps::errors::CapsError;
use nix::errno::Errno;

use crate::cluster::ApiError;

/// Why the agent cannot start, or ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent cannot give up its capabilities.
    #[error(
        "the agent cannot give up its capabilities: {0}; drop all capabilities in the container's \
         securityContext"
    )]
    Privileges(#[from] PrivilegeError),
    /// The agent cannot start its event loop or a thread, or cannot handle a signal.
    #[error("the agent cannot run: {0}; raise the agent's limits of open files and of processes")]
    Runtime(#[source] io::Error),
    /// The agent cannot create or use the directory that keeps statuses and events until the API
    /// server has them.
    #[error("{path}: {source}; mount it writable, make root its owner, and start the agent again")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The agent cannot listen on its socket.
    #[error("socket {path}: {source}")]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The cause.
        source: SocketError,
    },
    /// The address of the API server or the credentials cannot be read.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// Why the agent cannot give up its capabilities.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// `no_new_privs` cannot be set, so a program that the process executes could regain
    /// capabilities.
    #[error(transparent)]
    NoNewPrivileges(#[from] Errno),
    /// A capability set cannot be read or changed.
    #[error(transparent)]
    Set(#[from] CapsError),
    /// The process still has these capabilities.
    #[error("the process still has {0:?}")]
    Left(CapsHashSet),
}

/// Why the agent cannot listen on its socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The directory of the socket cannot be created, or access by other users cannot be removed.
    #[error("its directory: {0}; mount the directory writable")]
    Directory(#[source] io::Error),
    /// The directory of the socket is open to other users and contains other files.
    #[error(
        "its directory is open to other users and contains other files; name a path in a separate \
         directory, such as {instead}"
    )]
    OpenDirectory {
        /// A path in a directory that contains only the socket.
        instead: PathBuf,
    },
    /// An existing file at the path cannot be examined or removed, or the mode of the new socket
    /// cannot be set.
    #[error(transparent)]
    File(#[from] io::Error),
    /// An existing file at the path is not a socket.
    #[error("a file that is not a socket has this name; remove the file or name another path")]
    NotSocket,
    /// The agent cannot find out whether another agent listens on the socket.
    #[error("the agent cannot connect to it: {0}; remove the socket")]
    Peer(io::Error),
    /// Another agent listens on the socket, and did not end while this agent waited.
    #[error("another agent listens there; stop that agent first")]
    OtherAgent,
    /// The path cannot be bound.
    #[error("cannot be bound: {0}; name another path that is short and on a local file system")]
    Bind(io::Error),
}

#[cfg(test)]
mod tests {
    use std::io;

    use nix::errno::Errno;

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
                "socket /run/agent.sock: its directory: permission denied; mount the directory writable",
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
                "socket /run/agent.sock: cannot be bound: permission denied; name another path that \
                 is short and on a local file system",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
