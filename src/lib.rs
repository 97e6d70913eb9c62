//! Jackfield, a CNI delegating plugin that is aware of hardware.
//!
//! A pod asks for networks besides the cluster's own; Jackfield finds their definitions, has other
//! CNI plugins attach them one by one, proves over netlink what came of it, and tells it.
//!
//! ```text
//! runtime ──env+stdin──▶ request ──▶ cluster ──▶ npwg ──▶ plan
//!                                                          │ journal (before the first delegate)
//! runtime ◀──one JSON── result ◀── publish ◀── npwg::status ◀── verify ◀── delegate (serial)
//! ```
//!
//! The modules stand in the order of that flow; each uses those above it. `cni`, `npwg` and `plan`
//! are pure; I/O is in the others.

pub mod agent;
pub mod cli;
pub mod cluster;
pub mod cni;
pub mod delegate;
pub mod journal;
pub mod kernel;
pub mod npwg;
pub mod operation;
pub mod plan;
pub mod plugin;
pub mod request;
pub mod verify;
