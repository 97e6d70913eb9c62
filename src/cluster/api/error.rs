//! Why the API server did not do what it was asked for.

mod words;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use kube::config::{InClusterError, KubeconfigError};

use crate::diagnostic;

/// A request that failed, or could not even be made.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum ApiError {
    /// A kubeconfig cannot be used.
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<CredentialsError>,
    },
    /// The pod's service account cannot be used.
    ServiceAccount(#[source] Box<CredentialsError>),
    /// There is no runtime for requests.
    Runtime(#[source] io::Error),
    /// There is no answer.
    Unreachable {
        /// The server's address.
        server: String,
        /// Method and path.
        request: String,
        /// Why.
        source: RequestError,
    },
    /// The answer is a refusal.
    Refused {
        /// The server's address.
        server: String,
        /// Method and path.
        request: String,
        /// The HTTP status.
        code: u16,
        /// The server's message.
        message: String,
        /// Whether a field of the object is longer than the server takes.
        is_field_too_long: bool,
        /// When to come back, where the server says so (429, 503).
        retry_after: Option<Duration>,
    },
    /// The server does not know the kind that was asked for, or not this version of it.
    NotServed {
        /// The server's address.
        server: String,
        /// Method and path, or what is watched.
        request: String,
        /// Whether the kind is one that `deploy/crds` brings.
        is_deployed: bool,
    },
    /// The answer is not the expected one.
    Answer {
        /// The server's address.
        server: String,
        /// Method and path.
        request: String,
        /// What is wrong with it.
        source: AnswerError,
    },
}

/// Why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum CredentialsError {
    /// The kubeconfig cannot be read.
    Io(#[from] io::Error),
    /// The kubeconfig is not YAML of the expected shape.
    Yaml(#[from] serde_norway::Error),
    /// A file that the kubeconfig names cannot be read.
    File {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The kubeconfig is invalid.
    Kubeconfig(#[from] KubeconfigError),
    /// This process is not a pod's, or has no service account.
    InCluster(#[from] InClusterError),
    /// A program is to be run for the credentials.
    Program,
    /// The token cannot be sent in a header.
    Token,
    /// `tls-server-name` is not a host's name.
    ServerName(String),
    /// `proxy-url` is set.
    Proxy(String),
    /// The name of the caller cannot be sent in a header.
    Caller(#[from] http::header::InvalidHeaderValue),
    /// The client cannot be built from them.
    Client(#[from] kube::Error),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum RequestError {
    /// It did not come within the limit of a request.
    Late(Duration),
    /// It did not come by the deadline of the call.
    Deadline,
    /// The request cannot be written.
    Request(#[from] http::Error),
    /// The client's reason.
    Client(#[source] Box<kube::Error>),
}

/// What is wrong with an answer.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum AnswerError {
    /// It is longer than what is read, in bytes.
    TooLong(usize),
    /// It is not JSON of the expected shape.
    Json(#[from] serde_json::Error),
}

impl ApiError {
    /// The same error of a request with another name.
    #[must_use]
    pub fn of(mut self, name: &str) -> ApiError {
        match &mut self {
            ApiError::Unreachable { request, .. }
            | ApiError::Refused { request, .. }
            | ApiError::NotServed { request, .. }
            | ApiError::Answer { request, .. } => name.clone_into(request),
            ApiError::Kubeconfig { .. } | ApiError::ServiceAccount(_) | ApiError::Runtime(_) => {}
        }
        self
    }

    /// The HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            ApiError::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the object is longer than the API server takes, so that a retry would fail too.
    pub fn is_too_long(&self) -> bool {
        match self {
            ApiError::Refused {
                code,
                is_field_too_long,
                ..
            } => *code == 413 || (*code == 422 && *is_field_too_long),
            _ => false,
        }
    }

    /// Whether it concerns the API server as a whole, so that any other request would fail too.
    pub fn is_general(&self) -> bool {
        match self {
            ApiError::Refused { code, .. } => matches!(code, 401 | 429 | 500..=599),
            ApiError::NotServed { .. } | ApiError::Answer { .. } => false,
            _ => true,
        }
    }
}
