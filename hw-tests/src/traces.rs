//! Finds what a case left behind.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use device_info::PciAddress;

use crate::node::Node;
use crate::rig::sysfs;

/// The state of the machine as far as cases change it, one line per item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traces(BTreeSet<String>);

impl Traces {
    pub(crate) fn of(node: &Node) -> Self {
        let mut lines = BTreeSet::new();
        for folder in [
            "/run/netns",
            "/sys/class/net",
            "/sys/class/infiniband",
            "/sys/class/vduse",
            "/sys/bus/vdpa/devices",
            "/sys/bus/netdevsim/devices",
        ] {
            let names = sysfs::names(folder);
            lines.extend(names.into_iter().map(|name| format!("{folder}/{name}")));
        }
        lines.extend(node.pfs.iter().flat_map(|pf| function(*pf)));
        lines.extend(node.vfs.iter().flat_map(|vf| function(*vf)));
        lines.extend(node.virtio.iter().flat_map(|virtio| function(*virtio)));
        Self(lines)
    }

    /// Waits until the machine is as before. Returns the difference if that does not happen.
    ///
    /// A network namespace takes a moment to disappear, and a driver to name its interface.
    pub(crate) fn left_behind(&self, node: &Node) -> Option<String> {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let now = Self::of(node);
            if now == *self {
                return None;
            }
            if Instant::now() >= deadline {
                let added = now.0.difference(&self.0).map(|line| format!("+ {line}"));
                let missing = self.0.difference(&now.0).map(|line| format!("- {line}"));
                return Some(added.chain(missing).collect::<Vec<_>>().join(", "));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn function(address: PciAddress) -> Vec<String> {
    let folder = sysfs::function(address);
    let mut lines = vec![format!(
        "{address} driver {}",
        sysfs::link(folder.join("driver")).unwrap_or_else(|| "none".to_owned())
    )];
    for file in ["sriov_numvfs", "sriov_drivers_autoprobe", "driver_override"] {
        if let Ok(value) = sysfs::read(folder.join(file)) {
            lines.push(format!("{address} {file} {value}"));
        }
    }
    let netdevs = sysfs::names(folder.join("net"));
    lines.push(format!("{address} interfaces {}", netdevs.join(" ")));
    lines
}
