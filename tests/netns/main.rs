//! The real binary with the real CNI plugins in real network namespaces.
//!
//! Each test builds a [`lab::Lab`], a node with a cluster of its own, so tests run side by side.
//! They need root: `scripts/test --only netns` runs them on a throw-away node; plain
//! `cargo test --test netns` as root works too, since every lab takes away what it made.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by failing"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "what the tests call outside of the product needs no deadline"
)]

#[allow(dead_code, reason = "each behaviour uses its part of the lab")]
mod lab;
#[path = "../fakes/pod_resources.rs"]
mod pod_resources;
mod running;
mod sandbox;

mod administrator;
mod attach;
mod bad_call;
mod bad_definition;
mod bad_delegate;
mod bad_journal;
mod bad_netns;
mod bad_privileges;
mod bad_selection;
mod baseline;
mod check;
mod collect;
mod command_line;
mod compromised_agent;
mod concurrent;
mod containerd;
mod default_route;
mod detach;
mod devices;
mod environment;
mod every_verb;
mod explain;
mod foreign;
mod inventory;
mod kernel_links;
mod kernel_routes;
mod kubelet;
mod networks;
mod ourselves;
mod owed;
mod parameters;
mod races;
mod readiness;
mod reference_runtime;
mod requests;
mod setup;
mod status;
mod unwind;
mod upgrade;
mod uplink;
mod verification;
mod verify_attachment;
