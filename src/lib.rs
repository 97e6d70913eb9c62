//! Jackfield, a CNI delegating plugin that is aware of hardware.
//!
//! A pod asks for networks besides the cluster's own; Jackfield finds their definitions, has other
//! CNI plugins attach them one by one, proves over netlink what came of it, and tells it.
//!
//! ```text
//! runtime ──env+stdin──▶ request ──▶ cluster ──▶ npwg ──▶ allocation ──▶ plan
//!                                                          │ journal (before the first delegate)
//! runtime ◀──one JSON── result ◀── publish ◀── npwg::status ◀── verify ◀── delegate (serial)
//! ```
//!
//! The modules stand in the order of that flow; each uses those above it.

mod console;

// What is said to people.
pub mod diagnostic;

#[cfg(test)]
mod cost;

// The words that everybody speaks: pure.
pub mod cni;
pub mod npwg;

// What is asked, what is known, what is to be done.
pub mod request;

pub mod kubelet;

mod boot;
mod bounded;
mod regular_file;

pub mod cluster;
mod private_dir;

pub mod allocation;

pub mod plan;

// What does it, and proves it.
pub mod kernel;

pub mod baseline;

pub mod journal;

pub mod delegate;

pub mod verify;

// The verbs, and who calls them.
pub mod operation;

pub mod plugin;

pub mod agent;

pub mod setup;

pub mod cli;

// What of all this reads what others write: for the fuzzer and its corpus.
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
