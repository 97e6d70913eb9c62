//! A whole node: real kubelet, containerd and runc, a device plugin on kubelet's socket, Jackfield
//! as its CNI plugin, installed by the DaemonSet of `deploy/` with its account and image.
//!
//! `scripts/test --only node` builds what is needed and runs this on a throw-away node. Control
//! plane and scheduler are started once; each test has a node, a namespace and a DaemonSet of its
//! own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test that cannot go on says so by failing, and may wait for what it calls"
)]

mod attach;
mod away;
mod deploy;
mod failures;
mod fleet;
mod lab;
mod neighbours;
mod restarts;
mod running;
mod shapes;
