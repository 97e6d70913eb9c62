//! The seam between what the kernel shows and those who judge it or change it.

use crate::cni::InterfaceName;

use super::{Address, DefaultRoute, KernelError, Link};

/// The links, addresses and default routes of one network namespace.
///
/// [`Netlink`](super::Netlink) is the kernel itself. All methods block, none for longer than the
/// implementation's bound; they take `&mut self` because one socket carries one question at a
/// time.
pub trait PodLinks {
    /// Every link, in the kernel's order.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn links(&mut self) -> Result<Vec<Link>, KernelError>;

    /// The link that the kernel finds by this name, [`None`] when there is none.
    ///
    /// The kernel also finds a link by an alternative name, so [`Link::name`] may be another:
    /// for whoever looks for a free name both are taken, for whoever looks for an interface only
    /// the one that bears it is right.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn link(&mut self, name: &InterfaceName) -> Result<Option<Link>, KernelError>;

    /// The link of this index, [`None`] when there is none.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError>;

    /// The addresses of both families on the link of this index.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn addresses(&mut self, index: u32) -> Result<Vec<Address>, KernelError>;

    /// The default routes of both families in the main table, in the kernel's order.
    ///
    /// Other tables belong to policy routing, which NPWG 1.3 §4.1.2.1.9 does not speak of; nor
    /// are routes that refuse (`unreachable`, `blackhole`) anybody's gateway.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn default_routes(&mut self) -> Result<Vec<DefaultRoute>, KernelError>;

    /// Adds a default route, behind those that are there with the same metric.
    ///
    /// The very same route being there already is success: a step may be made again.
    ///
    /// # Errors
    /// [`KernelError::NoInterface`] when its interface is gone, [`KernelError::Refused`] when the
    /// gateway is out of reach, and as the others.
    fn add_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError>;

    /// Removes exactly this default route.
    ///
    /// Its being gone already, with its interface or without, is success.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn remove_default_route(&mut self, route: &DefaultRoute) -> Result<(), KernelError>;
}
