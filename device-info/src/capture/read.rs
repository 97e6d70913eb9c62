//! Captures a machine: copies the parts of sysfs, `/dev` and devlink that this crate reads. From
//! the copy, a test can build the machine's files again.

use super::redact::Redactor;
use super::{Capture, Node};
use crate::devlink::{Devlink, DevlinkHandle};
use crate::switch::Switch;
use crate::sysfs::{Entry, Sysfs};

/// Attributes to capture from each device. Most of them exist only for PCI functions.
const PCI_TEXTS: [&str; 14] = [
    "class",
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "numa_node",
    "driver_override",
    "sriov_totalvfs",
    "sriov_numvfs",
    "sriov_offset",
    "sriov_stride",
    "sriov_vf_device",
    "sriov_vf_total_msix",
    "sriov_drivers_autoprobe",
];
const NET_TEXTS: [&str; 5] = ["address", "type", "mtu", "phys_port_name", "phys_switch_id"];

/// The buses to capture in addition to PCI.
const BUSES: [&str; 4] = ["vdpa", "virtio", "auxiliary", "netdevsim"];

impl Capture {
    /// Captures
    ///
    /// - all PCI functions that are network controllers,
    /// - all subfunctions, vDPA devices, virtio devices and netdevsim devices,
    /// - the interfaces that these devices have in this network namespace,
    /// - all RDMA devices,
    /// - if `devlink` is given, the switch of each netdevsim device, and of each PCI function that
    ///   has SR-IOV.
    ///
    /// Changes nothing on the machine, and reads at most 4 KiB of each file.
    #[must_use]
    pub fn read(sysfs: &Sysfs, devlink: Option<&mut Devlink>) -> Self {
        let mut reader = Reader {
            sysfs,
            capture: Self::default(),
            redactor: Redactor::default(),
        };
        let mut handles = reader.pci_functions();
        for bus in BUSES {
            handles.extend(reader.bus(bus));
        }
        reader.rdma_devices();
        if let Some(devlink) = devlink {
            reader.switches(devlink, handles);
        }
        reader.capture.without_obvious_directories()
    }
}

struct Reader<'a> {
    sysfs: &'a Sysfs,
    capture: Capture,
    redactor: Redactor,
}

