//! Moves the interfaces of devices back from a pod's network namespace, if that namespace still
//! exists.

use std::path::Path;
use std::sync::Arc;

use super::{Restoring, failure};
use crate::kernel::{DeviceLinks, KernelError, LinkChange};
use crate::operation::Failure;
use crate::operation::detach::recorded_netns;

impl Restoring<'_> {
    /// Moves interfaces back to the host's namespace if a plugin left them in the pod's network
    /// namespace. Returns the failures.
    pub(super) fn bring_home(&self) -> Vec<Failure> {
        let netns = match recorded_netns(self.header, Path::new(&self.header.netns)) {
            Ok(netns) => netns,
            Err(unknown) => return vec![unknown.into()],
        };
        let netns = netns.filter(|netns| !netns.is_ours().unwrap_or(true));
        let links = netns.and_then(|netns| (self.context.host.devices)(Some(&netns)).ok());
        let Some(mut links) = links else {
            return Vec::new();
        };
        let mut owed = Vec::new();
        for before in &self.before {
            let netdev = before.netdev.as_ref();
            let away = netdev.filter(|_| self.hardware.is_away(before));
            let Some(netdev) = away else { continue };
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

/// Moves an interface to the host's namespace under the name `name`. If the kernel returns an
/// error, tries again with a name that the kernel chooses. The kernel may return an error although
/// it has moved the interface. So before the second attempt, checks that the interface is still in
/// the pod's namespace.
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
