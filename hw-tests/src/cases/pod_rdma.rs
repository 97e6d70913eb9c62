//! Pods with RDMA devices that belong to one network namespace each.

use serde_json::json;

use crate::case::{Case, Outcome, holds, same};
use crate::cases::pod_vf::{RESOURCE, host_device, vfs};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Cluster, IbStub, LinkLayer, Rxe, netdev, sysfs, until};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "pod/a_pod_with_a_vf_sees_no_rdma_device_of_the_host",
        needs: &[Feature::Pods, Feature::RdmaExclusive],
        run: a_pod_with_a_vf_sees_no_rdma_device_of_the_host,
    },
    Case {
        name: "pod/an_rdma_device_goes_with_its_vf_and_comes_back",
        needs: &[Feature::Pods, Feature::RdmaExclusive, Feature::IpoibStub],
        run: an_rdma_device_goes_with_its_vf_and_comes_back,
    },
];

/// Soft RoCE is on the other VF.
fn a_pod_with_a_vf_sees_no_rdma_device_of_the_host(node: &Node) -> Outcome {
    let vf = node.vf(0)?;
    let rxe = Rxe::add("hwt-rxe", &netdev(node.vf(1)?)?)?;
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[host_device()])?;
    let pod = cluster.pod("hwt-web", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    pod.add()?;
    same(
        "in the pod",
        pod.run(&["ls", "/sys/class/infiniband"])?.trim(),
        "",
    )?;
    holds("it is on the host", rxe.folder().exists())?;
    let status = pod.status("net1")?;
    let pci = &status["device-info"]["pci"];
    holds(
        "no RDMA device is reported",
        pci.get("rdma-device").is_none(),
    )?;
    pod.check()?;
    pod.del()?;
    cluster.nothing_is_left()
}

/// The RDMA device is the stub, because soft RoCE cannot be moved.
fn an_rdma_device_goes_with_its_vf_and_comes_back(node: &Node) -> Outcome {
    let vf = node.vf(0)?;
    let stub = IbStub::add(vf, LinkLayer::Roce)?;
    let name = stub.device()?;
    let cluster = Cluster::new(node)?;
    let rdma = json!({ "type": "hwt-rdma", "capabilities": { "deviceID": true } });
    cluster.network("vf", Some(RESOURCE), &[host_device(), rdma])?;
    let pod = cluster.pod("hwt-rdma", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    pod.add()?;
    let seen = pod.run(&["ls", "/sys/class/infiniband"])?;
    same("in the pod", seen.trim(), name.as_str())?;
    let on_host = || sysfs::names(sysfs::function(vf).join("infiniband"));
    same("on the host", on_host(), Vec::<String>::new())?;
    let status = pod.status("net1")?;
    same(
        "reported device",
        &status["device-info"]["pci"]["rdma-device"],
        &json!(name),
    )?;
    pod.check()?;
    pod.del()?;
    until("the RDMA device is back", || {
        (on_host() == [name.clone()]).then_some(())
    })?;
    cluster.nothing_is_left()
}
