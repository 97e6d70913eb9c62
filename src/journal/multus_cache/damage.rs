//! Unreadable parts of the cache of Multus.

use std::io;
use std::path::PathBuf;

use crate::cni::json::JsonError;
use crate::cni::{NameError, NetworkConfigError};

/// A file in the cache that cannot be read completely.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct CacheDamage {
    /// The file.
    pub path: PathBuf,
    /// Why the file cannot be read completely.
    #[source]
    pub cause: CacheError,
}

/// Why a part of the cache cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The file cannot be read, or is too large.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is empty, is not UTF-8, or nests too deeply. The configuration of a plugin in a
    /// configuration list may have the same faults, repeat a key, or not be a JSON object.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The file has a JSON syntax error, or the value of a key has the wrong type.
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
    /// A delegate or a cached result has no configuration.
    #[error("it has no configuration")]
    NoConfig,
    /// A delegate is `null`.
    #[error("it is null")]
    Null,
    /// The delegate with this number cannot be read. The numbers begin at 1.
    #[error("delegate {0}: {1}")]
    Delegate(usize, #[source] Box<CacheError>),
}
