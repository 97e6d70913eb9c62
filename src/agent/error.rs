//! Why the agent cannot start.

mod words;

use std::io;
use std::path::PathBuf;

use caps::CapsHashSet;
use caps::errors::CapsError;
use nix::errno::Errno;

use crate::cluster::ApiError;
use crate::diagnostic;

/// Why the agent cannot start.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum AgentError {
    /// It cannot give up its capabilities.
    Privileges(#[from] PrivilegeError),
    /// There is no runtime.
    Runtime(#[source] io::Error),
    /// The directory of owed writes cannot be made or used.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It cannot listen on its socket.
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// Why.
        source: SocketError,
    },
    /// The address of the API server or the credentials cannot be read.
    Api(#[from] ApiError),
}

/// Why a process keeps capabilities.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// It cannot rule out that programs get them back.
    #[error(transparent)]
    NoNewPrivileges(#[from] Errno),
    /// A set of them cannot be read or changed.
    #[error(transparent)]
    Set(#[from] CapsError),
    /// These are left.
    #[error("{0:?} are left")]
    Left(CapsHashSet),
}

/// Why the agent cannot listen on its socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The socket's directory cannot be made or closed to others.
    #[error("its directory: {0}")]
    Directory(#[source] io::Error),
    /// The socket's directory is open to others, who have files in it.
    #[error("its directory is open to others, who have files in it, and it has to be root's alone")]
    OpenDirectory {
        /// A path in a directory of its own.
        instead: PathBuf,
    },
    /// The file of that name cannot be examined or removed.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The file of that name is not a socket.
    #[error("a file that is not a socket has this name")]
    NotSocket,
    /// It is not known whether another agent listens there.
    #[error(transparent)]
    Peer(io::Error),
    /// Another agent listens there, and does not end.
    #[error("another agent listens there")]
    OtherAgent,
    /// The path cannot be bound.
    #[error(transparent)]
    Bind(io::Error),
}
