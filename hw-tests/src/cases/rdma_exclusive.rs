//! RDMA devices that belong to one network namespace each.

use device_info::Sysfs;

use crate::case::{Case, Outcome, holds, present, same};
use crate::cases::sriov::function;
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{IbStub, LinkLayer, Netns, Rxe, command, netdev, until};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "rdma-exclusive/only_the_host_sees_its_device",
        needs: &[Feature::RdmaExclusive],
        run: only_the_host_sees_its_device,
    },
    Case {
        name: "rdma-exclusive/a_device_in_a_pod_is_gone_from_the_host",
        needs: &[Feature::RdmaExclusive, Feature::IpoibStub],
        run: a_device_in_a_pod_is_gone_from_the_host,
    },
];

fn only_the_host_sees_its_device(node: &Node) -> Outcome {
    let rxe = Rxe::add("hwt-rxe", &netdev(node.vf(0)?)?)?;
    let pod = Netns::add("hwt-pod")?;
    same(
        "in a namespace of its own",
        pod.run(&["ls", "/sys/class/infiniband"])?.trim(),
        "",
    )?;
    holds(
        "on the host",
        Sysfs::host().rdma_device(rxe.name()).is_some(),
    )
}

/// The kernel moves only devices whose driver can disconnect their users, which soft RoCE cannot.
/// The device is therefore the stub.
fn a_device_in_a_pod_is_gone_from_the_host(node: &Node) -> Outcome {
    let address = node.vf(0)?;
    let stub = IbStub::add(address, LinkLayer::Roce)?;
    let name = stub.device()?;
    let pod = Netns::add("hwt-pod")?;
    let sysfs = Sysfs::host();
    let vf = function(&sysfs, address)?;
    same(
        "the VF's RDMA devices",
        vf.rdma_devices(),
        vec![name.clone()],
    )?;

    command("rdma", &["dev", "set", &name, "netns", pod.name()])?;
    let seen = pod.run(&["ls", "/sys/class/infiniband"])?;
    same("in the pod", seen.trim(), name.as_str())?;
    holds("on the host it is gone", sysfs.rdma_device(&name).is_none())?;
    same(
        "the VF's RDMA devices",
        vf.rdma_devices(),
        Vec::<String>::new(),
    )?;
    same("remarks", sysfs.take_remarks().len(), 0)?;

    drop(pod);
    until("the device comes back", || sysfs.rdma_device(&name))?;
    let back = present("the device", sysfs.rdma_device(&name))?;
    same("its function", back.pci_address(), Some(address))
}
