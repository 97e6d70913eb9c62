//! The fault matrix ([`table`]) on one node: after each cell comes what a runtime does, a DEL or a GC. Then links, addresses and routes in every network namespace,
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
//! Elsewhere are the columns of the API server and of the agent (`tests/api/matrix.rs`), and the faults
//! of the hardware (`hw-tests`).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends there")]
#![allow(
    clippy::disallowed_methods,
    reason = "the programs that the tests run end on their own, and their output is small"
)]

mod cell;
mod cells;
mod clean_up;
mod lab;
mod matrix;
mod node;
mod power;
mod steps;
#[path = "../matrix/table.rs"]
mod table;

use std::process::Command;

// clause: CNI-1.1.0 §2 DEL missing
// clause: CNI-1.1.0 §2 DEL again
#[test]
fn after_any_single_fault_a_del_or_a_gc_leaves_nothing() {
    let Some(counts) = matrix::run() else { return };
    for (story, least) in [("ADD", 40), ("DEL", 20), ("change", 60)] {
        let steps = counts[&(story, "KILL")].places;
        assert!(steps >= least, "{story} has {steps} steps only");
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
