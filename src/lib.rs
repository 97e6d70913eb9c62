//! Jackfield, a CNI delegating plugin that is aware of hardware.

pub mod cni;
pub mod delegate;
pub mod npwg;
