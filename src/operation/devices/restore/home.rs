//! Moves the interfaces of devices back from a pod's namespace while that namespace exists.

use std::path::Path;

use std::sync::Arc;

use super::failure;
use crate::baseline::DeviceState;
use crate::journal::Header;
use crate::kernel::{DeviceLinks, KernelError, LinkChange, PodNetns};
use crate::operation::devices::hardware::Hardware;
use crate::operation::{Context, Failure};

/// Moves the interfaces of `devices` that a plugin left in the pod's namespace to the host's
/// namespace; otherwise they would be lost with the pod's. Returns what failed.
pub(super) fn bring_home(
    context: &Context<'_>,
    hardware: &Hardware<'_>,
    header: &Header,
    devices: &[&DeviceState],
) -> Vec<Failure> {
    let Ok(netns) = PodNetns::open(Path::new(&header.netns)) else {
        return Vec::new();
    };
    if netns.id().to_string() != header.netns_id || netns.is_ours().unwrap_or(true) {
        return Vec::new();
    }
    let Ok(mut links) = (context.host.devices)(Some(&netns)) else {
        return Vec::new();
    };
    let mut owed = Vec::new();
    for before in devices {
        let Some(netdev) = &before.netdev else {
            continue;
        };
        if !hardware.is_away(before) {
            continue;
        }
        let address = before.device.to_string();
        let found = links.device_links().unwrap_or_default();
        let mut found = found
            .into_iter()
            .filter(|link| link.parent_name.as_deref() == Some(address.as_str()));
        let Some(link) = found.next() else { continue };
        let _ = links.change_link(link.index, &LinkChange::Down);
        if let Err(cause) = send_home(links.as_mut(), link.index, &netdev.name) {
            owed.push(failure(before, "its interface", Arc::new(cause).into()));
        }
    }
    owed
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
