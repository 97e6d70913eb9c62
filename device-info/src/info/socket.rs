//! Sockets that must be there.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::{DeviceInfo, DeviceKind, MemifRole, VhostUserMode};

impl DeviceInfo {
    /// Looks whether the socket of a vhost-user or memif device is there, as far as it has to be
    /// after an attachment (`DEVINFO 1.1.0 §3.1.5.1, §3.1.6.1`).
    ///
    /// In the modes `client` and `slave` the host has made it. In `server` and `master` the
    /// application makes it later: then its directory must be there. Other devices have none.
    ///
    /// # Errors
    ///
    /// [`SocketError`] with the path and what is missing.
    pub fn check_socket(&self) -> Result<(), SocketError> {
        let (path, by_host) = match self.kind() {
            DeviceKind::VhostUser(socket) => (&socket.path, socket.mode == VhostUserMode::Client),
            DeviceKind::Memif(socket) => (&socket.path, socket.role == MemifRole::Slave),
            DeviceKind::Pci(_) | DeviceKind::Vdpa(_) => return Ok(()),
        };
        let kind = self.kind().type_name();
        let path = Path::new(path.as_str());
        let shown = || path.display().to_string();
        if by_host {
            match fs::metadata(path) {
                Ok(found) if found.file_type().is_socket() => Ok(()),
                Ok(_) => Err(SocketError::NoSocket {
                    kind,
                    path: shown(),
                }),
                Err(error) => Err(SocketError::Missing {
                    kind,
                    path: shown(),
                    reason: error.to_string(),
                }),
            }
        } else {
            let there = path
                .parent()
                .is_some_and(|directory| fs::metadata(directory).is_ok_and(|found| found.is_dir()));
            there.then_some(()).ok_or_else(|| SocketError::NoDirectory {
                kind,
                path: shown(),
            })
        }
    }
}

/// Why a socket cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketError {
    /// Nothing is there.
    #[error(
        "the {kind} socket {path} cannot be found ({reason}): the host side makes it in this mode, start it or correct the path"
    )]
    Missing {
        /// The device's type.
        kind: &'static str,
        /// The socket.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// Something else is there.
    #[error("the {kind} socket {path} is no socket: correct the path, or remove what is there")]
    NoSocket {
        /// The device's type.
        kind: &'static str,
        /// The socket.
        path: String,
    },
    /// The application could not make it.
    #[error(
        "the directory of the {kind} socket {path} is not there: the application makes the socket in this mode, make its directory"
    )]
    NoDirectory {
        /// The device's type.
        kind: &'static str,
        /// The socket.
        path: String,
    },
}
