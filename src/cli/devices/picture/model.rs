//! The contents of the picture that `jackfield devices -o svg` prints, without the layout.

use device_info::{Function, Inventory, PhysicalFunction, SubfunctionEntry};

use crate::cli::devices::usage::{DriverKind, Owner, Usage};
use crate::cli::devices::{mode_name, pci_id};

/// Devices below a heading.
#[derive(Default)]
pub(super) struct Group<'a> {
    /// The heading, such as `NUMA node 0 · 8 of 64 VFs · 3 in pods · switchdev`.
    pub(super) heading: String,
    /// The physical function, if the devices are its VFs.
    pub(super) physical: Option<Device<'a>>,
    pub(super) devices: Vec<Device<'a>>,
}

/// A device that the picture shows as a box.
#[derive(Default)]
pub(super) struct Device<'a> {
    /// The device's address or name.
    pub(super) id: String,
    /// The first line of the box, such as `VF 3 · 0000:01:10.2`.
    pub(super) label: String,
    pub(super) driven: DriverKind,
    pub(super) owner: Owner<'a>,
    /// Details of the device on the host. For a PCI function, the first entry contains the
    /// interface (or else the VFIO path) and the driver, as in `eth2, igbvf`. If the function has
    /// neither an interface nor a VFIO path, the first entry is only the driver. The further
    /// entries of a PCI function are its representor, RDMA devices, vDPA devices or NUMA node.
    pub(super) facts: Vec<String>,
    /// The product name, or the IDs of vendor and device; empty if the device is not a PCI
    /// function.
    pub(super) name: String,
}

/// Groups the devices of a node. Each physical function forms a group with its VFs. These groups
/// come first, in the order of the NUMA nodes. The groups of other devices follow, one for each
/// kind.
pub(super) fn groups<'a>(inventory: &Inventory, usage: &'a Usage) -> Vec<Group<'a>> {
    let mut pfs: Vec<&PhysicalFunction> = inventory.physical_functions.iter().collect();
    pfs.sort_by_key(|pf| pf.function.numa_node);
    let mut groups: Vec<Group<'a>> = pfs.into_iter().map(|pf| Group::of(pf, usage)).collect();
    let mut add = |heading: &str, devices: Vec<Device<'a>>| {
        if !devices.is_empty() {
            groups.push(Group {
                heading: heading.to_owned(),
                devices,
                ..Group::default()
            });
        }
    };

    let functions = inventory.functions.iter().map(|function| {
        let mut device = Device::of_function(function, None, usage);
        device.facts.push(numa_node(function));
        device
    });
    add("Other PCI functions", functions.collect());
    let subfunctions = inventory.subfunctions.iter();
    let subfunctions = subfunctions.map(|entry| Device::of_subfunction(entry, usage));
    add("Subfunctions", subfunctions.collect());
    let vdpa = inventory.vdpa.iter();
    let vdpa = vdpa.filter(|entry| entry.pci_address.is_none());
    let vdpa = vdpa.map(|entry| {
        let driver = entry.driver.map(|driver| driver.to_string());
        let facts = [entry.path.clone(), driver];
        Device {
            driven: entry
                .driver
                .map_or(DriverKind::Nothing, |_| DriverKind::Vdpa),
            ..Device::named(&entry.name, facts, usage)
        }
    });
    add("vDPA devices", vdpa.collect());
    let rdma = inventory.rdma.iter();
    let rdma = rdma.filter(|entry| entry.pci_address.is_none());
    let rdma = rdma.map(|entry| {
        let guid = entry.node_guid.map(|guid| guid.to_string());
        Device::named(&entry.name, [guid], usage)
    });
    add("Software RDMA devices", rdma.collect());
    groups
}

