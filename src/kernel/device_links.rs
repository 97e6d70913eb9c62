//! Access to the links of devices, on the host or in a pod.

use super::{KernelError, Link, VfSetting, VfState};

/// Reads and changes the links of devices in one network namespace.
///
/// [`Netlink`](super::Netlink) implements this trait on the real kernel. As in
/// [`PodLinks`](super::PodLinks), every method blocks, and each implementation limits the wait.
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

    /// Returns the states of all virtual functions of a physical function. `physical` is the index
    /// of the physical function's link.
    ///
    /// This method sends one request. The kernel needs 0.1 to 2 ms for each VF and blocks changes
    /// to all links during that time. The list is empty if the link has no VFs or its driver
    /// reports none.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn virtual_functions(&mut self, physical: u32) -> Result<Vec<VfState>, KernelError>;

    /// Changes one setting of virtual function number `vf`. `physical` is the index of the physical
    /// function's link.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel does not answer or refuses, for example because the driver
    /// does not support the change.
    fn set_virtual_function(
        &mut self,
        physical: u32,
        vf: u32,
        setting: VfSetting,
    ) -> Result<(), KernelError>;

    /// Changes the link with this index.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel does not answer or refuses, for example because the driver
    /// does not support the change.
    fn change_link(&mut self, index: u32, change: &LinkChange) -> Result<(), KernelError>;

    /// Returns the names of the interfaces that the IPv4 and IPv6 default routes use.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn uplinks(&mut self) -> Result<Vec<String>, KernelError>;

    /// Returns the indices of the links that have an address with global or site scope. Other hosts
    /// reach this namespace by these addresses.
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
    /// Sets the link down. The kernel or the driver may refuse to change the name, the hardware
    /// address or the MTU of a link that is up.
    Down,
    /// Renames the link.
    Name(String),
    /// Sets the hardware address.
    Address(Vec<u8>),
    /// Sets the MTU, in octets.
    Mtu(u32),
    /// Moves the link to the network namespace of this process, and gives the link this name.
    Home(String),
}
