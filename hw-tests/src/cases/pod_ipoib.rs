//! IPoIB in a pod with a GUID that the pod requests. The RDMA devices are STUBS that carry no
//! traffic. A VF has the GUIDs that its PF had set for it when it was bound.

use device_info::{Guid, IpoibAddr, PciAddress};
use serde_json::{Value, json};

use crate::case::{Case, Outcome, Stop, holds, same};
use crate::cases::pod_vf::{RESOURCE, vfs};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{BoundStub, Cluster, IbStub, Link, LinkLayer, LinkVf, PfStub, netdev};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "pod/an_ipoib_interface_has_the_requested_guid_and_its_own_afterwards",
        needs: &[Feature::Pods, Feature::IpoibStub],
        run: an_ipoib_interface_has_the_requested_guid_and_its_own_afterwards,
    },
    Case {
        name: "pod/a_guid_is_restored_after_a_lost_network_namespace",
        needs: &[Feature::Pods, Feature::IpoibStub],
        run: a_guid_is_restored_after_a_lost_network_namespace,
    },
    Case {
        name: "pod/a_guid_is_restored_after_an_add_that_failed_later",
        needs: &[Feature::Pods, Feature::IpoibStub],
        run: a_guid_is_restored_after_an_add_that_failed_later,
    },
    Case {
        name: "pod/a_vf_that_cannot_be_restored_is_not_given_to_a_pod",
        needs: &[Feature::Pods, Feature::IpoibStub],
        run: a_vf_that_cannot_be_restored_is_not_given_to_a_pod,
    },
];

/// A GUID that the pod requests and no VF has.
const GUID: &str = "02:00:00:00:00:00:77:3e";

/// A PF and one of its VFs with stub RDMA devices. The order of the fields is the order of removal.
struct Fabric {
    stub: BoundStub,
    on_pf: IbStub,
    _driver: PfStub,
    vf: PciAddress,
    /// The VF's original interface and GUID.
    own: (String, Guid),
}

impl Fabric {
    fn make(node: &Node) -> Result<Self, Stop> {
        let pf = node.spare_pf()?;
        let driver = PfStub::make(pf, 1)?;
        let vf = driver.vf(0)?;
        let on_pf = IbStub::add(pf, LinkLayer::InfiniBand)?;
        let stub = IbStub::bind(vf)?;
        let own = interface(vf)?;
        Ok(Self {
            stub,
            on_pf,
            _driver: driver,
            vf,
            own,
        })
    }

    /// Returns the GUID that the PF has set for the VF.
    fn set(&self) -> Result<Guid, Stop> {
        let state = LinkVf::of(&self.on_pf.netdev()?, 0)?;
        Ok(Guid::parse_observed(&state.port_guid)?)
    }

    /// Checks that name and GUID are the VF's own again, and that the PF has set none.
    fn is_back(&self) -> Outcome {
        same("interface and GUID", interface(self.vf)?, self.own.clone())?;
        same("set on the PF", self.set()?, Guid::from([0; 8]))
    }

    /// Checks that a pod that requests no GUID gets the VF's own.
    fn next_pod_has_its_own(&self, cluster: &Cluster) -> Outcome {
        let pod = cluster.pod("hwt-next", &json!([{ "name": "ib" }]), &vfs(&[self.vf]))?;
        pod.add()?;
        let found: IpoibAddr = pod.link("net1")?.address.parse()?;
        same("the next pod's GUID", found.port_guid(), self.own.1)?;
        pod.del()?;
        self.is_back()
    }
}

fn interface(vf: PciAddress) -> Result<(String, Guid), Stop> {
    let name = netdev(vf)?;
    let address: IpoibAddr = Link::show(None, &name)?.address.parse()?;
    Ok((name, address.port_guid()))
}

fn ib_sriov(fails: Option<&str>) -> Value {
    json!({ "type": "hwt-ib-sriov", "fails": fails, "capabilities": {
        "deviceID": true, "CNIDeviceInfoFile": true, "infinibandGUID": true } })
}

fn asked() -> Value {
    json!([{ "name": "ib", "infiniband-guid": GUID }])
}

