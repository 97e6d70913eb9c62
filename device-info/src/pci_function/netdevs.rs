//! The network interfaces of a function.

use super::PciFunction;
use crate::phys_port_name::PhysPortName;
use crate::sysfs::Entry;

impl PciFunction {
    /// Returns the names of all interfaces of the function in this network namespace, including
    /// representors, in natural order. An interface that was moved into a pod is missing.
    ///
    /// For a virtio function, returns the interfaces of its virtio device.
    #[must_use]
    pub fn netdevs(&self) -> Vec<String> {
        let own = self.entry.names("net");
        if !own.is_empty() {
            return own;
        }
        self.virtio_devices()
            .iter()
            .flat_map(|name| self.entry.names(&format!("{name}/net")))
            .collect()
    }

    /// Returns the function's own interface, which is not a representor.
    ///
    /// - One interface: returns this interface, or `None` if it is or may be a representor.
    /// - Several interfaces: if exactly one of them is a port to the wire, returns this interface.
    ///   Otherwise returns `None`.
    #[must_use]
    pub fn netdev(&self) -> Option<String> {
        own_netdev(&self.entry).or_else(|| match self.netdevs().as_slice() {
            [only] if self.entry.names("net").is_empty() => Some(only.clone()),
            _ => None,
        })
    }

    /// Returns the names of the virtio devices directly below the function, such as `virtio2`.
    pub(crate) fn virtio_devices(&self) -> Vec<String> {
        virtio_names(&self.entry)
    }
}

pub(crate) fn virtio_names(entry: &Entry) -> Vec<String> {
    let mut names = entry.names("");
    names.retain(|name| {
        name.strip_prefix("virtio")
            .is_some_and(|number| number.parse::<u32>().is_ok())
    });
    names
}

/// Returns the interface in `net/` that is the device's own interface, not a representor.
pub(crate) fn own_netdev(device: &Entry) -> Option<String> {
    let names = device.names("net");
    let role = |name: &String| {
        let netdev = device.child("net").child(name);
        let port: Option<PhysPortName> = netdev.text("phys_port_name")?.parse().ok();
        Some(port)
    };
    match names.as_slice() {
        [only] => match role(only) {
            None if device.text(format!("net/{only}/phys_switch_id")).is_some() => None,
            Some(Some(port)) if port.is_representor() => None,
            _ => Some(only.clone()),
        },
        several => {
            let mut physical = several
                .iter()
                .filter(|name| matches!(role(name), Some(Some(port)) if !port.is_representor()));
            let first = physical.next()?;
            physical.next().is_none().then(|| first.clone())
        }
    }
}
