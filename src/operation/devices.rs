//! The devices of attachments: which they are, who may have them, and that they go back as they
//! came.

pub(in crate::operation) mod functions;
pub(in crate::operation) mod hardware;
pub mod orphans;
pub mod reserve;
pub(in crate::operation) mod restore;
pub mod unrestored;

pub use hardware::{FunctionError, InfoFileError};
pub use restore::RestoreError;
