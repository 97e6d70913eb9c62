//! The outcome of looking up a definition or an IPAMClaim.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::ApiError;
use super::frame::FrameError;
use super::manifests::ManifestFileError;
use crate::npwg::{ManifestError, ObjectRef, ObjectRefError};

/// A definition or an IPAMClaim in an [`Answer`](super::Answer). The error says in one line why the
/// object cannot be used. The error is text, because an agent of another release may send errors
/// that this release does not know.
pub type LookupResult<T> = Result<T, String>;

/// Why a definition or an IPAMClaim cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The API server or the folder of manifests has no object of this kind and name.
    #[error("no {0} {1} in {2}")]
    Missing(&'static str, String, Place),
    /// The API server's answer with the definition is longer than this limit, in bytes.
    #[error("NetworkAttachmentDefinition {0} has more than {1} bytes; make it smaller")]
    TooLong(ObjectRef, usize),
    /// The definition does not fit into the agent's answer, and the plugin's release is too old to
    /// accept definitions in separate messages.
    #[error(
        "NetworkAttachmentDefinition {0} does not fit into the answer (at most {1} bytes) for a \
         plugin of an older release; use the same release of plugin and agent"
    )]
    TooLongForPlugin(ObjectRef, usize),
    /// The pod and the node configuration together name more definitions than this limit.
    #[error(
        "NetworkAttachmentDefinition {0} was not looked up: the pod and the node configuration \
         together may name at most {1} definitions; shorten defaultNetworks"
    )]
    TooMany(ObjectRef, usize),
    /// The object is invalid.
    #[error(transparent)]
    Invalid(#[from] ManifestError),
    /// The object is not JSON of the expected shape.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// No object can have this name.
    #[error(transparent)]
    Name(#[from] ObjectRefError),
    /// A request to the API server failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The agent cannot encode the definition as a separate message to the plugin.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The agent is shutting down.
    #[error("the agent is shutting down")]
    Ending(#[from] tokio::sync::AcquireError),
}

/// Where objects are looked up.
#[derive(Debug, Clone)]
pub enum Place {
    /// The API server.
    ApiServer,
    /// A folder of manifests.
    Folder {
        /// The folder's path.
        path: PathBuf,
        /// The first unreadable manifest, if any. That manifest may contain the missing object.
        broken: Option<Arc<ManifestFileError>>,
    },
}

/// The place's name in messages.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::ApiServer => f.write_str("the cluster"),
            Place::Folder { path, broken } => {
                write!(f, "manifestDir {}", path.display())?;
                match broken {
                    Some(file) => write!(f, " (a file in it is unreadable: {file})"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_says_what_failed_and_what_to_do() {
        let object = || "a/n".parse().unwrap();
        let missing = |place| LookupError::Missing("IPAMClaim", "a/c".into(), place);
        let folder = Place::Folder {
            path: "/m".into(),
            broken: None,
        };
        for (error, line) in [
            (missing(Place::ApiServer), "no IPAMClaim a/c in the cluster"),
            (missing(folder), "no IPAMClaim a/c in manifestDir /m"),
            (
                LookupError::TooLong(object(), 7),
                "NetworkAttachmentDefinition a/n has more than 7 bytes; make it smaller",
            ),
            (
                LookupError::TooLongForPlugin(object(), 7),
                "NetworkAttachmentDefinition a/n does not fit into the answer (at most 7 bytes) \
                 for a plugin of an older release; use the same release of plugin and agent",
            ),
            (
                LookupError::TooMany(object(), 7),
                "NetworkAttachmentDefinition a/n was not looked up: the pod and the node \
                 configuration together may name at most 7 definitions; shorten defaultNetworks",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
