//! Access to the links of devices on the host.

use super::{KernelError, Link, VfSetting, VfState};

/// The links of devices in one network namespace, and the changes that can be made to them.
///
/// [`Netlink`](super::Netlink) implements this trait on the real kernel. As with
/// [`PodLinks`](super::PodLinks), every method blocks, for no longer than the implementation's
/// bound.
pub trait DeviceLinks {
    /// Returns the link with this name or alternative name.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn device_link(&mut self, name: &str) -> Result<Option<Link>, KernelError>;

    /// Returns the link with this index.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn device_link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError>;

    /// Returns all links.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn device_links(&mut self) -> Result<Vec<Link>, KernelError>;

    /// Returns the state of every virtual function of the physical function with this index.
    ///
    /// This takes one request. The kernel needs 0.1 to 2 ms for each VF and blocks changes to all
    /// other links meanwhile. The list is empty if the link has no VFs or its driver reports none.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn virtual_functions(&mut self, physical: u32) -> Result<Vec<VfState>, KernelError>;

    /// Changes one setting of virtual function `vf` of the physical function with this index.
    ///
    /// # Errors
    /// [`KernelError::Refused`] if the driver does not support the change, or another
    /// [`KernelError`].
    fn set_virtual_function(
        &mut self,
        physical: u32,
        vf: u32,
        setting: VfSetting,
    ) -> Result<(), KernelError>;

    /// Changes the link with this index.
    ///
    /// # Errors
    /// [`KernelError::Refused`] if the kernel or the driver does not support the change, or another
    /// [`KernelError`].
    fn change_link(&mut self, index: u32, change: &LinkChange) -> Result<(), KernelError>;

    /// Returns the names of the interfaces of this namespace's default routes, IPv4 and IPv6.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn uplinks(&mut self) -> Result<Vec<String>, KernelError>;

    /// Returns the indices of the links that have an address by which other hosts reach this
    /// namespace. The scope of such an address is wider than link or host.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn addressed(&mut self) -> Result<Vec<u32>, KernelError>;
}

/// One change of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// Sets the link up.
    Up,
    /// Sets the link down. Some other changes need this first.
    Down,
    /// Renames it.
    Name(String),
    /// Sets its hardware address.
    Address(Vec<u8>),
    /// Sets its MTU, in octets.
    Mtu(u32),
    /// Moves it from its namespace to this process's namespace, under this name.
    Home(String),
}
