//! The table of the fault matrix: rows of what Jackfield does ([`stories`]), columns of what can go
//! wrong ([`faults`]), and a [cell](cell::Cell) for each place at which a fault can happen. A new
//! row or column is one entry.
//!
//! Two tests run the table. `tests/crash` runs the columns of the node. `tests/api/matrix.rs` runs
//! the columns of the API server and of the agent, with a real API server.

#![allow(dead_code, reason = "each test runs a part of the columns")]

pub(crate) mod call;
pub(crate) mod cell;
pub(crate) mod faults;
pub(crate) mod leftovers;
pub(crate) mod matrix;
pub(crate) mod stories;
pub(crate) mod syscalls;
pub(crate) mod wall_clock;
mod wanted;
