//! All network hardware of a machine.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::devlink::{DevlinkHandle, EswitchMode};
use crate::guid::Guid;
use crate::pci_address::PciAddress;
use crate::pci_function::{PciFunction, Vfio};
use crate::rdma::RdmaPort;
use crate::switch::{PortTable, Switch};
use crate::sysfs::Sysfs;
use crate::vdpa::VdpaDriver;

/// A machine's network hardware, as this network namespace shows it.
///
/// On a machine with *n* functions, [`Inventory::read`] makes at most 40 × *n* system calls in
/// sysfs if it is given a [`Devlink`](crate::Devlink). Reading 256 virtual functions takes less
/// than 50 ms. `None` and empty lists mean "missing or not known". `remarks` has one line for each
/// value that the crate could not read.
///
/// ```
/// use device_info::{Devlink, Inventory, Sysfs};
///
/// let mut devlink = Devlink::open().ok();
/// let inventory = Inventory::read(&Sysfs::host(), &mut |device| devlink.as_mut()?.switch(device));
/// for pf in &inventory.physical_functions {
///     println!("{} {} of {} VFs", pf.function.address, pf.vfs.len(), pf.total_vfs);
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inventory {
    /// Physical functions with SR-IOV, and their virtual functions.
    pub physical_functions: Vec<PhysicalFunction>,
    /// Network functions without SR-IOV, and virtual functions without a visible physical function.
    pub functions: Vec<Function>,
    /// Subfunctions.
    pub subfunctions: Vec<SubfunctionEntry>,
    /// vDPA devices.
    pub vdpa: Vec<VdpaEntry>,
    /// RDMA devices.
    pub rdma: Vec<RdmaEntry>,
    /// One line for each value that the crate could not read.
    pub remarks: Vec<String>,
}

/// A network function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Function {
    /// The PCI address.
    pub address: PciAddress,
    /// The vendor ID.
    pub vendor: Option<u16>,
    /// The device ID.
    pub device: Option<u16>,
    /// The vendor's name, set by [`Inventory::name`].
    pub vendor_name: Option<String>,
    /// The device's name, set by [`Inventory::name`].
    pub device_name: Option<String>,
    /// The driver; `None` for an unbound function.
    pub driver: Option<String>,
    /// The NUMA node.
    pub numa_node: Option<u32>,
    /// The function's interface.
    pub netdev: Option<String>,
    /// The function's RDMA devices.
    pub rdma: Vec<String>,
    /// The function's vDPA devices.
    pub vdpa: Vec<String>,
    /// The VFIO device, if the function is bound to a VFIO driver.
    pub vfio: Option<Vfio>,
}

/// A physical function and its virtual functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PhysicalFunction {
    /// The function itself.
    #[serde(flatten)]
    pub function: Function,
    /// The maximum number of virtual functions.
    pub total_vfs: u32,
    /// The mode of the switch; `None` without devlink.
    pub eswitch: Option<EswitchMode>,
    /// The virtual functions in numeric order.
    pub vfs: Vec<VirtualFunction>,
}

/// A virtual function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VirtualFunction {
    /// The VF number.
    pub index: u32,
    /// The function itself.
    #[serde(flatten)]
    pub function: Function,
    /// The VF's representor.
    pub representor: Option<String>,
}

/// A subfunction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubfunctionEntry {
    /// The name of the auxiliary device.
    pub name: String,
    /// The subfunction's number, `sfnum`.
    pub number: Option<u32>,
    /// The function that the subfunction is part of.
    pub parent: Option<PciAddress>,
    /// The subfunction's interface.
    pub netdev: Option<String>,
    /// The subfunction's RDMA devices.
    pub rdma: Vec<String>,
    /// The subfunction's representor.
    pub representor: Option<String>,
}

/// A vDPA device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VdpaEntry {
    /// The name on the vDPA bus.
    pub name: String,
    /// The driver: `vhost` if a program uses the device, `virtio` if this kernel uses the device.
    pub driver: Option<VdpaDriver>,
    /// The path of the device: its character device for `vhost`, its directory in sysfs for
    /// `virtio`.
    pub path: Option<String>,
    /// The PCI function behind the vDPA device.
    pub pci_address: Option<PciAddress>,
}

/// An RDMA device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RdmaEntry {
    /// The name.
    pub name: String,
    /// The node GUID.
    pub node_guid: Option<Guid>,
    /// The ports.
    pub ports: Vec<RdmaPort>,
    /// The PCI function behind the RDMA device; `None` for a software device.
    pub pci_address: Option<PciAddress>,
}

