//! Jackfield, a hardware-aware CNI delegating plugin.
//!
//! A pod requests networks in addition to the cluster network. Jackfield finds the definitions of
//! these networks and runs other CNI plugins, which attach the pod to one network after another.
//! Jackfield verifies the attachments over netlink and reports them.
//!
//! ```text
//! runtime ──env+stdin──▶ request ──▶ cluster ──▶ npwg ──▶ allocation ──▶ plan
//!                                                          │ journal (before the first delegate)
//! runtime ◀──one JSON── result ◀── publish ◀── npwg::status ◀── verify ◀── delegate (serial)
//! ```
//!
//! The list of modules below begins with the shared modules and the protocols, and then follows
//! this flow. Each module imports only modules that come earlier in the list.
//! `tests/documents/imports.rs` checks these imports.

// The shared modules.
mod machine;

mod boot;
mod bounded;
mod clock;
mod console;
#[cfg(test)]
mod cost;
pub mod diagnostic;
mod disk;
#[cfg(test)]
mod golden;
mod regular_file;

mod private_dir;

// The protocols, without I/O.
pub mod cni;
pub mod npwg;

// The runtime's request, the state of the node and the cluster, and the plan made from them.
pub mod request;

pub mod kubelet;

pub mod cluster;

pub mod allocation;

pub mod plan;

// The modules that carry out the plan and verify the outcome.
pub mod kernel;

pub mod baseline;

pub mod journal;

pub mod delegate;

pub mod verify;

// The CNI verbs, and the programs that run them.
pub mod operation;

pub mod plugin;

pub mod agent;

pub mod setup;

pub mod cli;

// Gives the fuzzer access to the parsers of files and messages.
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
