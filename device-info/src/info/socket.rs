//! Checks the sockets of vhost-user and memif devices.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::{DeviceInfo, DeviceKind, MemifRole, VhostUserMode};

impl DeviceInfo {
    /// Checks the socket of a vhost-user or memif device after an attachment (`DEVINFO 1.1.0
    /// §3.1.5.1, §3.1.6.1`). Succeeds for devices without a socket.
    ///
    /// A vhost-user device has a mode, and a memif device has a role:
    ///
    /// - For the mode `client` or the role `slave`, the host creates the socket. So the socket must
    ///   exist.
    /// - For the mode `server` or the role `master`, the application in the container creates the
    ///   socket later. So only the socket's directory must exist.
    ///
    /// # Errors
    ///
    /// [`SocketError`] if the required socket or directory is missing or has another file type.
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
                Err(source) => Err(SocketError::Missing {
                    kind,
                    path: shown(),
                    source,
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
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The socket is missing.
    #[error(
        "{kind} socket {path}: cannot find it: {source}; start the host program that creates the socket, or correct the path"
    )]
    Missing {
        /// The device's type.
        kind: &'static str,
        /// The socket.
        path: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// The path is not a socket.
    #[error("{kind} socket {path}: it is not a socket; remove it, or correct the path")]
    NoSocket {
        /// The device's type.
        kind: &'static str,
        /// The socket.
        path: String,
    },
    /// The directory is missing, so the application cannot create the socket.
    #[error(
        "{kind} socket {path}: its directory is missing; create its directory, so that the application can create the socket"
    )]
    NoDirectory {
        /// The device's type.
        kind: &'static str,
        /// The socket.
        path: String,
    },
}
