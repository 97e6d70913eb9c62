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
//! The modules stand in the order of that flow. Each imports only those above it, which a test checks
//! (`tests/documents/imports.rs`).

// What every module may use.
mod boot;
mod bounded;
mod console;
#[cfg(test)]
mod cost;
pub mod diagnostic;
#[cfg(test)]
mod golden;
mod regular_file;

mod private_dir;

// The protocols: pure.
pub mod cni;
pub mod npwg;

// What the runtime asks, what the node and the cluster know, and the plan that follows.
pub mod request;

pub mod kubelet;

pub mod cluster;

pub mod allocation;

pub mod plan;

// What carries the plan out, and proves it.
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

// The parsers of what others write, for the fuzzer and its corpus.
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
