//! Why kubelet's pod-resources API gave no answer.

use std::io;
use std::path::Path;

use super::grpc::GrpcError;

/// The API could not be asked, or did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("kubelet's pod-resources at {socket}: {cause}; {remedy}")]
pub struct KubeletError {
    /// The socket.
    socket: String,
    /// Why.
    cause: String,
    /// What to do.
    remedy: &'static str,
}

impl KubeletError {
    pub(super) fn of(socket: &Path, error: GrpcError) -> KubeletError {
        let remedy = match &error {
            GrpcError::Io(cause) => match cause.kind() {
                io::ErrorKind::NotFound => {
                    "start kubelet, correct podResourcesSocket, or mount its directory into the agent"
                }
                _ => "start kubelet or correct podResourcesSocket",
            },
            error if error.is_rate_limit() => {
                "others on this node ask it too often; find them and slow them down"
            }
            GrpcError::Http2(_) | GrpcError::Late(_) => "look into kubelet's log",
            GrpcError::Status { .. } => "look into kubelet's log for the reason",
            GrpcError::Answer(_) => "correct podResourcesSocket",
        };
        let cause = match &error {
            GrpcError::Io(cause) if cause.kind() == io::ErrorKind::NotFound => {
                "there is no such socket".to_owned()
            }
            GrpcError::Io(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
                "nobody listens there".to_owned()
            }
            error => error.to_string(),
        };
        KubeletError {
            socket: socket.display().to_string(),
            cause,
            remedy,
        }
    }
}
