//! Why a command fails, and why its arguments are invalid.

use std::io;
use std::path::PathBuf;

use crate::agent::AgentError;
use crate::cni::{JsonError, NameError};
use crate::diagnostic::Problem;
use crate::npwg::ObjectRefError;
use crate::operation::Failure;
use crate::request::{EnvironmentError, RequestError, StdinError};
use crate::setup::SetupError;

/// Why a command fails.
#[derive(Debug)]
pub(super) enum CommandError {
    /// Stdout cannot be written.
    Stdout(io::Error),
    /// The file of `--conf` cannot be read.
    ConfFile {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file of `--conf` is not a JSON object.
    ConfJson {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: JsonError,
    },
    /// The file of `--conf` configures another plugin.
    OtherPlugin(PathBuf),
    /// The configuration in the file of `--conf` is invalid.
    Conf {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: Box<RequestError>,
    },
    /// The arguments do not make a valid call.
    Call(EnvironmentError),
    /// Stdin cannot be read.
    Stdin(StdinError),
    /// The configuration on stdin is not a JSON object.
    StdinJson(JsonError),
    /// The configuration on stdin is invalid.
    StdinConf(Box<RequestError>),
    /// A verb failed.
    Verb(Box<Failure>),
    /// The installation could not be changed.
    Setup(Box<SetupError>),
    /// A signal ended the installation before there was a cluster network.
    EndedEarly,
    /// The agent failed.
    Agent(Box<AgentError>),
    /// A document cannot be made.
    Document(io::Error),
}

impl Problem for CommandError {
    fn words(&self) -> String {
        match self {
            CommandError::Stdout(cause) => format!("stdout: {cause}"),
            CommandError::ConfFile { file, cause } => {
                format!("--conf {}: {cause}", file.display())
            }
            CommandError::ConfJson { file, cause } => format!("{}: {cause}", file.display()),
            CommandError::OtherPlugin(file) => {
                format!("--conf {}: it configures another plugin", file.display())
            }
            CommandError::Conf { file, cause } => format!("{}: {cause}", file.display()),
            CommandError::Call(cause) => cause.to_string(),
            CommandError::Stdin(cause) => cause.to_string(),
            CommandError::StdinJson(cause) => cause.to_string(),
            CommandError::StdinConf(cause) => cause.to_string(),
            CommandError::Verb(failure) => failure.in_full(),
            CommandError::Setup(error) => error.words(),
            CommandError::EndedEarly => {
                "a signal ended this before there was a cluster network".to_owned()
            }
            CommandError::Agent(cause) => format!("agent: {cause}"),
            CommandError::Document(cause) => cause.to_string(),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            CommandError::Stdout(_) => "free space where it leads",
            CommandError::ConfFile { .. } => "name a readable file",
            CommandError::ConfJson { .. } => "correct it",
            CommandError::OtherPlugin(_) => "give keys of jackfield's configuration",
            CommandError::Setup(error) => return error.remedy(),
            CommandError::EndedEarly => "nothing was installed",
            _ => return None,
        };
        Some(remedy.to_owned())
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> Self {
        CommandError::Verb(Box::new(failure))
    }
}

impl From<SetupError> for CommandError {
    fn from(error: SetupError) -> Self {
        CommandError::Setup(Box::new(error))
    }
}

impl From<EnvironmentError> for CommandError {
    fn from(error: EnvironmentError) -> Self {
        CommandError::Call(error)
    }
}

/// Why the value of an argument is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum ArgumentError {
    /// A pod is not written as namespace and name.
    #[error("write it as NAMESPACE/NAME")]
    PodSyntax,
    /// A pod cannot have the name.
    #[error(transparent)]
    Pod(#[from] ObjectRefError),
    /// An attachment is not written as container and interface.
    #[error("write it as CONTAINER_ID:IFNAME, as in demo-web:eth0")]
    AttachmentSyntax,
    /// A container or interface cannot have the name.
    #[error(transparent)]
    Name(#[from] NameError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::line;

    #[test]
    fn a_line_names_the_file_and_the_remedy() {
        let cause = || io::Error::from(io::ErrorKind::NotFound);
        let file = || PathBuf::from("/a");
        for (error, expected) in [
            (
                CommandError::ConfFile {
                    file: file(),
                    cause: cause(),
                },
                "--conf /a: entity not found; name a readable file",
            ),
            (
                CommandError::ConfJson {
                    file: file(),
                    cause: JsonError::Empty,
                },
                "/a: empty input where a JSON object was expected; correct it",
            ),
            (
                CommandError::OtherPlugin(file()),
                "--conf /a: it configures another plugin; give keys of jackfield's configuration",
            ),
            (
                CommandError::EndedEarly,
                "a signal ended this before there was a cluster network; nothing was installed",
            ),
        ] {
            assert_eq!(line(&error), expected);
        }
    }
}
