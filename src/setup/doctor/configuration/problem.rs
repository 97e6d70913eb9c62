//! What can be wrong with the node configuration.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cluster::ConfDirError;
use crate::cni::JsonError;
use crate::diagnostic::Problem;
use crate::request::{NodeConfigError, RequestError};
use crate::setup::problem::ConfFileProblem;

/// What is wrong with the node configuration.
#[derive(Debug)]
pub(super) enum ConfigurationCheckProblem {
    /// The file cannot be read.
    Unreadable(ConfDirError),
    /// The file is not a JSON object.
    Json(JsonError),
    /// The file with our name cannot be used.
    Broken(Arc<ConfFileProblem>),
    /// The runtime's directory has no configuration of ours.
    Missing,
    /// A value is invalid.
    Invalid(Box<RequestError>),
    /// A key is unknown or has no effect; the warning of the parser.
    Warning(String),
    /// The readiness indicator is missing.
    NoIndicator(PathBuf),
}

impl Problem for ConfigurationCheckProblem {
    fn words(&self) -> String {
        match self {
            ConfigurationCheckProblem::Unreadable(cause) => cause.to_string(),
            ConfigurationCheckProblem::Json(cause) => cause.to_string(),
            ConfigurationCheckProblem::Broken(cause) => cause.words(),
            ConfigurationCheckProblem::Missing => {
                "there is no configuration of jackfield, so the runtime does not call it".to_owned()
            }
            ConfigurationCheckProblem::Invalid(cause) => match &**cause {
                RequestError::Config(NodeConfigError::Value { key, value, .. }) => {
                    format!("key {key} of the node configuration is {value}")
                }
                cause => cause.to_string(),
            },
            ConfigurationCheckProblem::Warning(warning) => warning.clone(),
            ConfigurationCheckProblem::NoIndicator(file) => format!(
                "readinessindicatorfile {} does not exist, so every ADD waits",
                file.display()
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            ConfigurationCheckProblem::Unreadable(_) => "name a readable file with --conf",
            ConfigurationCheckProblem::Json(_) => "correct it",
            ConfigurationCheckProblem::Invalid(cause) => match &**cause {
                // The error keeps this value's remedy apart.
                RequestError::Config(NodeConfigError::Value { cause, .. }) => {
                    return Some(cause.to_string());
                }
                _ => "correct it",
            },
            ConfigurationCheckProblem::Broken(_) => {
                "correct it, or run jackfield install, which writes it again"
            }
            ConfigurationCheckProblem::Missing => {
                "run jackfield install, or name the runtime's directory with --conf-dir"
            }
            ConfigurationCheckProblem::Warning(_) => {
                "correct the key, or take it out; docs/configuration.md has them all"
            }
            ConfigurationCheckProblem::NoIndicator(_) => {
                "find out why the cluster network does not start, or correct the key"
            }
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::line;
    use crate::request::ValueError;

    #[test]
    fn problems_have_their_words() {
        let value = NodeConfigError::Value {
            key: "verify",
            value: "7".to_owned(),
            cause: Box::new(ValueError::Choice(vec!["strict", "off"])),
        };
        for (problem, expected) in [
            (
                ConfigurationCheckProblem::Invalid(Box::new(RequestError::Config(value))),
                "key verify of the node configuration is 7; use one of strict, off",
            ),
            (
                ConfigurationCheckProblem::Broken(Arc::new(ConfFileProblem::NoName)),
                "it has no name; correct it, or run jackfield install, which writes it again",
            ),
            (
                ConfigurationCheckProblem::NoIndicator("/a".into()),
                "readinessindicatorfile /a does not exist, so every ADD waits; find out why the \
                 cluster network does not start, or correct the key",
            ),
        ] {
            assert_eq!(line(&problem), expected);
        }
    }
}
