//! The CNI protocol without any I/O: the messages between a runtime and a plugin.
//!
//! ```text
//! bytes ─▶ json::RawObject ─▶ NetworkConfig ─▶ PluginConfig ──request──▶ stdin of a delegate
//!                                                   ▲                          │
//!                                               CniResult ◀──── its stdout ────┘
//! ```
//!
//! For the container runtime, Jackfield is a plugin. For the delegates, Jackfield is a runtime.
//! This module serves both roles. It keeps the values of a configuration as text, and passes this
//! text on unchanged (CNI 1.1.0 §1 "The runtime MUST pass through these fields, unchanged"). Like
//! Go's `encoding/json`, this module ignores the case of keys and treats `null` as absent.

pub mod args;
pub mod code;
pub mod error;
pub mod invocation;
pub mod json;
pub mod names;
pub mod network_config;
pub mod plugin_config;
pub mod result;
pub mod verb;
pub mod version;

pub use args::{ArgsError, CniArgs};
pub use error::Error;
pub use invocation::{CapabilityArgs, Invocation, InvocationError, ValidAttachment};
pub use json::{InvalidValue, JsonError, ParserError, RawObject};
pub use names::{ContainerId, InterfaceName, NameError, NetworkName, PluginType};
pub use network_config::{NetworkConfig, NetworkConfigError};
pub use plugin_config::{PluginConfig, PluginConfigError};
pub use result::{CniResult, Dns, Interface, IpConfig, ResultError, Route};
pub use verb::Verb;
pub use version::{Version, VersionError};
