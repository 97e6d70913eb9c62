//! Why kubelet's pod-resources API gave no answer.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::grpc::GrpcError;

/// Why kubelet's pod-resources API gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("kubelet's pod-resources at {}: {cause}; {}", .socket.display(), self.remedy())]
pub struct KubeletError {
    /// The socket.
    socket: PathBuf,
    /// What went wrong.
    #[source]
    cause: GrpcError,
}

impl KubeletError {
    pub(super) fn of(socket: &Path, cause: GrpcError) -> KubeletError {
        KubeletError {
            socket: socket.to_owned(),
            cause,
        }
    }

    fn remedy(&self) -> &'static str {
        match &self.cause {
            GrpcError::Io(cause) if cause.kind() == ErrorKind::NotFound => {
                "start kubelet, correct podResourcesSocket, or mount its directory into the agent"
            }
            GrpcError::Io(_) => "start kubelet or correct podResourcesSocket",
            cause if cause.is_rate_limit() => {
                "find the clients on this node that call it too often, and slow them down"
            }
            GrpcError::Http2(_) | GrpcError::Late(_) | GrpcError::Status { .. } => {
                "check kubelet's log"
            }
            _ => "correct podResourcesSocket",
        }
    }
}
