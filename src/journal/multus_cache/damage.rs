//! What can be wrong with the cache of Multus.

use std::io;
use std::path::PathBuf;

use crate::cni::json::JsonError;
use crate::cni::{NameError, NetworkConfigError};

/// A file of the cache that cannot be read, or cannot be read in full.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct CacheDamage {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub cause: CacheError,
}

/// Why a part of the cache cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The file cannot be read, or is too large.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The text is not unambiguous JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A key has another type.
    #[error(transparent)]
    Type(#[from] serde_json::Error),
    /// A configuration is not Base64.
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    /// A configuration is invalid.
    #[error(transparent)]
    Config(#[from] NetworkConfigError),
    /// The name of a network or of an interface is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A delegate has no configuration.
    #[error("it has no configuration")]
    NoConfig,
    /// A delegate is null.
    #[error("it is null")]
    Null,
    /// A delegate cannot be read, by its number from 1.
    #[error("delegate {0}: {1}")]
    Delegate(usize, #[source] Box<CacheError>),
}
