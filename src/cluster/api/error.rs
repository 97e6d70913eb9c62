//! Why the API server did not do what it was asked for.

use std::io;
use std::time::Duration;

use super::server::GROUP;

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
    #[error(
        "API server {server} does not answer {request}: {cause}; it is asked again later, look why this node does not reach it"
    )]
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
    /// The kind that is asked for is not there, or not in this version.
    #[error("API server {server} does not serve {request}{}", kind_remedy(request))]
    NotServed {
        /// Its address.
        server: String,
        /// Method and path, or what is watched.
        request: String,
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

/// Kinds of this group are ours to bring; others are the cluster's.
fn kind_remedy(request: &str) -> &'static str {
    if request.contains(GROUP) {
        "; apply deploy/crds, or have the definition that is there serve that version too"
    } else {
        ""
    }
}

impl ApiError {
    /// The same, of a request that is named otherwise.
    pub fn of(mut self, named: &str) -> ApiError {
        match &mut self {
            ApiError::Unreachable { request, .. }
            | ApiError::Refused { request, .. }
            | ApiError::NotServed { request, .. }
            | ApiError::Answer { request, .. } => named.clone_into(request),
            ApiError::Config { .. } | ApiError::Runtime(_) => {}
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

    /// Whether an object would be longer than the API server takes, whoever tries again.
    pub fn is_too_long(&self) -> bool {
        match self {
            ApiError::Refused { code, message, .. } => {
                *code == 413 || (*code == 422 && message.contains("Too long"))
            }
            _ => false,
        }
    }

    /// Whether it concerns the API server as a whole, so that no other request would fare better.
    pub fn is_general(&self) -> bool {
        match self {
            ApiError::Refused { code, .. } => matches!(code, 401 | 429 | 500..=599),
            ApiError::NotServed { .. } | ApiError::Answer { .. } => false,
            _ => true,
        }
    }
}
