//! Verification: compares an attachment as intended with the attachment in the kernel.
//!
//! ```text
//! Selection, CniResult, device ─▶ Intended ─┐
//!                                           ├─▶ judge ─▶ [Finding]
//! PodLinks ──observe (waits for DAD)──▶ Observed ─┘
//! ```
//!
//! Each attachment is judged before the next one is made, because a later one may enslave its
//! interface, and again on CHECK. The judgement does no I/O. The caller decides by a finding's
//! [`Weight`] whether it fails the attachment or becomes an event.

mod finding;
mod function;
mod hardware;
mod intended;
mod judge;
mod observed;

pub use finding::{Finding, HiddenFunction, Mismatch, Source, Weight};
pub use function::{FunctionConfigError, IntendedFunction, plugins as sriov_plugins};
pub use intended::{Intended, Masters};
pub use judge::judge;
pub use observed::{Master, Observed, observe};
