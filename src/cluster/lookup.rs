//! Looking up a definition or a claim, and why it cannot be used.

mod words;

use std::path::PathBuf;
use std::sync::Arc;

use super::ApiError;
use super::frame::FrameError;
use super::manifests::ManifestFileError;
use crate::diagnostic;
use crate::npwg::{ManifestError, ObjectRef, ObjectRefError};

/// A definition or a claim in an [`Answer`](super::Answer), or the line that says why it cannot be
/// used. An answer may come from an agent of another release, so the line is text.
pub type LookupResult<T> = Result<T, String>;

/// Why a definition or a claim cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum LookupError {
    /// There is no such object.
    Missing {
        /// Its kind.
        kind: &'static str,
        /// Namespace and name.
        object: String,
        /// Where it was looked up.
        place: Place,
    },
    /// The definition is longer than anything that is read.
    TooLong {
        /// The definition.
        object: ObjectRef,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The definition is longer than a plugin of an older release takes.
    TooLongForPlugin {
        /// The definition.
        object: ObjectRef,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The pod names more definitions than are looked up.
    TooMany {
        /// The definition.
        object: ObjectRef,
        /// The limit.
        limit: usize,
    },
    /// The object is invalid.
    Invalid(#[from] ManifestError),
    /// The object is not JSON of the expected shape.
    Json(#[from] serde_json::Error),
    /// No object can have such a name.
    Name(#[from] ObjectRefError),
    /// A request to the API server failed.
    Api(#[from] ApiError),
    /// The definition does not fit into a message.
    Frame(#[from] FrameError),
    /// The agent ends.
    Ending(#[from] tokio::sync::AcquireError),
}

/// Where objects are looked up.
#[derive(Debug, Clone)]
pub enum Place {
    /// The API server.
    ApiServer,
    /// A folder of manifests.
    Folder {
        /// Its path.
        path: PathBuf,
        /// The first manifest in it that cannot be read, where there is one: it may be the object.
        broken: Option<Arc<ManifestFileError>>,
    },
}
