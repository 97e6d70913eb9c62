//! What the runtime asks: environment and stdin become a [`Request`] and a [`NodeConfig`].
//!
//! ```text
//! CNI_* variables ──▶ Call   (verb, container, netns, interface, CNI_ARGS, CNI_PATH)
//! stdin ────────────▶ NodeConfig + what travels with one call (prevResult, runtimeConfig, …)
//! ```
//!
//! Everything is checked here, in the order of the reference skeleton, before anything is done:
//! past this module there are no strings left that nobody has looked at.

pub mod call;
pub mod deadlines;
pub mod log;
pub mod node_config;
pub mod policy;
pub mod stdin;

pub use call::{Call, EnvironmentError};
pub use deadlines::Deadlines;
pub use node_config::{
    ClusterNetwork, NodeConfig, NodeConfigError, Source, Strictness, Undeclared, version,
};
pub use policy::{Policy, Rule};
pub use stdin::{StdinError, read_stdin};

use crate::cni;
use crate::cni::RawObject;

/// One call of the runtime, understood and checked.
#[derive(Debug)]
pub struct Request {
    /// What the environment said.
    pub call: Call,
    /// What the configuration on stdin said.
    pub config: NodeConfig,
    /// The configuration as it came: `prevResult`, `runtimeConfig` and the attachments that GC
    /// keeps are read from it when a verb needs them.
    pub stdin: RawObject,
}

impl Request {
    /// Puts environment and configuration together.
    ///
    /// # Errors
    /// As [`Call::read`] and [`NodeConfig::parse`]: codes 1, 4, 5, 6, 7 of CNI 1.1.0 §2 Errors.
    pub fn new(call: Call, stdin: RawObject) -> Result<Request, RequestError> {
        let request = Request::for_people(call, stdin)?;
        let highest = node_config::highest_version(&request.stdin)?;
        request.call.require_version(highest)?;
        Ok(request)
    }

    /// The same for a call that no runtime makes: people may use every verb, whatever version the
    /// configuration is in.
    ///
    /// # Errors
    /// As [`Request::new`], but for the version.
    pub fn for_people(call: Call, stdin: RawObject) -> Result<Request, RequestError> {
        let config = NodeConfig::parse(&stdin)?;
        call.require_attachment()?;
        Ok(Request {
            call,
            config,
            stdin,
        })
    }
}

/// Why a call was not understood.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The environment is wrong.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The configuration is no JSON object.
    #[error("stdin: {0}; the runtime must hand over one JSON object")]
    Decode(#[source] cni::JsonError),
    /// The configuration has a key twice.
    #[error("node configuration: {0}")]
    Ambiguous(#[source] cni::JsonError),
    /// The configuration could not be read.
    #[error(transparent)]
    Stdin(#[from] StdinError),
    /// The configuration has a wrong value.
    #[error(transparent)]
    Config(#[from] NodeConfigError),
}

impl RequestError {
    /// The error of what came on stdin.
    pub fn of_stdin(error: cni::JsonError) -> RequestError {
        match error {
            ambiguous @ cni::JsonError::Ambiguous { .. } => RequestError::Ambiguous(ambiguous),
            other => RequestError::Decode(other),
        }
    }

    /// The CNI code (CNI 1.1.0 §5 Error).
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
