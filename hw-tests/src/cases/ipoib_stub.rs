//! RDMA devices on PCI functions, and IPoIB above them. The devices are STUBS that carry no
//! traffic. The `ib_core` and `ib_ipoib` above them are the kernel's own.

use device_info::{Guid, IpoibAddr, PciAddress, Sysfs};

use crate::case::{Case, Outcome, Stop, holds, present, same};
use crate::cases::rxe::node_guid;
use crate::cases::sriov::function;
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{IbStub, Link, LinkLayer, PfStub, Vfs, command, netdev};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "ipoib-stub/node_guid_and_port_guid_are_not_mistaken_for_each_other",
        needs: &[Feature::IpoibStub],
        run: node_guid_and_port_guid_are_not_mistaken_for_each_other,
    },
    Case {
        name: "ipoib-stub/an_address_of_20_bytes_ends_in_the_port_guid",
        needs: &[Feature::IpoibStub],
        run: an_address_of_20_bytes_ends_in_the_port_guid,
    },
    Case {
        name: "ipoib-stub/guids_of_vfs_are_set_on_their_pf",
        needs: &[Feature::IpoibStub],
        run: guids_of_vfs_are_set_on_their_pf,
    },
    Case {
        name: "ipoib-stub/a_vf_with_roce_has_an_interface_and_an_rdma_device",
        needs: &[Feature::IpoibStub],
        run: a_vf_with_roce_has_an_interface_and_an_rdma_device,
    },
];

/// Returns the stub's node GUID and port GUID for a function.
fn guids(address: PciAddress) -> Result<(Guid, Guid), Stop> {
    let devfn = u64::from(address.device()) << 3 | u64::from(address.function());
    let function = u64::from(address.domain()) << 16 | u64::from(address.bus()) << 8 | devfn;
    let node = 0x024a_4600_0000_0000_u64 | function << 8;
    let guid = |value: u64| format!("{value:016x}").parse::<Guid>();
    Ok((guid(node)?, guid(node | 1)?))
}

fn node_guid_and_port_guid_are_not_mistaken_for_each_other(node: &Node) -> Outcome {
    let pf = node.spare_pf()?;
    let driver = PfStub::make(pf, 1)?;
    let vf = driver.vf(0)?;
    let stubs = [
        (pf, IbStub::add(pf, LinkLayer::InfiniBand)?),
        (vf, IbStub::add(vf, LinkLayer::InfiniBand)?),
    ];
    let sysfs = Sysfs::host();
    for (address, stub) in &stubs {
        let name = stub.device()?;
        let (node_guid_of_it, port_guid) = guids(*address)?;
        same(
            format!("{address}'s RDMA devices"),
            function(&sysfs, *address)?.rdma_devices(),
            vec![name.clone()],
        )?;
        let device = present(format!("RDMA device {name}"), sysfs.rdma_device(&name))?;
        same("its function", device.pci_address(), Some(*address))?;
        same("its node GUID", device.node_guid(), Some(node_guid_of_it))?;
        same(
            "its node GUID by netlink",
            node_guid(&name)?.parse::<Guid>()?,
            node_guid_of_it,
        )?;
        let ports = device.ports();
        same("its ports", ports.len(), 1)?;
        for port in ports {
            same("link layer", port.link_layer.as_deref(), Some("InfiniBand"))?;
            same("its port GUID", port.guid, Some(port_guid))?;
        }
    }
    Ok(())
}

fn an_address_of_20_bytes_ends_in_the_port_guid(node: &Node) -> Outcome {
    let pf = node.spare_pf()?;
    let driver = PfStub::make(pf, 1)?;
    let vf = driver.vf(0)?;
    let (_, port_guid) = guids(vf)?;
    let mut queue_pairs = Vec::new();
    for _ in 0..2 {
        let stub = IbStub::add(vf, LinkLayer::InfiniBand)?;
        let name = stub.netdev()?;
        let link = Link::show(None, &name)?;
        same("type", link.link_type.as_str(), "infiniband")?;
        let address: IpoibAddr = link.address.parse()?;
        same("its port GUID", address.port_guid(), port_guid)?;
        let sysfs = Sysfs::host();
        let interfaces = function(&sysfs, vf)?.netdevs();
        same("the VF's interfaces", interfaces, vec![name])?;
        let identity = sysfs.identity(&link.parent_bus, &link.parent_name);
        same("it is its VF", identity.is(&vf.to_string()), Some(true))?;
        queue_pairs.push(address.queue_pair());
    }
    queue_pairs.dedup();
    same("queue pairs, which are new each time", queue_pairs.len(), 2)
}

fn guids_of_vfs_are_set_on_their_pf(node: &Node) -> Outcome {
    const NODE: &str = "02:00:00:00:00:00:00:3e";
    const PORT: &str = "02:00:00:00:00:00:00:3f";
    let pf = node.spare_pf()?;
    let _driver = PfStub::make(pf, 2)?;
    let stub = IbStub::add(pf, LinkLayer::InfiniBand)?;
    let name = stub.netdev()?;
    command("ip", &["link", "set", &name, "vf", "1", "node_guid", NODE])?;
    command("ip", &["link", "set", &name, "vf", "1", "port_guid", PORT])?;
    let vfs = Link::show(None, &name)?.vfs;
    same("VFs of the PF's interface", vfs.len(), 2)?;
    for vf in vfs {
        let set = vf.vf == 1;
        for (text, expected) in [(&vf.node_guid, NODE), (&vf.port_guid, PORT)] {
            if set {
                same(
                    "a GUID that was set",
                    text.parse::<Guid>()?,
                    expected.parse::<Guid>()?,
                )?;
            } else {
                holds("a GUID of zeros is refused", text.parse::<Guid>().is_err())?;
            }
        }
    }
    Ok(())
}

fn a_vf_with_roce_has_an_interface_and_an_rdma_device(node: &Node) -> Outcome {
    let vfs = Vfs::make(node.spare_pf()?, 1)?;
    let address = present("the VF", vfs.addresses().first().copied())?;
    let name = netdev(address)?;
    let stub = IbStub::add(address, LinkLayer::Roce)?;
    let sysfs = Sysfs::host();
    let vf = function(&sysfs, address)?;
    same("RDMA devices", vf.rdma_devices(), vec![stub.device()?])?;
    same("interface", vf.netdev(), Some(name))?;
    let device = present("the RDMA device", sysfs.rdma_device(&stub.device()?))?;
    same("its function", device.pci_address(), Some(address))?;
    for port in device.ports() {
        same("link layer", port.link_layer.as_deref(), Some("Ethernet"))?;
        same("GUID of an Ethernet port", port.guid, None)?;
    }
    Ok(())
}
