//! Accesses the kernel through rtnetlink: the links, addresses and default routes of a pod's
//! network namespace, and the links of devices. A device's link is on the host or in a pod.
//!
//! ```text
//! PodNetns::open(path) ──▶ Netlink::in_netns ──▶ PodLinks: links, addresses, default routes
//! Netlink::here or Netlink::in_netns ──▶ DeviceLinks: links of devices, VF settings of a PF
//! ```
//!
//! `verify` and `operation` use the traits `PodLinks` and `DeviceLinks`.
//!
//! No other module enters a namespace or uses rtnetlink. A netlink socket stays in the namespace in
//! which it was opened. The calling thread therefore enters the pod's namespace only to open one
//! socket, and then returns to the host's namespace. All calls block, and every wait has a time
//! limit.

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
pub use error::{KernelError, NetlinkError};
pub use link::Link;
pub use namespaces::{
    ContainerNetns, PlacedDevice, container_namespaces, devices_in_all_namespaces, placed_devices,
};
pub use netlink::Netlink;
pub use netns::{NetnsError, NetnsId, PodNetns};
pub use pod_links::PodLinks;
pub use vf::{VfLinkState, VfRates, VfSetting, VfState, VfVlan, VlanProtocol};

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use netlink::default_routes_in;
