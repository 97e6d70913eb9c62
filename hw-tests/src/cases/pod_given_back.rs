//! VFs that a plugin does not restore, and VFs that move from pod to pod faster than DELs arrive.
//! The suite's own plugin leaves behind what sriov-cni leaves behind. The PF is up before its VFs
//! are created, as on a node.

use device_info::PciAddress;
use serde_json::{Value, json};

use crate::case::{Case, Outcome, Stop, holds, present, same};
use crate::cases::pod_vf::{RESOURCE, host_device, is_reported, vfs};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{
    Cluster, DriverBinding, LinkVf, Netns, VfSnapshot, Vfs, command, netdev, pf_and_number,
};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "pod/vlan_mac_trust_and_spoofchk_are_verified_on_the_pf_and_restored",
        needs: &[Feature::Pods, Feature::Sriov],
        run: vlan_mac_trust_and_spoofchk_are_verified_on_the_pf_and_restored,
    },
    Case {
        name: "pod/name_and_address_are_restored_after_a_lost_network_namespace",
        needs: &[Feature::Pods, Feature::Sriov],
        run: name_and_address_are_restored_after_a_lost_network_namespace,
    },
    Case {
        name: "pod/name_and_address_are_restored_below_a_pf_that_was_down",
        needs: &[Feature::Pods, Feature::Sriov],
        run: name_and_address_are_restored_below_a_pf_that_was_down,
    },
    Case {
        name: "pod/a_vf_in_another_network_namespace_is_named_before_anything_runs",
        needs: &[Feature::Pods, Feature::Sriov],
        run: a_vf_in_another_network_namespace_is_named_before_anything_runs,
    },
    Case {
        name: "pod/a_failed_del_on_vfio_pci_is_retried_and_the_pf_restored",
        needs: &[Feature::Pods, Feature::Vfio],
        run: a_failed_del_on_vfio_pci_is_retried_and_the_pf_restored,
    },
    Case {
        name: "pod/a_late_del_does_not_touch_the_vf_of_the_next_pod",
        needs: &[Feature::Pods, Feature::Sriov],
        run: a_late_del_does_not_touch_the_vf_of_the_next_pod,
    },
];

const MAC: &str = "02:00:00:00:77:06";

/// The plugin that leaves settings behind, with sriov-cni's settings for the VF.
fn sriov() -> Value {
    json!({ "type": "hwt-sriov", "vlan": 100, "vlanQoS": 3, "spoofchk": "off", "trust": "on",
            "mac": MAC, "capabilities": { "deviceID": true, "CNIDeviceInfoFile": true } })
}

/// Checks the VF's settings on the PF while the pod has it.
fn is_set(vf: PciAddress) -> Outcome {
    let (pf, number) = pf_and_number(vf)?;
    let state = LinkVf::of(&pf, number)?;
    same("VLAN and priority", state.vlan(), (100, 3))?;
    same("address", state.address.as_str(), MAC)?;
    same("spoof check", state.spoofchk, Some(false))?;
    same("trust", state.trust, Some(true))
}

fn vlan_mac_trust_and_spoofchk_are_verified_on_the_pf_and_restored(node: &Node) -> Outcome {
    let (vf, pf) = (node.vf(0)?, node.pf()?);
    let before = VfSnapshot::read(vf)?;
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[sriov()])?;
    let pod = cluster.pod("hwt-web", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    let took = pod.add()?;
    is_set(vf)?;
    is_reported(&pod.status("net1")?, vf, pf)?;
    pod.check()?;
    let (name, number) = pf_and_number(vf)?;
    let set = |key: &str, value: &str| {
        let number = number.to_string();
        command(
            "ip",
            &["link", "set", "dev", &name, "vf", &number, key, value],
        )
    };
    for (key, wrong, right) in [("vlan", "5", "100"), ("trust", "off", "on")] {
        set(key, wrong)?;
        pod.is_refused("CHECK", 105, &["hwt/vf (net1)", &vf.to_string(), key])?;
        set(key, right)?;
        if key == "vlan" {
            let number = number.to_string();
            let vlan = ["vlan", "100", "qos", "3"];
            let vf = ["link", "set", "dev", &name, "vf", &number];
            command("ip", &[vf.as_slice(), &vlan].concat())?;
        }
    }
    pod.check()?;
    let gone = pod.del()?;
    node.notes.write(format!(
        "ADD {} ms, DEL {} ms, with two reads of the PF's VF state each",
        took.as_millis(),
        gone.as_millis()
    ));
    before.is_back()?;
    cluster.nothing_is_left()
}

fn name_and_address_are_restored_after_a_lost_network_namespace(node: &Node) -> Outcome {
    is_restored_after_a_lost_network_namespace(node, node.vf(0)?)
}

