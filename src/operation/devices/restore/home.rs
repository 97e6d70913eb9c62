//! Moves the interfaces of devices back from a pod's namespace while that namespace exists.

use std::path::Path;
use std::sync::Arc;

use super::{Restoring, failure};
use crate::kernel::{DeviceLinks, KernelError, LinkChange};
use crate::operation::Failure;
use crate::operation::detach::recorded_netns;

impl Restoring<'_> {
    /// Moves the interfaces of the devices that a plugin left in the pod's namespace to the host's
    /// namespace; otherwise they would be lost with the pod's. Returns what failed.
    pub(super) fn bring_home(&self) -> Vec<Failure> {
        let netns = recorded_netns(self.header, Path::new(&self.header.netns));
        let netns = netns.filter(|netns| !netns.is_ours().unwrap_or(true));
        let links = netns.and_then(|netns| (self.context.host.devices)(Some(&netns)).ok());
        let Some(mut links) = links else {
            return Vec::new();
        };
        let mut owed = Vec::new();
        for before in &self.before {
            let Some(netdev) = &before.netdev else {
                continue;
            };
            if !self.hardware.is_away(before) {
                continue;
            }
            let address = before.device.to_string();
            let found = links.device_links().unwrap_or_default().into_iter();
            let mut own = found.filter(|link| link.parent_name.as_ref() == Some(&address));
            let Some(link) = own.next() else { continue };
            let _ = links.change_link(link.index, &LinkChange::Down);
            if let Err(cause) = send_home(links.as_mut(), link.index, &netdev.name) {
                owed.push(failure(before, "its interface", Arc::new(cause).into()));
            }
        }
        owed
    }
}

/// Moves an interface to the host's namespace under its name, or under a name that the kernel
/// chooses if another interface has it by now. The kernel moves the interface before it renames it,
/// so an error does not show that the move failed.
fn send_home(links: &mut dyn DeviceLinks, index: u32, name: &str) -> Result<(), KernelError> {
    let home = |name: &str| LinkChange::Home(name.to_owned());
    let Err(refused) = links.change_link(index, &home(name)) else {
        return Ok(());
    };
    if links.device_link_at(index)?.is_none() {
        return Ok(());
    }
    links
        .change_link(index, &home("dev%d"))
        .map_err(|_| refused)
}
