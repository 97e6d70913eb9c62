//! The plugin and its agent against a real API server, with the manifests of `deploy/`.
//!
//! Everything runs on a node of its own (`scripts/test --only api`): etcd and kube-apiserver are
//! started once, each test has a namespace, a node name, a network namespace and an agent of its
//! own, and a proxy between that agent and the API server on which faults are put.
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
mod claim_status;
mod definitions;
mod devices;
mod doctor;
mod faults;
mod foreign_pods;
mod identity;
mod installation;
mod killed;
mod lab;
mod matrix;
mod migrate;
mod monitoring;
mod observe;
mod overlays;
#[path = "../fakes/pod_resources.rs"]
mod pod_resources;
mod publish;
mod rights;
mod running;
mod silent;
mod soak;
mod socket;
mod spread;
#[path = "../matrix/table.rs"]
mod table;
mod versions;
