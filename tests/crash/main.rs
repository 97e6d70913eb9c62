//! The fault matrix: rows of what Jackfield does ([`stories`]), columns of what can go wrong
//! ([`faults`]), and a cell for each place at which a fault can happen. After each cell comes what a
//! runtime does, a DEL or a GC. Then links, addresses and routes in every network namespace,
//! leases, files, processes and the journal must be as before.
//!
//! The places are not listed but found: `strace` records one run, and every system call in it that
//! changes something, or that marks a time in which a delegate works alone, is a step. The run is
//! then repeated once per step, and `strace` kills or stops the process there, or makes the system
//! call fail.
//!
//! Strace follows only Jackfield's main thread, and so it kills only Jackfield: the delegates go on
//! alone, as when the kernel is out of memory. The one other thread only opens a socket in the
//! pod's namespace.
//!
//! - `JACKFIELD_MATRIX=all` runs every cell instead of a sample.
//! - `JACKFIELD_SEED=7` repeats the sample with that seed.
//! - `JACKFIELD_CELL="ADD/ENOSPC/write-3"` runs one cell, and `JACKFIELD_CELL=ADD/ENOSPC` all of that
//!   story and fault.
//!
//! Elsewhere are the faults of the API server and of the agent (`tests/api/faults.rs`,
//! `tests/api/killed.rs`), and those of the hardware (`hw-tests`).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]
#![allow(
    clippy::disallowed_methods,
    reason = "the programs that the tests run end on their own, and their output is small"
)]

mod call;
mod cell;
mod cells;
mod clean_up;
mod faults;
mod lab;
mod leftovers;
mod matrix;
mod node;
mod power;
mod steps;
mod stories;
mod syscalls;
mod table;
mod wanted;

use std::io::Write;
use std::process::Command;

/// Prints a line even if the test runner captures the output of tests.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "fault matrix: {line}");
}

// clause: CNI-1.1.0 §2 DEL missing
// clause: CNI-1.1.0 §2 DEL again
#[test]
fn after_any_single_fault_a_del_or_a_gc_leaves_nothing() {
    let Some(counts) = matrix::run() else { return };
    for (story, least) in [("ADD", 40), ("DEL", 20), ("change", 60)] {
        let killed = counts[&(story, "KILL")].run;
        assert!(killed >= least, "{story} was killed at {killed} steps only");
    }
}

#[test]
fn the_tools_are_there() {
    for (tool, package) in [("strace", "strace"), ("ip", "iproute2")] {
        let found = Command::new(tool).arg("-V").output();
        assert!(
            found.is_ok(),
            "{tool} is missing: apt-get install {package}"
        );
    }
}
