//! IPoIB in a pod, with a GUID that the pod asks for. The RDMA devices are STUBS that carry no
//! traffic, and whose GUIDs are fixed: the pod asks for the one that its VF has.

use device_info::{Guid, IpoibAddr};
use serde_json::json;

use crate::case::{Case, Outcome, same};
use crate::cases::pod_vf::{RESOURCE, vfs};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Bound, Cluster, IbStub, Link, LinkLayer, LinkVf, PfStub};

pub(super) const CASES: &[Case] = &[Case {
    name: "pod/an_ipoib_interface_has_the_guid_that_was_asked_for",
    needs: &[Feature::Pods, Feature::IpoibStub],
    run: an_ipoib_interface_has_the_guid_that_was_asked_for,
}];

fn an_ipoib_interface_has_the_guid_that_was_asked_for(node: &Node) -> Outcome {
    let pf = node.spare_pf()?;
    let driver = PfStub::make(pf, 1)?;
    let vf = driver.vf(0)?;
    // A function without a driver is refused, and the RDMA stub is none.
    let bound = Bound::to(vf, "pci-pf-stub")?;
    let on_pf = IbStub::add(pf, LinkLayer::InfiniBand)?;
    let stub = IbStub::add(vf, LinkLayer::InfiniBand)?;
    let name = stub.netdev()?;
    let address: IpoibAddr = Link::show(None, &name)?.address.parse()?;
    let guid = address.port_guid();

    let cluster = Cluster::new(node)?;
    let plugin = json!({ "type": "hwt-sriov", "capabilities": {
        "deviceID": true, "CNIDeviceInfoFile": true, "infinibandGUID": true } });
    cluster.network("ib", Some(RESOURCE), &[plugin])?;
    let asked = json!([{ "name": "ib", "infiniband-guid": guid.to_string() }]);
    let pod = cluster.pod("hwt-ib", &asked, &vfs(&[vf]))?;
    pod.add()?;
    let link = pod.link("net1")?;
    same("type", link.link_type.as_str(), "infiniband")?;
    let found: IpoibAddr = link.address.parse()?;
    same("its port GUID", found.port_guid(), guid)?;
    let state = LinkVf::of(&on_pf.netdev()?, 0)?;
    same("set on the PF", state.port_guid.parse::<Guid>()?, guid)?;
    let status = pod.status("net1")?;
    same("told address", &status["mac"], &json!(link.address))?;
    let pci = &status["device-info"]["pci"];
    same(
        "told RDMA device",
        &pci["rdma-device"],
        &json!(stub.device()?),
    )?;
    pod.check()?;
    pod.del()?;

    // Eight octets more or less make another GUID: that one the device does not have.
    let other = json!([{ "name": "ib", "infiniband-guid": "02:00:00:00:00:00:77:3e" }]);
    let refused = cluster.pod("hwt-ib2", &other, &vfs(&[vf]))?;
    refused.is_refused("ADD", 105, &["hwt/ib (net1)", "02:00:00:00:00:00:77:3e"])?;
    refused.del()?;
    same("its name on the host again", stub.netdev()?, name)?;
    cluster.nothing_is_left()?;
    drop(stub);
    drop(on_pf);
    drop(bound);
    Ok(())
}