impl Reader<'_> {
    fn pci_functions(&mut self) -> Vec<DevlinkHandle> {
        let mut handles = Vec::new();
        for function in self.sysfs.pci_functions() {
            if !function.is_network() {
                continue;
            }
            let address = function.address();
            self.link_to("bus/pci/devices", &address.to_string());
            self.device(function.entry());
            if let Some(group) = function.iommu_group() {
                self.iommu_group(group);
                self.node(&format!("vfio/{group}"));
                self.node(&format!("vfio/noiommu-{group}"));
            }
            if function.sriov().is_some() {
                handles.push(address.into());
            }
        }
        for node in ["vhost-net", "net/tun"] {
            self.node(node);
        }
        handles
    }

    /// Captures the devices of a bus. On the auxiliary bus, captures only the subfunctions.
    fn bus(&mut self, bus: &str) -> Vec<DevlinkHandle> {
        let directory = format!("bus/{bus}/devices");
        let mut handles = Vec::new();
        for name in self.sysfs.names(&directory) {
            if bus == "auxiliary" && !name.contains(".sf.") {
                continue;
            }
            let Some(entry) = Entry::linked(self.sysfs, &directory, &name) else {
                continue;
            };
            self.link_to(&directory, &name);
            self.device(&entry);
            if bus == "netdevsim" {
                handles.push(DevlinkHandle {
                    bus: bus.to_owned(),
                    name,
                });
            }
        }
        handles
    }

    /// Captures the attributes, links and relevant directories of a device.
    fn device(&mut self, entry: &Entry) {
        self.directory(entry);
        for name in PCI_TEXTS {
            self.text(entry, name, name);
        }
        for name in ["sfnum", "sriov_numvfs"] {
            self.text(entry, name, name);
        }
        for name in ["driver", "physfn", "iommu_group"] {
            self.link(entry, name);
        }
        for name in entry.names("") {
            if name.starts_with("virtfn") {
                self.link(entry, &name);
            } else if name.starts_with("vhost-vdpa-") {
                let child = entry.child(&name);
                self.text(&child, "dev", "dev");
                self.node(&name);
            } else if name.starts_with("virtio") {
                self.net(&entry.child(&name));
            }
        }
        self.net(entry);
        for name in entry.names("infiniband") {
            self.rdma(&entry.child("infiniband").child(&name));
        }
        for name in entry.names("vfio-dev") {
            self.directory(&entry.child("vfio-dev").child(&name));
            self.node(&format!("vfio/devices/{name}"));
        }
    }

    fn net(&mut self, entry: &Entry) {
        for name in entry.names("net") {
            let netdev = entry.child("net").child(&name);
            self.directory(&netdev);
            self.link_to("class/net", &name);
            for attribute in NET_TEXTS {
                self.text(&netdev, attribute, attribute);
            }
        }
    }

    fn rdma_devices(&mut self) {
        for device in self.sysfs.rdma_devices() {
            self.link_to("class/infiniband", device.name());
            self.rdma(device.entry());
        }
    }

    fn rdma(&mut self, entry: &Entry) {
        self.directory(entry);
        self.text(entry, "node_guid", "node_guid");
        self.text(entry, "parent", "parent");
        for number in entry.names("ports") {
            let port = entry.child("ports").child(&number);
            self.text(&port, "link_layer", "link_layer");
            // Do not capture the GIDs of Ethernet ports. This crate does not need them, and they
            // contain MACs or IP addresses of the machine.
            if port.text("link_layer").as_deref() == Some("InfiniBand") {
                self.text(&port, "gids/0", "gid");
            }
        }
    }

    fn iommu_group(&mut self, group: u32) {
        let path = self
            .sysfs
            .root()
            .join(format!("kernel/iommu_groups/{group}"));
        let entry = Entry::at(self.sysfs, path);
        self.directory(&entry);
        self.text(&entry, "name", "name");
        for name in entry.names("devices") {
            self.link(&entry.child("devices"), &name);
        }
    }

    fn switches(&mut self, devlink: &mut Devlink, handles: Vec<DevlinkHandle>) {
        for handle in handles {
            if let Ok(mut switch) = Switch::read(devlink, &handle)
                && switch.mode.is_some()
            {
                for port in &mut switch.ports {
                    port.netdev = port.netdev.as_deref().map(|name| self.redactor.name(name));
                }
                self.capture.devlink.insert(handle.to_string(), switch);
            }
        }
    }

    fn link_to(&mut self, directory: &str, name: &str) {
        let entry = Entry::at(self.sysfs, self.sysfs.root().join(directory));
        self.link(&entry, name);
    }

    fn link(&mut self, entry: &Entry, name: &str) {
        if let Some(target) = entry.link_target(name) {
            let target = self.redactor.name(&target);
            self.put(entry, name, Node::Link(target));
        }
    }

    fn text(&mut self, entry: &Entry, name: &str, kind: &str) {
        if let Some(text) = entry.text(name) {
            let text = self.redactor.text(kind, &text);
            self.put(entry, name, Node::Text(text));
        }
    }

    fn directory(&mut self, entry: &Entry) {
        self.put(entry, "", Node::Directory);
    }

    fn put(&mut self, entry: &Entry, name: &str, node: Node) {
        let path = entry.path().join(name);
        if let Some(path) = path
            .strip_prefix(self.sysfs.root())
            .ok()
            .and_then(|path| path.to_str())
        {
            let path = self.redactor.name(path.trim_end_matches('/'));
            self.capture.sysfs.insert(path, node);
        }
    }

    fn node(&mut self, name: &str) {
        if let Some(numbers) = self.sysfs.device_numbers(name) {
            self.capture.dev.insert(name.to_owned(), numbers);
        }
    }
}
