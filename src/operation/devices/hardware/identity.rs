//! Finds the device behind an interface.

use super::Hardware;
use crate::kernel::{Link, Netlink, PodLinks};

/// The maximum number of links to examine, including the interface itself. A VLAN on a macvlan on
/// a VF needs three.
const DEEPEST: usize = 4;

/// Kinds of links that use the device of their lower link.
const STACKED: [&str; 6] = ["macvlan", "macvtap", "ipvlan", "ipvtap", "vlan", "ipoib"];

impl Hardware<'_> {
    /// Returns the names of the device behind `link`, a link in a pod. The first name is the one
    /// that the kernel reports. If the kind of `link` is in `STACKED`, for example `macvlan`,
    /// returns the names of the device behind the lower link. A software link of another kind has
    /// no device, so the list contains only a description such as `none (a link of kind veth)`. The
    /// list is empty if Jackfield cannot determine the device.
    pub(in crate::operation) fn names(&self, link: &Link, links: &mut dyn PodLinks) -> Vec<String> {
        let mut at = link.clone();
        let mut host: Option<Netlink> = None;
        for _ in 0..DEEPEST {
            if let Some(name) = &at.parent_name {
                return self.names_of(at.parent_bus.as_deref().unwrap_or("pci"), name);
            }
            let kind = at.kind.as_deref().unwrap_or_default();
            let Some(lower) = at.lower.filter(|_| STACKED.contains(&kind)) else {
                let is_software = !kind.is_empty() && !STACKED.contains(&kind);
                let description = is_software.then(|| format!("none (a link of kind {kind})"));
                return description.into_iter().collect();
            };
            if at.lower_netns.is_some() && host.is_none() {
                host = Netlink::here().ok();
            }
            let below = match &mut host {
                Some(host) => host.link_at(lower),
                None => links.link_at(lower),
            };
            match below {
                Ok(Some(below)) => at = below,
                Ok(None) | Err(_) => break,
            }
        }
        Vec::new()
    }

    fn names_of(&self, bus: &str, name: &str) -> Vec<String> {
        let identity = self.sysfs.identity(bus, name);
        let mut names = vec![name.to_owned()];
        // A subfunction is not the same device as its parent PCI function.
        let pci = identity.pci.filter(|_| identity.auxiliary.is_none());
        let pci = pci.map(|pci| pci.to_string());
        for more in identity.vdpa.into_iter().chain(pci) {
            if !names.contains(&more) {
                names.push(more);
            }
        }
        names
    }
}
