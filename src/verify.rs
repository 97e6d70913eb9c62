//! Verification: compares an attachment as intended with the attachment in the kernel.
//!
//! ```text
//! Selection, CniResult, device ─▶ Intended ─┐
//!                                           ├─▶ judge ─▶ [Finding]
//! PodLinks ──observe (waits for DAD)──▶ Observed ─┘
//! ```
//!
//! ADD judges each attachment before it makes the next one. A later attachment, such as a bond, may
//! enslave the interface of an earlier attachment and change the addresses of that interface. CHECK
//! judges each attachment again, and accepts such changes. [`judge()`] does no I/O. The [`Weight`]
//! of a finding and the configured strictness decide whether the finding fails the attachment,
//! becomes an event or is ignored.

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
pub use observed::{Observed, observe};