fn name_and_address_are_restored_below_a_pf_that_was_down(node: &Node) -> Outcome {
    let pf = node.spare_pf()?;
    if pf == node.pf()? {
        return Err(Stop::Skipped(
            "it needs a second PF, because the first one is up; give --pf twice".to_owned(),
        ));
    }
    let vfs = Vfs::make_below_down(pf, 1)?;
    let vf = present("a VF", vfs.addresses().first().copied())?;
    is_restored_after_a_lost_network_namespace(node, vf)
}

fn is_restored_after_a_lost_network_namespace(node: &Node, vf: PciAddress) -> Outcome {
    let before = VfSnapshot::read(vf)?;
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[sriov()])?;
    let pod = cluster.pod("hwt-web", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    pod.add()?;
    pod.lose_netns();
    let left = netdev(vf)?;
    holds(
        format!("the kernel brings it back under another name than {left}"),
        left != before.interface.0,
    )?;
    pod.del()?;
    before.is_back()?;
    next_pod_has_the_own_address(&cluster, vf, &before)?;
    cluster.nothing_is_left()
}

/// Checks that a pod that requests no address gets the VF's own.
fn next_pod_has_the_own_address(cluster: &Cluster, vf: PciAddress, before: &VfSnapshot) -> Outcome {
    cluster.network("own", Some(RESOURCE), &[json!({ "type": "hwt-sriov" })])?;
    let next = cluster.pod("hwt-next", &json!([{ "name": "own" }]), &vfs(&[vf]))?;
    next.add()?;
    let address = next.link("net1")?.address;
    same("the next pod's address", &address, &before.interface.1)?;
    next.del()?;
    before.is_back()
}

fn a_vf_in_another_network_namespace_is_named_before_anything_runs(node: &Node) -> Outcome {
    let (vf, pf) = (node.vf(1)?, node.pf()?);
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[host_device()])?;
    let other = Netns::add("hwt-other")?;
    let name = netdev(vf)?;
    let taken = other.take(&name, "vf9")?;
    let pod = cluster.pod("hwt-web", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    let words = [
        "hwt/vf (net1)",
        &vf.to_string(),
        "/run/netns/hwt-other",
        "vf9",
    ];
    pod.is_refused("ADD", 104, &words)?;
    drop(taken);
    netdev(vf)?;
    cluster.network("pf", Some(RESOURCE), &[json!({ "type": "hwt-sriov" })])?;
    let wrong = cluster.pod("hwt-pf", &json!([{ "name": "pf" }]), &vfs(&[pf]))?;
    let words = ["hwt/pf (net1)", &pf.to_string(), "a physical function"];
    wrong.is_refused("ADD", 104, &words)?;
    pod.add()?;
    pod.del()?;
    wrong.del()?;
    cluster.nothing_is_left()
}

fn a_failed_del_on_vfio_pci_is_retried_and_the_pf_restored(node: &Node) -> Outcome {
    let (vf, pf) = (node.vf(0)?, node.pf()?);
    let (name, number) = pf_and_number(vf)?;
    let before = LinkVf::of(&name, number)?;
    let bound = DriverBinding::to(vf, "vfio-pci")?;
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[sriov()])?;
    let pod = cluster.pod("hwt-dpdk", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    pod.add()?;
    is_set(vf)?;
    is_reported(&pod.status("net1")?, vf, pf)?;
    pod.check()?;
    // The no-break space keeps containerd from taking the text for a success.
    pod.is_refused("DEL", 106, &["hwt/vf (net1)", "Link not\u{a0}found"])?;
    pod.del()?;
    same(
        "its settings on the PF afterwards",
        LinkVf::of(&name, number)?,
        before,
    )?;
    drop(bound);
    netdev(vf)?;
    cluster.nothing_is_left()
}

fn a_late_del_does_not_touch_the_vf_of_the_next_pod(node: &Node) -> Outcome {
    let vf = node.vf(0)?;
    let before = VfSnapshot::read(vf)?;
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[host_device()])?;
    let asked = json!([{ "name": "vf" }]);
    let [old, new] = [
        cluster.pod("hwt-old", &asked, &Value::Null)?,
        cluster.pod("hwt-new", &asked, &Value::Null)?,
    ];
    cluster.checkpoint("hwt-old", RESOURCE, &vf.to_string())?;
    old.add()?;
    cluster.checkpoint("hwt-new", RESOURCE, &vf.to_string())?;
    new.add()?;
    let is_the_new_ones = || {
        same(
            "the device behind",
            new.link("net1")?.parent_name,
            vf.to_string(),
        )
    };
    is_the_new_ones()?;
    holds("the old pod has it no more", old.link("net1").is_err())?;
    old.del()?;
    is_the_new_ones()?;
    new.check()?;
    new.del()?;
    before.is_back()?;
    cluster.nothing_is_left()
}
