//! Why a command fails, and why its arguments are invalid.

use std::io;
use std::path::PathBuf;

use crate::agent::AgentError;
use crate::cni::{JsonError, NameError};
use crate::diagnostic::line;
use crate::npwg::{ObjectRef, ObjectRefError};
use crate::operation::Failure;
use crate::request::RequestError;
use crate::setup::SetupError;

/// Why a command fails. The message is a single line, usually with a remedy.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// The command has printed findings.
    #[error("there are findings")]
    Findings,
    /// Jackfield cannot write to stdout.
    #[error("stdout: {0}; if the output goes to a file, make space on its file system")]
    Stdout(#[source] io::Error),
    /// Jackfield cannot read the file that `--conf` names.
    #[error("--conf {file}: {1}; name a readable file", file = .0.display())]
    ConfFile(PathBuf, #[source] io::Error),
    /// The file that `--conf` names is not a JSON object.
    #[error("{file}: {1}; correct the file", file = .0.display())]
    ConfJson(PathBuf, #[source] JsonError),
    /// The file of `--conf` is the configuration of a plugin other than Jackfield.
    #[error(
        "--conf {}: the file configures another plugin; name a file with keys of jackfield's configuration",
        .0.display()
    )]
    OtherPlugin(PathBuf),
    /// The configuration in the file that `--conf` names is invalid.
    #[error("{file}: {1}", file = .0.display())]
    Conf(PathBuf, #[source] Box<RequestError>),
    /// The arguments or stdin do not make a valid call.
    #[error(transparent)]
    Call(#[from] RequestError),
    /// The journal has no attached sandbox of the pod that `--pod` names.
    #[error(
        "--pod {0}: Jackfield has no record of an attached sandbox of this pod; name a running pod \
         of this node, as namespace/name"
    )]
    NotAttached(ObjectRef),
    /// A CNI verb, or another operation such as `explain`, failed.
    #[error("{}", .0.in_full())]
    Verb(#[from] Failure),
    /// `install` or `uninstall` failed.
    #[error("{}", line(.0))]
    Setup(#[from] SetupError),
    /// A signal ended `install` before the cluster network had a configuration.
    #[error(
        "install: a signal ended the wait for the cluster network's configuration; this run installed nothing"
    )]
    EndedEarly,
    /// Neither `--node` nor `NODE_NAME` is set, so the agent does not know its node.
    #[error("agent: this node's name is unknown; give --node or set NODE_NAME")]
    NoNodeName,
    /// The value of `--node` or `NODE_NAME` is not a valid node name.
    #[error(
        "agent: {0:?} is not a valid node name; set --node or NODE_NAME to the name that `kubectl \
         get nodes` shows"
    )]
    NodeName(String),
    /// The agent failed.
    #[error("agent: {0}")]
    Agent(#[from] AgentError),
}

/// Why the value of an argument is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArgumentError {
    /// A pod is not written as namespace and name.
    #[error("write it as NAMESPACE/NAME")]
    PodSyntax,
    /// The namespace or name of a pod is invalid.
    #[error(transparent)]
    Pod(#[from] ObjectRefError),
    /// An attachment is not written as container and interface.
    #[error("write it as CONTAINER_ID:IFNAME, as in demo-web:eth0")]
    AttachmentSyntax,
    /// A container ID or interface name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_says_what_failed_and_what_to_do() {
        let file = || PathBuf::from("/a");
        for (error, expected) in [
            (
                CommandError::ConfFile(file(), io::ErrorKind::NotFound.into()),
                "--conf /a: entity not found; name a readable file",
            ),
            (
                CommandError::ConfJson(file(), JsonError::Empty),
                "/a: empty input where a JSON object was expected; correct the file",
            ),
            (
                CommandError::OtherPlugin(file()),
                "--conf /a: the file configures another plugin; name a file with keys of jackfield's configuration",
            ),
            (
                CommandError::EndedEarly,
                "install: a signal ended the wait for the cluster network's configuration; this run installed nothing",
            ),
        ] {
            assert_eq!(error.to_string(), expected);
        }
    }
}
