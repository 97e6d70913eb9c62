//! A bond over two VFs in the pod: later attachments build on earlier ones. The plugin is the
//! suite's own, because bond-cni is not available everywhere as a Go module.

use serde_json::json;

use crate::case::{Case, Outcome, holds, same};
use crate::cases::pod_vf::{RESOURCE, host_device, is_reported, vfs};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Cluster, VfSnapshot};

pub(super) const CASES: &[Case] = &[Case {
    name: "pod/a_bond_over_two_vfs_is_verified_and_both_are_given_back",
    needs: &[Feature::Pods, Feature::Sriov, Feature::Bond],
    run: a_bond_over_two_vfs_is_verified_and_both_are_given_back,
}];

fn a_bond_over_two_vfs_is_verified_and_both_are_given_back(node: &Node) -> Outcome {
    let both = [node.vf(0)?, node.vf(1)?];
    let before = [VfSnapshot::read(both[0])?, VfSnapshot::read(both[1])?];
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[host_device()])?;
    // Each VF keeps its own address, because an untrusted VF must not change it.
    let bond = json!({ "type": "hwt-bond", "links": ["net1", "net2"],
                       "capabilities": { "ips": true } });
    cluster.network("bond", None, &[bond])?;
    let asked = json!([
        { "name": "vf" }, { "name": "vf" },
        { "name": "bond", "interface": "bond0", "ips": ["192.0.2.6/24"] },
    ]);
    let pod = cluster.pod("hwt-bond", &asked, &vfs(&both))?;
    pod.add()?;
    for (interface, vf) in ["net1", "net2"].iter().zip(both) {
        let link = pod.link(interface)?;
        same("the device behind", &link.parent_name, &vf.to_string())?;
        same("its master", link.master.as_deref(), Some("bond0"))?;
        is_reported(&pod.status(interface)?, vf, node.pf()?)?;
    }
    let reported = pod.status("bond0")?;
    same(
        "reported addresses",
        &reported["ips"],
        &json!(["192.0.2.6"]),
    )?;
    holds(
        "a bond is not a device",
        reported.get("device-info").is_none(),
    )?;
    pod.check()?;
    pod.run(&["ip", "link", "set", "dev", "net2", "nomaster"])?;
    pod.del()?;
    for found in before {
        found.is_back()?;
    }
    cluster.nothing_is_left()
}
