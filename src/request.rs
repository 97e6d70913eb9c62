//! The runtime's request: environment and stdin become a [`Request`].
//!
//! ```text
//! CNI_* variables ──▶ Call   (verb, container, netns, interface, CNI_ARGS, CNI_PATH)
//! stdin ────────────▶ NodeConfig + the keys of one call (prevResult, runtimeConfig, …)
//! ```
//!
//! This module checks all values before a verb runs. The checks have the same order as in the
//! package `skel` of CNI's reference library.

pub mod call;
pub mod deadlines;
pub mod log;
pub mod node_config;
pub mod policy;
pub mod stdin;

pub use call::{Call, EnvironmentError};
pub use deadlines::Deadlines;
pub use node_config::{
    ClusterNetwork, NodeConfig, NodeConfigError, Source, Strictness, Undeclared, ValueError,
    version,
};
pub use policy::{Policy, Rule, RuleName};
pub use stdin::{StdinError, read_stdin};

use crate::cni::{self, RawObject};

/// One call of the runtime, parsed and checked.
#[derive(Debug)]
pub struct Request {
    /// The environment.
    pub call: Call,
    /// The node configuration from stdin.
    pub config: NodeConfig,
    /// The JSON object from stdin. It also contains the keys of one call: `prevResult`,
    /// `runtimeConfig`, and the attachments that GC must keep.
    pub stdin: RawObject,
}

impl Request {
    /// Combines environment and configuration.
    ///
    /// # Errors
    /// The errors of [`Request::for_people`]. Also code 1 if no CNI version in the configuration
    /// defines the verb (CNI 1.1.0 §5 Error).
    pub fn new(call: Call, stdin: RawObject) -> Result<Request, RequestError> {
        let request = Request::for_people(call, stdin)?;
        let (_, highest) = node_config::versions(&request.stdin)?;
        request.call.require_version(highest)?;
        Ok(request)
    }

    /// Like [`Request::new`], but accepts every verb with every CNI version. Jackfield's own
    /// commands call this function.
    ///
    /// # Errors
    /// As [`Call::attachment`] and [`NodeConfig::parse`].
    pub fn for_people(call: Call, stdin: RawObject) -> Result<Request, RequestError> {
        let config = NodeConfig::parse(&stdin)?;
        if call.verb.has_attachment() {
            call.attachment()?;
        }
        Ok(Request {
            call,
            config,
            stdin,
        })
    }
}

/// Why a call of the runtime is invalid.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The environment is invalid.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The configuration is not a JSON object.
    #[error("stdin: {0}; the runtime must pass one JSON object")]
    Decode(#[source] cni::JsonError),
    /// A key of the configuration occurs twice.
    #[error("node configuration: {0}")]
    Ambiguous(#[source] cni::JsonError),
    /// The configuration cannot be read from stdin.
    #[error(transparent)]
    Stdin(#[from] StdinError),
    /// The node configuration is invalid.
    #[error(transparent)]
    Config(#[from] NodeConfigError),
}

impl RequestError {
    /// Converts a JSON error of stdin to a request error.
    pub fn of_stdin(error: cni::JsonError) -> RequestError {
        match error {
            ambiguous @ cni::JsonError::Ambiguous { .. } => RequestError::Ambiguous(ambiguous),
            other => RequestError::Decode(other),
        }
    }

    /// Returns the CNI code (CNI 1.1.0 §5 Error).
    pub fn code(&self) -> u32 {
        match self {
            RequestError::Environment(error) => error.code(),
            RequestError::Decode(_) => cni::code::DECODING_FAILURE,
            RequestError::Ambiguous(_) => cni::code::INVALID_NETWORK_CONFIG,
            RequestError::Stdin(_) => cni::code::IO_FAILURE,
            RequestError::Config(error) => error.code(),
        }
    }
}
