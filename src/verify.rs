//! Intended against observed: what an attachment was to be, and what the kernel shows of it.
//!
//! ```text
//! Selection, CniResult, device ─▶ Intended ─┐
//!                                           ├─▶ judge ─▶ [Finding]
//! PodLinks ──observe (waits for DAD)──▶ Observed ─┘
//! ```
//!
//! Each attachment is judged before the next one is made, since a later one may enslave it, and
//! again on CHECK. Judging is a function without any I/O; what becomes of a finding, whether it
//! fails the attachment or is an event, is for the caller to say by its [`Weight`].

mod finding;
mod function;
mod hardware;
mod intended;
mod judge;
mod observed;

pub use finding::{Finding, Source, Weight, What};
pub use function::{IntendedFunction, plugins as sriov_plugins};
pub use intended::{Intended, Masters};
pub use judge::judge;
pub use observed::{Master, Observed, observe};
