//! An RDMA device.

use serde::Serialize;

use crate::guid::Guid;
use crate::pci_address::PciAddress;
use crate::sysfs::{Entry, Sysfs};

/// The directory of links to all RDMA devices.
const DEVICES: &str = "class/infiniband";

/// An RDMA device, such as `mlx5_0` or `rxe0`.
///
/// The name of the device may change when its driver is bound again. With exclusive RDMA
/// namespaces, only one network namespace shows the device.
#[derive(Clone, Debug)]
pub struct RdmaDevice(Entry);

/// A port of an RDMA device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RdmaPort {
    /// The port number, from 1.
    pub number: u32,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Option<String>,
    /// The port GUID, the lower half of the first GID. The port GUID may differ from the node GUID.
    /// `None` on Ethernet, where a GID comes from a MAC or an IP address.
    pub guid: Option<Guid>,
}

impl Sysfs {
    /// Finds an RDMA device by name; `None` if this network namespace does not show the device.
    #[must_use]
    pub fn rdma_device(&self, name: &str) -> Option<RdmaDevice> {
        if !crate::sysfs::path::is_entry_name(name) {
            return None;
        }
        Entry::linked(self, DEVICES, name).map(RdmaDevice)
    }

    /// Returns all RDMA devices of this network namespace, in natural order.
    #[must_use]
    pub fn rdma_devices(&self) -> Vec<RdmaDevice> {
        self.names(DEVICES)
            .iter()
            .filter_map(|name| self.rdma_device(name))
            .collect()
    }
}

impl RdmaDevice {
    pub(crate) fn from_entry(entry: Entry) -> Self {
        Self(entry)
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.0
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Returns the node GUID; `None` if it is all zeros.
    #[must_use]
    pub fn node_guid(&self) -> Option<Guid> {
        guid(&self.0.text("node_guid")?)
    }

    /// Returns the ports.
    #[must_use]
    pub fn ports(&self) -> Vec<RdmaPort> {
        self.0
            .names("ports")
            .iter()
            .filter_map(|name| {
                let number = name.parse().ok()?;
                let port = self.0.child("ports").child(name);
                let link_layer = port.text("link_layer");
                let guid = match link_layer.as_deref() {
                    Some("InfiniBand") => port.text("gids/0").and_then(|gid| port_guid(&gid)),
                    _ => None,
                };
                Some(RdmaPort {
                    number,
                    link_layer,
                    guid,
                })
            })
            .collect()
    }

    /// Returns the PCI function of the device; `None` for a software device (rxe, siw).
    #[must_use]
    pub fn pci_address(&self) -> Option<PciAddress> {
        self.0.pci_ancestor().map(|(address, _)| address)
    }

    /// Returns the network interface that a software device (rxe) uses.
    #[must_use]
    pub fn parent_netdev(&self) -> Option<String> {
        self.0.text("parent")
    }
}

fn guid(text: &str) -> Option<Guid> {
    Guid::parse_observed(text)
        .ok()
        .filter(|guid| !guid.is_zero())
}

/// Returns the lower half of a GID such as `fe80:0000:0000:0000:02c9:0300:0002:003a`.
fn port_guid(gid: &str) -> Option<Guid> {
    let middle = gid.match_indices(':').nth(3)?.0;
    let (_, lower) = gid.split_at_checked(middle + 1)?;
    guid(lower)
}
