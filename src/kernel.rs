//! What the kernel shows of a pod's network namespace, and the default routes in it.
//!
//! ```text
//! PodNetns::open(path) ──▶ Netlink::in_netns ──▶ PodLinks: links, addresses, default routes
//!   checked, kept open      a socket in there      the seam that verification and operation use
//! ```
//!
//! The only module that enters a namespace or speaks rtnetlink. The namespace is entered on a
//! thread that opens one socket and ends: a netlink socket stays with the namespace it was made
//! in, so no other thread ever leaves the host's. All of it blocks, every wait is bounded, and
//! nothing is dumped that was not asked for.

mod address;
pub mod capabilities;
mod default_route;
mod error;
#[cfg(test)]
pub(crate) mod fake;
mod link;
mod netlink;
mod netns;
mod pod_links;

pub use address::Address;
pub use default_route::{DefaultRoute, Family, NextHop, RawAttribute};
pub use error::KernelError;
pub use link::Link;
pub use netlink::Netlink;
pub use netns::{NetnsError, NetnsId, PodNetns};
pub use pod_links::PodLinks;
