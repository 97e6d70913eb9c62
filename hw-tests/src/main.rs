//! `hw-tests` checks Jackfield's hardware layer against devices that a real kernel drives.
//!
//! ```text
//! options ─▶ selection of cases ─┬─▶ lab ──9p──▶ guest ─▶ suite ─┐
//!                                └─▶ bare_metal ────────▶ suite ─┴─▶ report
//! ```
//!
//! One static binary has both halves. On the host it boots a virtual machine with itself in a
//! shared folder. In the guest it runs the cases and writes a line of JSON for each. On bare metal
//! the same suite runs without the machine in between. Under the name of one of its CNI plugins the
//! binary is that plugin.

#![allow(
    clippy::disallowed_methods,
    reason = "a tool for developers, which prints its own reports"
)]

use std::process::ExitCode;

mod options;

mod feature;

mod case;
mod node;

mod rig;

mod delegate;

mod cases;
mod normal;
mod probe;
mod shared_vfs;
mod suite;
mod traces;

mod bare_metal;
mod guest;
mod lab;
mod report;

fn main() -> ExitCode {
    delegate::run().unwrap_or_else(options::run)
}
