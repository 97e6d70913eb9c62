//! Soft RoCE on a VF: an RDMA device without a PCI function of its own.

use device_info::Sysfs;
use serde::Deserialize;

use crate::case::{Case, Outcome, Stop, present, same};
use crate::cases::sriov::function;
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Netns, Rxe, command, netdev};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "rdma-shared/a_soft_device_has_an_interface_and_no_function",
        needs: &[Feature::RdmaShared],
        run: a_soft_device_has_an_interface_and_no_function,
    },
    Case {
        name: "rdma-shared/every_namespace_sees_the_device",
        needs: &[Feature::RdmaShared],
        run: every_namespace_sees_the_device,
    },
];

/// A device in the output of `rdma -j dev show`.
#[derive(Debug, Deserialize)]
struct DeviceEntry {
    ifname: String,
    node_guid: String,
}

/// Returns the node GUID that netlink shows.
pub(super) fn node_guid(name: &str) -> Result<String, Stop> {
    let output = command("rdma", &["-j", "dev", "show"])?;
    let devices: Vec<DeviceEntry> = serde_json::from_str(&output)?;
    let device = devices.into_iter().find(|device| device.ifname == name);
    Ok(present(format!("RDMA device {name}"), device)?.node_guid)
}

fn a_soft_device_has_an_interface_and_no_function(node: &Node) -> Outcome {
    let name = netdev(node.vf(0)?)?;
    let rxe = Rxe::add("hwt-rxe", &name)?;
    let sysfs = Sysfs::host();
    let device = present("the RDMA device", sysfs.rdma_device(rxe.name()))?;
    same("function", device.pci_address(), None)?;
    same("interface", device.parent_netdev(), Some(name))?;
    let guid = node_guid(rxe.name())?.parse()?;
    same("node GUID", device.node_guid(), Some(guid))?;
    let ports = device.ports();
    same("ports", ports.len(), 1)?;
    for port in ports {
        same("number", port.number, 1)?;
        same("link layer", port.link_layer.as_deref(), Some("Ethernet"))?;
        same("GUID of an Ethernet port", port.guid, None)?;
    }
    let vf = function(&sysfs, node.vf(0)?)?;
    same(
        "RDMA devices of the VF",
        vf.rdma_devices(),
        Vec::<String>::new(),
    )
}

fn every_namespace_sees_the_device(node: &Node) -> Outcome {
    let rxe = Rxe::add("hwt-rxe", &netdev(node.vf(0)?)?)?;
    let pod = Netns::add("hwt-pod")?;
    let seen = pod.run(&["ls", "/sys/class/infiniband"])?;
    same("in a namespace of its own", seen.trim(), rxe.name())?;
    let listed: Vec<String> = Sysfs::host()
        .rdma_devices()
        .iter()
        .map(|device| device.name().to_owned())
        .collect();
    same("on the host", listed, vec![rxe.name().to_owned()])
}
