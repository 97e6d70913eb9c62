//! Why the agent cannot start, or ends with an error.

mod words;

use std::io;
use std::path::PathBuf;

use caps::CapsHashSet;
use caps::errors::CapsError;
use nix::errno::Errno;

use crate::cluster::ApiError;
use crate::diagnostic;

/// Why the agent cannot start, or ends with an error.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum AgentError {
    /// The agent cannot give up its capabilities.
    Privileges(#[from] PrivilegeError),
    /// The agent cannot start its event loop or a thread, or cannot handle a signal.
    Runtime(#[source] io::Error),
    /// The directory of owed writes cannot be created or used.
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The agent cannot listen on its socket.
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The cause.
        source: SocketError,
    },
    /// The address of the API server or the credentials cannot be read.
    Api(#[from] ApiError),
}

/// Why the agent cannot give up its capabilities.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// `no_new_privs` cannot be set, so a program could regain capabilities.
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
    #[error("its directory: {0}")]
    Directory(#[source] io::Error),
    /// The directory of the socket is open to other users and contains other files.
    #[error("its directory is open to other users and contains other files")]
    OpenDirectory {
        /// A path in a directory that contains only the socket.
        instead: PathBuf,
    },
    /// An existing file at the path cannot be examined or removed, or the mode of the new socket
    /// cannot be set.
    #[error(transparent)]
    File(#[from] io::Error),
    /// An existing file at the path is not a socket.
    #[error("a file that is not a socket has this name")]
    NotSocket,
    /// The agent cannot find out whether another agent listens on the socket.
    #[error(transparent)]
    Peer(io::Error),
    /// Another agent listens on the socket and does not end.
    #[error("another agent listens there")]
    OtherAgent,
    /// The path cannot be bound.
    #[error(transparent)]
    Bind(io::Error),
}