fn an_ipoib_interface_has_the_requested_guid_and_its_own_afterwards(node: &Node) -> Outcome {
    let fabric = Fabric::make(node)?;
    let guid: Guid = GUID.parse()?;
    let cluster = Cluster::new(node)?;
    cluster.network("ib", Some(RESOURCE), &[ib_sriov(None)])?;
    let pod = cluster.pod("hwt-ib", &asked(), &vfs(&[fabric.vf]))?;
    pod.add()?;
    let link = pod.link("net1")?;
    same("type", link.link_type.as_str(), "infiniband")?;
    let found: IpoibAddr = link.address.parse()?;
    same("its port GUID", found.port_guid(), guid)?;
    same("set on the PF", fabric.set()?, guid)?;
    let status = pod.status("net1")?;
    let reported = status["mac"].as_str().unwrap_or_default();
    let reported: IpoibAddr = reported.parse()?;
    same("reported address's GUID", reported.port_guid(), guid)?;
    let pci = &status["device-info"]["pci"];
    same(
        "reported RDMA device",
        &pci["rdma-device"],
        &json!(fabric.stub.device()?),
    )?;
    pod.check()?;
    pod.del()?;
    fabric.is_back()?;
    fabric.next_pod_has_its_own(&cluster)?;
    cluster.nothing_is_left()
}

fn a_guid_is_restored_after_a_lost_network_namespace(node: &Node) -> Outcome {
    let fabric = Fabric::make(node)?;
    let cluster = Cluster::new(node)?;
    cluster.network("ib", Some(RESOURCE), &[ib_sriov(None)])?;
    let pod = cluster.pod("hwt-ib", &asked(), &vfs(&[fabric.vf]))?;
    pod.add()?;
    pod.lose_netns();
    let (_, left) = interface(fabric.vf)?;
    same("the GUID that the kernel brings back", left, GUID.parse()?)?;
    pod.del()?;
    fabric.is_back()?;
    fabric.next_pod_has_its_own(&cluster)?;
    cluster.nothing_is_left()
}

fn a_guid_is_restored_after_an_add_that_failed_later(node: &Node) -> Outcome {
    let fabric = Fabric::make(node)?;
    let cluster = Cluster::new(node)?;
    for fails in ["rebind", "after"] {
        cluster.network("ib", Some(RESOURCE), &[ib_sriov(Some(fails))])?;
        let pod = cluster.pod("hwt-ib", &asked(), &vfs(&[fabric.vf]))?;
        pod.is_refused("ADD", 100, &["hwt/ib (net1)"])?;
        fabric.is_back()?;
        pod.del()?;
    }
    cluster.network("ib", Some(RESOURCE), &[ib_sriov(None)])?;
    fabric.next_pod_has_its_own(&cluster)?;
    cluster.nothing_is_left()
}

/// The PF refuses to change the VF's GUID during the DEL.
fn a_vf_that_cannot_be_restored_is_not_given_to_a_pod(node: &Node) -> Outcome {
    let fabric = Fabric::make(node)?;
    let cluster = Cluster::new(node)?;
    cluster.network("ib", Some(RESOURCE), &[ib_sriov(None)])?;
    let pod = cluster.pod("hwt-ib", &asked(), &vfs(&[fabric.vf]))?;
    pod.add()?;
    pod.lose_netns();
    netdev(fabric.vf)?;
    fabric.on_pf.keeps_guids(true)?;
    pod.del()?;
    same(
        "it has the pod's GUID",
        interface(fabric.vf)?.1,
        GUID.parse()?,
    )?;
    let id = fabric.vf.to_string();
    let kept = cluster.path("journal/unrestored").join(&id);
    holds(format!("{} exists", kept.display()), kept.exists())?;
    let own = json!([{ "name": "ib" }]);
    let next = cluster.pod("hwt-own", &own, &vfs(&[fabric.vf]))?;
    let words = [
        "hwt/ib (net1)",
        &id,
        "still has the GUID",
        "infiniband-guid",
    ];
    next.is_refused("ADD", 104, &words)?;
    next.del()?;
    fabric.on_pf.keeps_guids(false)?;
    fabric.next_pod_has_its_own(&cluster)?;
    cluster.nothing_is_left()
}
