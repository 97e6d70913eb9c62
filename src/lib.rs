//! Jackfield, a CNI delegating plugin that is aware of hardware.

pub mod cni;
pub mod npwg;

pub mod kernel;
pub mod verify;
