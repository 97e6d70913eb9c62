//! Interfaces of netdevsim in a pod.

use device_info::{Devlink, DevlinkHandle, PortFlavour, Switch};
use serde_json::json;

use crate::case::{Case, Outcome, Stop, holds, present, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Cluster, Link, Netdevsim, until};

pub(super) const CASES: &[Case] = &[Case {
    name: "pod/a_representor_goes_into_a_pod_and_comes_back_to_its_port",
    needs: &[Feature::Pods, Feature::Switchdev],
    run: a_representor_goes_into_a_pod_and_comes_back_to_its_port,
}];

/// A representor is not made for pods, but netdevsim's VFs have no interface of their own. The case
/// shows that a parent without PCI and devlink's ports cause no problem.
fn a_representor_goes_into_a_pod_and_comes_back_to_its_port(node: &Node) -> Outcome {
    let device = Netdevsim::add(4_711, 1)?;
    device.make_vfs(2)?;
    device.set_mode("switchdev")?;
    until("a representor for each VF", || {
        (device.netdevs().len() == 3).then_some(())
    })?;
    let handle = DevlinkHandle {
        bus: "netdevsim".to_owned(),
        name: device.name(),
    };
    let mut devlink = Devlink::open()?;
    let representor = representor_of_vf_1(&mut devlink, &handle)?;
    let representor = present("the representor of VF 1", representor)?;
    let before = Link::show(None, &representor)?.address;

    let cluster = Cluster::new(node)?;
    let plugin = json!({ "type": "host-device", "device": representor });
    cluster.network("representor", None, &[plugin])?;
    let pod = cluster.pod("hwt-rep", &json!([{ "name": "representor" }]), &json!({}))?;
    pod.add()?;
    let link = pod.link("net1")?;
    same("its address", link.address.as_str(), before.as_str())?;
    same(
        "its parent",
        link.parent_name.as_str(),
        device.name().as_str(),
    )?;
    holds(
        "it is gone from the host",
        Link::show(None, &representor).is_err(),
    )?;
    let status = pod.status("net1")?;
    same("reported address", &status["mac"], &json!(before))?;
    holds(
        "no PCI device is reported",
        status.get("device-info").is_none(),
    )?;
    pod.check()?;
    pod.del()?;
    let back = representor_of_vf_1(&mut devlink, &handle)?;
    same("the representor of VF 1 again", back, Some(representor))?;
    cluster.nothing_is_left()
}

fn representor_of_vf_1(
    devlink: &mut Devlink,
    handle: &DevlinkHandle,
) -> Result<Option<String>, Stop> {
    let ports = Switch::read(devlink, handle)?.ports.into_iter();
    let mut of_it = ports.filter(|port| port.flavour == PortFlavour::PciVf && port.vf == Some(1));
    Ok(of_it.next().and_then(|port| port.netdev))
}
