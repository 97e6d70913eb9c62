//! Why kubelet's pod-resources API gave no usable answer.

use std::io::ErrorKind;
use std::path::PathBuf;

use super::grpc::GrpcError;

/// Why kubelet's pod-resources API at this socket gave no usable answer.
#[derive(Debug, thiserror::Error)]
#[error("kubelet's pod-resources at {socket}: {1}; {remedy}", socket = .0.display(), remedy = self.remedy())]
pub struct KubeletError(pub(super) PathBuf, #[source] pub(super) GrpcError);

impl KubeletError {
    fn remedy(&self) -> &'static str {
        match &self.1 {
            GrpcError::Io(cause) if cause.kind() == ErrorKind::NotFound => {
                "start kubelet, correct podResourcesSocket, or mount the socket's directory into the \
                 agent"
            }
            GrpcError::Io(_) => "start kubelet or correct podResourcesSocket",
            cause if cause.is_rate_limit() => {
                "find the clients on this node that call kubelet too often, and slow them down"
            }
            GrpcError::Http2(_) | GrpcError::Late(_) | GrpcError::Status { .. } => {
                "check kubelet's log"
            }
            _ => "correct podResourcesSocket",
        }
    }
}
