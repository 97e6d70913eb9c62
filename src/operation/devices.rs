//! The devices of attachments: which device an attachment uses, which sandbox may take it, and its
//! restoration afterwards.

pub(in crate::operation) mod functions;
pub(in crate::operation) mod hardware;
pub mod orphans;
mod problem;
pub mod reserve;
pub(in crate::operation) mod restore;
pub mod unrestored;

pub use hardware::{FunctionError, InfoFileError};
pub use restore::RestoreError;
