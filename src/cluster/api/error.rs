//! Why a request to the API server failed.

mod words;

use std::error::Error;
use std::io;
use std::iter::successors;
use std::path::PathBuf;
use std::time::Duration;

use kube::config::{InClusterError, KubeconfigError};
use kube::core::Status;

use crate::diagnostic;

/// The reason with which the API server refuses a field that is too long (Kubernetes API, Status).
const FIELD_TOO_LONG: &str = "FieldValueTooLong";
/// The longest wait before a retry. The API server, or a proxy in front of it, may specify a longer
/// one.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);

/// Why a request failed or could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum ApiError {
    /// This kubeconfig cannot be used.
    Kubeconfig(PathBuf, #[source] Box<CredentialsError>),
    /// The pod's service account cannot be used.
    ServiceAccount(#[source] Box<CredentialsError>),
    /// The tokio runtime that makes the requests cannot be created.
    Runtime(#[source] io::Error),
    /// A request has no usable answer.
    Request {
        /// The server's address.
        server: String,
        /// The method and path, or a description of the watch.
        request: String,
        /// The cause.
        source: RequestError,
    },
}

/// Why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The kubeconfig cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The kubeconfig is not YAML of the expected shape.
    #[error("{}", one_line(.0))]
    Yaml(#[from] serde_norway::Error),
    /// The service account's token, or a file that the kubeconfig names, cannot be read.
    #[error("{0}: {1}")]
    File(String, #[source] io::Error),
    /// The kubeconfig is invalid.
    #[error("{}", one_line(.0))]
    Kubeconfig(#[from] KubeconfigError),
    /// This process does not run in a pod, or the pod has no service account.
    #[error("{}", one_line(.0))]
    InCluster(#[from] InClusterError),
    /// The kubeconfig names a program that supplies the credentials.
    #[error("its user entry gets credentials from a program, and Jackfield runs no such program")]
    Program,
    /// The token cannot be sent in a header.
    #[error("the token contains a character that a header cannot contain")]
    Token,
    /// A client certificate or its key is not base64.
    #[error("client-certificate-data or client-key-data: {0}")]
    Base64(#[from] base64::DecodeError),
    /// A client certificate or its key is not PEM.
    #[error("the client certificate or its key: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// A client certificate has no key, or a key has no client certificate.
    #[error("a client certificate needs a key, and a key needs a client certificate")]
    Identity,
    /// A certificate or key cannot be used for TLS.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// `tls-server-name` is not a host's name.
    #[error("tls-server-name {0:?} is not a host's name")]
    ServerName(String),
    /// `proxy-url` is set.
    #[error("proxy-url {0}: Jackfield sends no requests through a proxy")]
    Proxy(String),
    /// The agent sends the name of its node to the API server in the header `User-Agent`. This name
    /// contains a character that a header cannot contain.
    #[error("the node's name cannot be sent in a header: {0}")]
    Caller(#[from] http::header::InvalidHeaderValue),
    /// The client cannot be built from the credentials.
    #[error("{}", one_line(.0))]
    Client(#[from] kube::Error),
}

/// Why a request has no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The answer did not arrive within the time limit of a request.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
    /// The answer did not arrive by the deadline of the call.
    #[error("no answer within the deadline of the call")]
    Deadline,
    /// The HTTP request cannot be built.
    #[error("{0}")]
    Invalid(#[from] http::Error),
    /// The client failed to send the request or to read the answer.
    #[error("{}", one_line(.0.as_ref()))]
    Client(#[source] Box<kube::Error>),
    /// The answer is a refusal.
    #[error("{} {}", .0.code, collapsed(&.0.message))]
    Refused(#[source] Box<Status>),
    /// The API server does not serve the requested kind, or not in the requested version.
    #[error("the API server does not serve the requested kind")]
    NotServed,
    /// The answer is longer than this limit, in bytes.
    #[error("more than {0} bytes")]
    TooLong(usize),
    /// The answer is not JSON of the expected shape.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> RequestError {
        match error {
            // A 404 for a missing object has `details` with the object's name. A 404 for a missing
            // kind has no `details`.
            kube::Error::Api(status) if status.code == 404 && status.details.is_none() => {
                RequestError::NotServed
            }
            kube::Error::Api(status) => RequestError::Refused(status),
            error => RequestError::Client(Box::new(error)),
        }
    }
}

impl RequestError {
    /// Whether the API server answered.
    pub(super) fn is_answer(&self) -> bool {
        matches!(
            self,
            Self::Refused(_) | Self::NotServed | Self::TooLong(_) | Self::Json(_)
        )
    }
}

impl ApiError {
    /// Replaces the name of the request in the error.
    #[must_use]
    pub fn of(mut self, name: &str) -> ApiError {
        if let ApiError::Request { request, .. } = &mut self {
            name.clone_into(request);
        }
        self
    }

    fn cause(&self) -> Option<&RequestError> {
        match self {
            ApiError::Request { source, .. } => Some(source),
            _ => None,
        }
    }

    fn refusal(&self) -> Option<&Status> {
        match self.cause() {
            Some(RequestError::Refused(status)) => Some(status),
            _ => None,
        }
    }

    /// Returns the HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        self.refusal().map(|status| status.code)
    }

    /// Returns how long to wait before a retry, if the API server specifies a time (429, 503).
    /// Returns five minutes if the specified time is longer.
    pub fn retry_after(&self) -> Option<Duration> {
        let details = self.refusal()?.details.as_ref()?;
        let seconds = u64::from(details.retry_after_seconds);
        (seconds > 0).then(|| Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER))
    }

    /// Whether the API server does not serve the requested kind.
    pub fn is_not_served(&self) -> bool {
        matches!(self.cause(), Some(RequestError::NotServed))
    }

    /// Whether the answer is longer than the limit for reading it.
    pub(super) fn is_long_answer(&self) -> bool {
        matches!(self.cause(), Some(RequestError::TooLong(_)))
    }

    /// Whether the API server refused the object as too long. If so, a retry would fail too.
    pub fn is_too_long(&self) -> bool {
        let details = self.refusal().and_then(|status| status.details.as_ref());
        let mut causes = details.into_iter().flat_map(|details| &details.causes);
        match self.code() {
            Some(413) => true,
            Some(422) => causes.any(|cause| cause.reason == FIELD_TOO_LONG),
            _ => false,
        }
    }

    /// Whether the cause is the server, the connection or the credentials. If so, other requests to
    /// the API server probably fail too.
    pub fn is_general(&self) -> bool {
        match (self.code(), self.cause()) {
            (Some(code), _) => matches!(code, 401 | 429 | 500..=599),
            (None, cause) => !cause.is_some_and(RequestError::is_answer),
        }
    }
}

/// Returns a library's error and its causes in one line. Often only the innermost cause is
/// informative.
fn one_line(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in successors(error.source(), |&cause| cause.source()) {
        let words = cause.to_string();
        // The text of some errors already contains the text of their cause.
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
    }
    collapsed(&text)
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
