//! The devices of attachments. These modules check that a device can be used, reserve it for one
//! sandbox, and restore it after the sandbox is detached.

pub(in crate::operation) mod functions;
pub(in crate::operation) mod hardware;
pub mod orphans;
mod problem;
pub mod reserve;
pub(in crate::operation) mod restore;
pub mod unrestored;

pub use hardware::{FunctionError, InfoFileError};
pub use restore::RestoreError;
