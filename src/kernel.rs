//! What the kernel shows of a pod's network namespace, the default routes in it, and the links of
//! devices on the host.
//!
//! ```text
//! PodNetns::open(path) ──▶ Netlink::in_netns ──▶ PodLinks: links, addresses, default routes
//!   checked, kept open      a socket in there      the seam that verification and operation use
//!              Netlink::here ──▶ DeviceLinks: physical functions, what they say of virtual ones
//! ```
//!
//! The only module that enters a namespace or speaks rtnetlink. The namespace is entered on a
//! thread that opens one socket and ends: a netlink socket stays with the namespace it was made
//! in, so no other thread ever leaves the host's. All of it blocks, every wait is bounded, and
//! nothing is dumped that was not asked for.

mod address;
pub mod capabilities;
mod default_route;
mod device_links;
mod error;
#[cfg(test)]
pub(crate) mod fake;
mod link;
mod namespaces;
mod netlink;
mod netns;
mod pod_links;
mod vf;

pub use address::Address;
pub use default_route::{DefaultRoute, Family, NextHop, RawAttribute};
pub use device_links::{DeviceLinks, LinkChange};
pub use error::KernelError;
pub use link::Link;
pub use namespaces::{
    ContainerNetns, PlacedDevice, container_namespaces, devices_in_all_namespaces, placed_devices,
};
pub use netlink::Netlink;
pub use netns::{NetnsError, NetnsId, PodNetns};
pub use pod_links::PodLinks;
pub use vf::{VfLinkState, VfRates, VfSetting, VfState, VfVlan, VlanProtocol};

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use netlink::understood;
