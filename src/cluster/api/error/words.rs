//! The messages of [`ApiError`].

use super::{ApiError, CredentialsError, RequestError};
use crate::cluster::api::server::GROUP;
use crate::diagnostic::Problem;

impl Problem for ApiError {
    fn words(&self) -> String {
        match self {
            Self::Kubeconfig(path, source) => {
                format!("kubeconfig {}: {source}", path.display())
            }
            Self::ServiceAccount(source) => format!("the pod's service account: {source}"),
            Self::Runtime(source) => format!("cannot make requests: {source}"),
            Self::Request {
                server,
                request,
                source,
            } => {
                let outcome = match source {
                    RequestError::NotServed => {
                        return format!("API server {server} does not serve {request}");
                    }
                    RequestError::Refused(_) => format!("refuses {request}"),
                    RequestError::TooLong(_) | RequestError::Json(_) => {
                        format!("sends an unusable answer to {request}")
                    }
                    _ => format!("does not answer {request}"),
                };
                format!("API server {server} {outcome}: {source}")
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Kubeconfig(_, source) => match **source {
                CredentialsError::Program => "use a token, a tokenFile or a client certificate",
                CredentialsError::File(..) => {
                    "make that file readable, or correct its path in the kubeconfig"
                }
                CredentialsError::Token => "write a new token",
                CredentialsError::Proxy(_) => "remove proxy-url",
                _ => "correct or remount the kubeconfig",
            },
            Self::ServiceAccount(_) => {
                "mount its credentials into the pod; outside of a pod, name a file with \
                 --kubeconfig"
            }
            Self::Runtime(_) => "if too many files are open, raise the limit of open files",
            Self::Request {
                request, source, ..
            } => match source {
                RequestError::Refused(status) if status.code == 401 => "renew the credentials",
                RequestError::Refused(status) if status.code == 403 => {
                    "apply deploy/rbac.yaml, which grants the required rights"
                }
                RequestError::NotServed if request.contains(GROUP) => {
                    "apply deploy/crds, or make the installed CustomResourceDefinition serve the requested version too"
                }
                RequestError::Refused(_) | RequestError::NotServed => return None,
                RequestError::TooLong(_) | RequestError::Json(_) => {
                    "correct or shorten the requested objects"
                }
                _ => "find out why this node cannot reach the API server",
            },
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use kube::core::Status;

    use super::*;

    fn failed(request: &str, source: impl Into<RequestError>) -> ApiError {
        ApiError::Request {
            server: "https://a/".to_owned(),
            request: request.to_owned(),
            source: source.into(),
        }
    }

    fn refused(code: u16) -> ApiError {
        let status = Status::failure("no", "").with_code(code).boxed();
        failed("GET /x", RequestError::Refused(status))
    }

    #[test]
    fn each_error_says_which_request_failed_and_what_to_do() {
        let kubeconfig = |source| ApiError::Kubeconfig("/k".into(), Box::new(source));
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let file = CredentialsError::File("/t".into(), missing());
        for (error, line) in [
            (
                kubeconfig(file),
                "kubeconfig /k: /t: entity not found; make that file readable, or correct its \
                 path in the kubeconfig",
            ),
            (
                kubeconfig(CredentialsError::Program),
                "kubeconfig /k: its user entry gets credentials from a program, and Jackfield runs \
                 no such program; use a token, a tokenFile or a client certificate",
            ),
            (
                kubeconfig(CredentialsError::Token),
                "kubeconfig /k: the token contains a character that a header cannot contain; write \
                 a new token",
            ),
            (
                ApiError::ServiceAccount(Box::new(CredentialsError::Io(missing()))),
                "the pod's service account: entity not found; mount its credentials into the pod; \
                 outside of a pod, name a file with --kubeconfig",
            ),
            (
                failed("GET /x", RequestError::Late(Duration::from_secs(10))),
                "API server https://a/ does not answer GET /x: no answer within 10 s; find out \
                 why this node cannot reach the API server",
            ),
            (
                failed("GET /x", RequestError::TooLong(7)),
                "API server https://a/ sends an unusable answer to GET /x: more than 7 bytes; \
                 correct or shorten the requested objects",
            ),
            (
                refused(401),
                "API server https://a/ refuses GET /x: 401 no; renew the credentials",
            ),
            (
                refused(403),
                "API server https://a/ refuses GET /x: 403 no; apply deploy/rbac.yaml, which \
                 grants the required rights",
            ),
            (refused(500), "API server https://a/ refuses GET /x: 500 no"),
            (
                failed("GET /apis/k8s.cni.cncf.io/v1/x", RequestError::NotServed),
                "API server https://a/ does not serve GET /apis/k8s.cni.cncf.io/v1/x; apply deploy/crds, or make the \
                 installed CustomResourceDefinition serve the requested version too",
            ),
            (
                failed("GET /x", RequestError::NotServed),
                "API server https://a/ does not serve GET /x",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
