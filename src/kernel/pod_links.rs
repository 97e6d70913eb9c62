//! Access to links, addresses and default routes of a network namespace.

use crate::cni::InterfaceName;

use super::{Address, DefaultRoute, KernelError, Link};

/// The links, addresses and default routes of one network namespace.
///
/// [`Netlink`](super::Netlink) implements this trait on the real kernel. Every method blocks, for
/// no longer than the implementation's bound, and takes `&mut self` because one socket carries one
/// request at a time.
pub trait PodLinks {
    /// Returns all links, in the kernel's order.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn links(&mut self) -> Result<Vec<Link>, KernelError>;

    /// Returns the link that the kernel finds by this name, or [`None`].
    ///
    /// The kernel also finds a link by its alternative names, so [`Link::name`] may differ. Both
    /// names are taken for a caller that needs a free name. A caller that needs the interface
    /// itself must compare [`Link::name`].
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn link(&mut self, name: &InterfaceName) -> Result<Option<Link>, KernelError>;

    /// Returns the link with this index, or [`None`].
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError>;

    /// Returns the IPv4 and IPv6 addresses of the link with this index.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn addresses(&mut self, index: u32) -> Result<Vec<Address>, KernelError>;

    /// Returns the IPv4 and IPv6 default routes of the main table, in the kernel's order.
    ///
    /// Other tables belong to policy routing, which NPWG 1.3 §4.1.2.1.9 does not cover. Routes of
    /// type `unreachable` or `blackhole` have no gateway and are left out.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn default_routes(&mut self) -> Result<Vec<DefaultRoute>, KernelError>;

    /// Adds a default route behind existing ones of the same metric.
    ///
    /// Succeeds if the same route exists already, so that a caller can repeat the step.
    ///
    /// # Errors
    /// [`KernelError::NoInterface`] if the route's interface is missing, [`KernelError::Refused`]
    /// if the gateway is out of reach, or another [`KernelError`].
    fn add_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError>;

    /// Removes exactly this default route.
    ///
    /// Succeeds if the route or its interface is missing already.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn remove_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError>;
}
