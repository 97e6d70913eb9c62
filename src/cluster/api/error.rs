//! Why the API server did not do what it was asked for.

use std::io;
use std::time::Duration;

/// A request that failed, or could not even be made.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The credentials cannot be used.
    #[error("{source_name}: {cause}; correct it or remount it")]
    Config {
        /// The kubeconfig, or the pod's service account.
        source_name: String,
        /// What is wrong.
        cause: String,
    },
    /// No runtime for requests.
    #[error("requests cannot be made: {0}; free file descriptors")]
    Runtime(#[source] io::Error),
    /// No answer.
    #[error("API server {server} does not answer {request}: {cause}; it is asked again later")]
    Unreachable {
        /// Its address.
        server: String,
        /// Method and path.
        request: String,
        /// Why.
        cause: String,
    },
    /// An answer that is a refusal.
    #[error("API server {server} refuses {request}: {code} {message}{}", remedy(*code))]
    Refused {
        /// Its address.
        server: String,
        /// Method and path.
        request: String,
        /// The HTTP status.
        code: u16,
        /// Its words.
        message: String,
        /// When to come back, where it says so (429, 503).
        retry_after: Option<Duration>,
    },
    /// An answer that is not understood.
    #[error(
        "API server {server} answers {request} with something else: {cause}; correct the object"
    )]
    Answer {
        /// Its address.
        server: String,
        /// Method and path.
        request: String,
        /// What is wrong with it.
        cause: String,
    },
}

fn remedy(code: u16) -> &'static str {
    match code {
        401 => "; renew the token",
        403 => "; apply deploy/rbac.yaml, which grants it",
        _ => "",
    }
}

impl ApiError {
    /// The HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            ApiError::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether it concerns the API server as a whole, so that no other request would fare better.
    pub fn is_general(&self) -> bool {
        match self {
            ApiError::Refused { code, .. } => matches!(code, 401 | 429 | 500..=599),
            ApiError::Answer { .. } => false,
            _ => true,
        }
    }
}