impl Inventory {
    /// Reads the inventory. `switches` returns a device's switch from devlink
    /// ([`Devlink::switch`](crate::Devlink::switch)). If `switches` returns `None` for a device,
    /// `read` looks up the representors of the device in sysfs.
    #[must_use]
    pub fn read(sysfs: &Sysfs, switches: &mut dyn FnMut(&DevlinkHandle) -> Option<Switch>) -> Self {
        let vdpa: Vec<VdpaEntry> = sysfs
            .vdpa_devices()
            .iter()
            .map(|device| VdpaEntry {
                name: device.name().to_owned(),
                driver: device.driver(),
                path: device.path(),
                pci_address: device.pci_address(),
            })
            .collect();
        let mut inventory = Self {
            vdpa,
            ..Self::default()
        };
        inventory.read_functions(sysfs, switches);
        inventory.subfunctions = sysfs
            .subfunctions()
            .iter()
            .map(|subfunction| {
                let parent = subfunction.parent_address();
                let switch = parent.and_then(|parent| switches(&parent.into()));
                SubfunctionEntry {
                    name: subfunction.name().to_owned(),
                    number: subfunction.number(),
                    parent,
                    netdev: subfunction.netdev(),
                    rdma: subfunction.rdma_devices(),
                    representor: subfunction.representor(switch.as_ref()),
                }
            })
            .collect();
        inventory.rdma = sysfs
            .rdma_devices()
            .iter()
            .map(|device| RdmaEntry {
                name: device.name().to_owned(),
                node_guid: device.node_guid(),
                ports: device.ports(),
                pci_address: device.pci_address(),
            })
            .collect();
        inventory.remarks = sysfs
            .take_remarks()
            .iter()
            .map(ToString::to_string)
            .collect();
        inventory
    }

    /// Reads all functions in the order of their addresses, so that a physical function precedes
    /// its virtual functions.
    fn read_functions(
        &mut self,
        sysfs: &Sysfs,
        switches: &mut dyn FnMut(&DevlinkHandle) -> Option<Switch>,
    ) {
        let mut virtual_functions = BTreeSet::new();
        for address in sysfs.pci_addresses() {
            if virtual_functions.contains(&address) {
                continue;
            }
            let Some(function) = sysfs.pci_function(address).filter(PciFunction::is_network) else {
                continue;
            };
            // Do not read the current number of VFs, because the read blocks while a driver creates
            // VFs.
            let Some(total_vfs) = function.total_vfs() else {
                let ids = (function.vendor(), function.device());
                self.functions.push(self.function(&function, ids));
                continue;
            };
            let ids = (function.vendor(), function.device());
            // Do not read the IDs of each VF. A VF has its PF's vendor ID (SR-IOV 1.1 §3.4.1), and
            // the PF reports the device ID of its VFs.
            let vf_ids = (ids.0, function.vf_device());
            let switch = switches(&address.into());
            let mut ports = None;
            let mut vfs = Vec::new();
            for (index, address) in function.vfs() {
                virtual_functions.insert(address);
                if let Some(vf) = sysfs.pci_function(address) {
                    vfs.push(VirtualFunction {
                        index,
                        function: self.function(&vf, vf_ids),
                        representor: match &switch {
                            Some(switch) if switch.is_authority() => switch.vf_representor(index),
                            _ => ports
                                .get_or_insert_with(|| PortTable::read(&function))
                                .as_ref()
                                .and_then(|ports| ports.vf_representor(index)),
                        },
                    });
                }
            }
            self.physical_functions.push(PhysicalFunction {
                function: self.function_with(
                    &function,
                    ids,
                    switch.as_ref().and_then(Switch::uplink),
                ),
                total_vfs,
                eswitch: switch.as_ref().and_then(|switch| switch.mode),
                vfs,
            });
        }
    }

    fn function(&self, function: &PciFunction, ids: (Option<u16>, Option<u16>)) -> Function {
        self.function_with(function, ids, None)
    }

    /// Describes a function. `uplink` is the interface of the PF's physical port, if devlink
    /// reports one. Without `uplink`, this method finds the function's own interface in sysfs. For
    /// a PF with representors, the search reads the port name of every interface of the PF.
    fn function_with(
        &self,
        function: &PciFunction,
        (vendor, device): (Option<u16>, Option<u16>),
        uplink: Option<String>,
    ) -> Function {
        let address = function.address();
        let driver = function.driver();
        let vfio = driver
            .as_deref()
            .and_then(|driver| function.vfio_under(driver));
        Function {
            address,
            vendor,
            device,
            vendor_name: None,
            device_name: None,
            driver,
            numa_node: function.numa_node(),
            netdev: uplink.or_else(|| function.netdev()),
            rdma: function.rdma_devices(),
            vdpa: self
                .vdpa
                .iter()
                .filter(|device| device.pci_address == Some(address))
                .map(|device| device.name.clone())
                .collect(),
            vfio,
        }
    }
}
