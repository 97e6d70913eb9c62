//! Access to links, addresses and default routes of a network namespace.

use crate::cni::InterfaceName;

use super::{Address, DefaultRoute, KernelError, Link};

/// The links, addresses and default routes of one network namespace.
///
/// [`Netlink`](super::Netlink) implements this trait on the real kernel. Every method blocks, and
/// each implementation limits the wait. Methods take `&mut self` because one socket carries one
/// request at a time.
pub trait PodLinks {
    /// Returns all links, in the kernel's order.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn links(&mut self) -> Result<Vec<Link>, KernelError>;

    /// Returns the link with this name or alternative name, or [`None`].
    ///
    /// If `name` is an alternative name, the [`Link::name`] of the returned link differs from
    /// `name`. A caller that looks for a free name must treat alternative names as taken. A caller
    /// that accepts no alternative name must compare [`Link::name`] with `name`.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn link(&mut self, name: &InterfaceName) -> Result<Option<Link>, KernelError>;

    /// Returns the link with this index, or [`None`].
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError>;

    /// Returns the IPv4 and IPv6 addresses of the link with this index; none if the link does not
    /// exist.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn addresses(&mut self, index: u32) -> Result<Vec<Address>, KernelError>;

    /// Returns the IPv4 and IPv6 default routes of the main table, in the kernel's order.
    ///
    /// Omits the tables of policy routing, because NPWG 1.3 §4.1.2.1.9 does not cover policy
    /// routing. Omits routes that are not unicast, such as `unreachable` and `blackhole`, because
    /// they have no next hop.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn default_routes(&mut self) -> Result<Vec<DefaultRoute>, KernelError>;

    /// Adds a default route. Existing routes with the same metric take precedence over the new
    /// route.
    ///
    /// Succeeds if the same route exists already, so that a caller can repeat the call.
    ///
    /// # Errors
    /// - [`KernelError::NoInterface`] if the route's interface is missing.
    /// - [`KernelError::NoNextHop`] if the route has neither a gateway nor an interface.
    /// - [`KernelError`] when the kernel does not answer or refuses, for example because the
    ///   gateway is unreachable.
    fn add_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError>;

    /// Removes exactly this default route.
    ///
    /// Succeeds if the route or its interface does not exist.
    ///
    /// # Errors
    /// [`KernelError::NoNextHop`] if the route has neither a gateway nor an interface.
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn remove_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError>;
}
