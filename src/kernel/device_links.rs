//! The seam to the links of devices: the host's side of what pods get.

use super::{KernelError, Link, VfSetting, VfState};

/// The links that devices have in one network namespace, and what can be set of them.
///
/// [`Netlink`](super::Netlink) is the kernel itself. As with [`PodLinks`](super::PodLinks), all
/// methods block, and none for longer than the implementation's bound.
pub trait DeviceLinks {
    /// The link that bears this name, or has it as an alternative one.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn device_link(&mut self, name: &str) -> Result<Option<Link>, KernelError>;

    /// The link of this index.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn device_link_at(&mut self, index: u32) -> Result<Option<Link>, KernelError>;

    /// Every link.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn device_links(&mut self) -> Result<Vec<Link>, KernelError>;

    /// What the physical function of this index says of its virtual functions, by one question:
    /// 0.1 to 2 ms for each of them, in which the kernel changes no other link. Nothing where it
    /// has none, or has a driver that says nothing.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn virtual_functions(&mut self, physical: u32) -> Result<Vec<VfState>, KernelError>;

    /// Sets one thing of the virtual function `vf` of the physical function of this index.
    ///
    /// # Errors
    /// [`KernelError::Refused`] where the driver cannot do it, and as the others.
    fn set_virtual_function(
        &mut self,
        physical: u32,
        vf: u32,
        setting: VfSetting,
    ) -> Result<(), KernelError>;

    /// Changes the link of this index.
    ///
    /// # Errors
    /// [`KernelError::Refused`] where the kernel or the driver cannot do it, and as the others.
    fn change_link(&mut self, index: u32, change: &LinkChange) -> Result<(), KernelError>;

    /// The names of the interfaces that this namespace's default routes leave by, of both families.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn uplinks(&mut self) -> Result<Vec<String>, KernelError>;

    /// The indices of the links that have an address by which others reach this namespace: one of
    /// more than the link's or the host's own scope.
    ///
    /// # Errors
    /// [`KernelError`] when the kernel refuses or does not answer.
    fn addressed(&mut self) -> Result<Vec<u32>, KernelError>;
}

/// One thing that is changed of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// It is set up.
    Up,
    /// It is set down, as it has to be for some of the others.
    Down,
    /// Its name.
    Name(String),
    /// Its hardware address.
    Address(Vec<u8>),
    /// Its MTU, in octets.
    Mtu(u32),
    /// It comes from the namespace that it is in to the one of this process, under that name.
    Home(String),
}