/// Counts the devices, as in `PFs: 2, VFs: 64, in pods: 12`. An orphan is a VF that has lost its
/// interface and belongs to no pod.
pub(super) fn summary(inventory: &Inventory, usage: &Usage) -> String {
    let pfs = &inventory.physical_functions;
    let counted = [
        ("PFs", pfs.len()),
        ("VFs", pfs.iter().map(|pf| pf.vfs.len()).sum()),
        ("other functions", inventory.functions.len()),
        ("subfunctions", inventory.subfunctions.len()),
        ("vDPA devices", inventory.vdpa.len()),
        ("RDMA devices", inventory.rdma.len()),
        ("in pods", usage.users.len()),
        ("orphans", usage.orphans.len()),
    ];
    let counted = counted.into_iter().filter(|(_, count)| *count > 0);
    let counted = counted.map(|(what, count)| format!("{what}: {count}"));
    match counted.collect::<Vec<_>>().as_slice() {
        [] => "nothing found".to_owned(),
        counted => counted.join(", "),
    }
}

fn numa_node(function: &Function) -> String {
    match function.numa_node {
        Some(node) => format!("NUMA node {node}"),
        None => "no NUMA node".to_owned(),
    }
}

impl<'a> Group<'a> {
    fn of(pf: &PhysicalFunction, usage: &'a Usage) -> Self {
        let vfs = pf.vfs.iter().map(|vf| Device {
            label: format!("VF {} · {}", vf.index, vf.function.address),
            ..Device::of_function(&vf.function, vf.representor.as_ref(), usage)
        });
        let devices: Vec<Device<'a>> = vfs.collect();
        let is_in_pod = |device: &&Device<'_>| matches!(device.owner, Owner::Pod(_));
        let in_pods = devices.iter().filter(is_in_pod);
        let mut heading = vec![
            numa_node(&pf.function),
            format!("{} of {} VFs", pf.vfs.len(), pf.total_vfs),
            format!("{} in pods", in_pods.count()),
        ];
        heading.extend(pf.eswitch.map(|mode| mode_name(mode).to_owned()));
        Group {
            heading: heading.join(" · "),
            physical: Some(Device::of_function(&pf.function, None, usage)),
            devices,
        }
    }
}

impl<'a> Device<'a> {
    fn of_function(function: &Function, representor: Option<&String>, usage: &'a Usage) -> Self {
        let driver = function.driver.as_deref().unwrap_or("no driver");
        let path = function.vfio.as_ref().and_then(|vfio| vfio.path.as_ref());
        let seen = match function.netdev.as_ref().or(path) {
            Some(at) => format!("{at}, {driver}"),
            None => driver.to_owned(),
        };
        let representor = representor.map(|name| format!("⇄ {name}"));
        let rdma = function.rdma.iter().map(|name| format!("RDMA {name}"));
        let vdpa = function.vdpa.iter().map(|name| format!("vDPA {name}"));
        let more = representor.into_iter().chain(rdma).chain(vdpa);
        Device {
            id: function.address.to_string(),
            label: function.address.to_string(),
            driven: DriverKind::of(function),
            owner: usage.of_function(function),
            facts: [seen].into_iter().chain(more).collect(),
            name: function.name().unwrap_or_else(|| pci_id(function)),
        }
    }

    fn of_subfunction(entry: &SubfunctionEntry, usage: &'a Usage) -> Self {
        let netdev = entry.netdev.clone();
        let parent = entry.parent.map(|parent| format!("of {parent}"));
        let representor = entry.representor.as_ref().map(|name| format!("⇄ {name}"));
        let rdma = entry.rdma.iter().map(|name| Some(format!("RDMA {name}")));
        let facts = [netdev, parent, representor].into_iter().chain(rdma);
        let mut device = Device::named(&entry.name, facts, usage);
        if let Some(number) = entry.number {
            device.label = format!("SF {number} · {}", entry.name);
        }
        device
    }

    /// Returns a device that is not a PCI function.
    fn named(
        name: &str,
        facts: impl IntoIterator<Item = Option<String>>,
        usage: &'a Usage,
    ) -> Self {
        Device {
            id: name.to_owned(),
            label: name.to_owned(),
            owner: usage.of(name),
            facts: facts.into_iter().flatten().collect(),
            ..Device::default()
        }
    }
}
