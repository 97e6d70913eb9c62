//! What the API server did not do, in words.

use std::error::Error;

use super::{AnswerError, ApiError, CredentialsError, RequestError};
use crate::diagnostic::Problem;

impl Problem for ApiError {
    fn words(&self) -> String {
        match self {
            Self::Kubeconfig { path, source } => {
                format!("kubeconfig {}: {}", path.display(), source.words())
            }
            Self::ServiceAccount(source) => {
                format!("the pod's service account: {}", source.words())
            }
            Self::Runtime(source) => format!("requests cannot be made: {source}"),
            Self::Unreachable {
                server,
                request,
                source,
            } => format!(
                "API server {server} does not answer {request}: {}",
                source.words()
            ),
            Self::Refused {
                server,
                request,
                code,
                message,
                ..
            } => format!("API server {server} refuses {request}: {code} {message}"),
            Self::NotServed {
                server, request, ..
            } => format!("API server {server} does not serve {request}"),
            Self::Answer {
                server,
                request,
                source,
            } => format!(
                "API server {server} answers {request} with something else: {}",
                source.words()
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Kubeconfig { source, .. } => return source.remedy(),
            Self::ServiceAccount(_) => {
                "remount it; outside of a pod, name a file with --kubeconfig"
            }
            Self::Runtime(_) => "free file descriptors",
            Self::Unreachable { .. } => "look why this node does not reach it",
            Self::Refused { code: 401, .. } => "renew the token",
            Self::Refused { code: 403, .. } => "apply deploy/rbac.yaml, which grants it",
            Self::NotServed {
                is_deployed: true, ..
            } => "apply deploy/crds, or have the definition that is there serve that version too",
            Self::Answer { .. } => "correct the object",
            Self::Refused { .. } | Self::NotServed { .. } => return None,
        };
        Some(remedy.to_owned())
    }
}

impl Problem for CredentialsError {
    fn words(&self) -> String {
        match self {
            Self::Io(source) => source.to_string(),
            Self::Yaml(source) => one_line(&source.to_string()),
            Self::File { path, source } => format!("{path}: {source}"),
            Self::Kubeconfig(source) => one_line(&with_causes(source)),
            Self::InCluster(source) => one_line(&with_causes(source)),
            Self::Program => {
                "its user has a program for credentials, which Jackfield does not run".to_owned()
            }
            Self::Token => "the token has characters that no token has".to_owned(),
            Self::ServerName(name) => format!("tls-server-name {name:?} is not a host's name"),
            Self::Proxy(proxy) => {
                format!("proxy-url {proxy}: Jackfield sends no requests through a proxy")
            }
            Self::Caller(source) => format!("the node's name cannot be sent: {source}"),
            Self::Client(source) => one_line(&with_causes(source)),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Program => "name a token, a tokenFile or a client certificate",
            Self::Token => "write a new one",
            Self::Proxy(_) => "remove it",
            _ => "correct it or remount it",
        };
        Some(remedy.to_owned())
    }
}

impl Problem for RequestError {
    fn words(&self) -> String {
        match self {
            Self::Late(limit) => format!("nothing within {} s", limit.as_secs()),
            Self::Deadline => "no answer within the deadline of the call".to_owned(),
            Self::Request(source) => source.to_string(),
            Self::Client(source) => one_line(&with_causes(source)),
        }
    }

    fn remedy(&self) -> Option<String> {
        None
    }
}

impl Problem for AnswerError {
    fn words(&self) -> String {
        match self {
            Self::TooLong(limit) => format!("more than {limit} bytes"),
            Self::Json(source) => source.to_string(),
        }
    }

    fn remedy(&self) -> Option<String> {
        None
    }
}

/// A library's error with its causes, since only the innermost one says why.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        // Some errors have the words of their cause already.
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        next = cause.source();
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;

    fn server() -> String {
        "https://a/".to_owned()
    }

    fn refused(code: u16) -> ApiError {
        ApiError::Refused {
            server: server(),
            request: "GET /x".into(),
            code,
            message: "no".into(),
            is_field_too_long: false,
            retry_after: None,
        }
    }

    fn not_served(is_deployed: bool) -> ApiError {
        ApiError::NotServed {
            server: server(),
            request: "GET /x".into(),
            is_deployed,
        }
    }

    #[test]
    fn each_error_names_the_request_and_what_to_do() {
        let kubeconfig = |source| ApiError::Kubeconfig {
            path: "/k".into(),
            source: Box::new(source),
        };
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let file = CredentialsError::File {
            path: "/t".into(),
            source: missing(),
        };
        for (error, line) in [
            (
                kubeconfig(file),
                "kubeconfig /k: /t: entity not found; correct it or remount it",
            ),
            (
                kubeconfig(CredentialsError::Program),
                "kubeconfig /k: its user has a program for credentials, which Jackfield does not \
                 run; name a token, a tokenFile or a client certificate",
            ),
            (
                kubeconfig(CredentialsError::Token),
                "kubeconfig /k: the token has characters that no token has; write a new one",
            ),
            (
                ApiError::ServiceAccount(Box::new(CredentialsError::Io(missing()))),
                "the pod's service account: entity not found; remount it; outside of a pod, name \
                 a file with --kubeconfig",
            ),
            (
                ApiError::Unreachable {
                    server: server(),
                    request: "GET /x".into(),
                    source: RequestError::Late(Duration::from_secs(10)),
                },
                "API server https://a/ does not answer GET /x: nothing within 10 s; look why this \
                 node does not reach it",
            ),
            (
                ApiError::Answer {
                    server: server(),
                    request: "GET /x".into(),
                    source: AnswerError::TooLong(7),
                },
                "API server https://a/ answers GET /x with something else: more than 7 bytes; \
                 correct the object",
            ),
            (
                refused(401),
                "API server https://a/ refuses GET /x: 401 no; renew the token",
            ),
            (
                refused(403),
                "API server https://a/ refuses GET /x: 403 no; apply deploy/rbac.yaml, which \
                 grants it",
            ),
            (refused(500), "API server https://a/ refuses GET /x: 500 no"),
            (
                not_served(true),
                "API server https://a/ does not serve GET /x; apply deploy/crds, or have the \
                 definition that is there serve that version too",
            ),
            (
                not_served(false),
                "API server https://a/ does not serve GET /x",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
