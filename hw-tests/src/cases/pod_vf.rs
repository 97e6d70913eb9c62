//! A VF in a pod: annotation, attachment, verification, network-status, CHECK, DEL, no leftovers.

use device_info::PciAddress;
use serde_json::{Value, json};

use crate::case::{Case, Outcome, Stop, holds, present, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Cluster, DriverBinding, Link, VfSnapshot, command, netdev, pf_and_number, sysfs};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "pod/a_vf_by_host_device_is_verified_reported_and_given_back",
        needs: &[Feature::Pods, Feature::Sriov],
        run: a_vf_by_host_device_is_verified_reported_and_given_back,
    },
    Case {
        name: "pod/a_pod_without_requests_keeps_the_settings_of_a_vf_on_its_pf",
        needs: &[Feature::Pods, Feature::Sriov],
        run: a_pod_without_requests_keeps_the_settings_of_a_vf_on_its_pf,
    },
    Case {
        name: "pod/a_vf_comes_back_although_the_network_namespace_is_gone",
        needs: &[Feature::Pods, Feature::Sriov],
        run: a_vf_comes_back_although_the_network_namespace_is_gone,
    },
    Case {
        name: "pod/another_interface_than_the_vf_is_refused_and_detached",
        needs: &[Feature::Pods, Feature::Sriov],
        run: another_interface_than_the_vf_is_refused_and_detached,
    },
    Case {
        name: "pod/the_devices_of_the_node_are_shown_with_their_pods",
        needs: &[Feature::Pods, Feature::Sriov],
        run: the_devices_of_the_node_are_shown_with_their_pods,
    },
    Case {
        name: "pod/a_vf_on_vfio_pci_is_reported_and_given_back",
        needs: &[Feature::Pods, Feature::Vfio],
        run: a_vf_on_vfio_pci_is_reported_and_given_back,
    },
];

/// The resource of the VFs.
pub(super) const RESOURCE: &str = "hwt.example/vf";

/// The reference plugin host-device, with its device as Kubernetes passes it.
pub(super) fn host_device() -> Value {
    json!({ "type": "host-device",
            "capabilities": { "deviceID": true, "CNIDeviceInfoFile": true } })
}

/// The VFs that kubelet would have allocated.
pub(super) fn vfs(addresses: &[PciAddress]) -> Value {
    let ids: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    json!({ RESOURCE: ids })
}

/// Checks the VF's part of network-status.
pub(super) fn is_reported(status: &Value, vf: PciAddress, pf: PciAddress) -> Outcome {
    let info = &status["device-info"];
    same("type", &info["type"], "pci")?;
    let pci = &info["pci"];
    same("the VF", &pci["pci-address"], &json!(vf.to_string()))?;
    same("its PF", &pci["pf-pci-address"], &json!(pf.to_string()))
}

fn a_vf_by_host_device_is_verified_reported_and_given_back(node: &Node) -> Outcome {
    const MAC: &str = "02:00:00:00:77:05";
    let (vf, pf) = (node.vf(0)?, node.pf()?);
    let before = VfSnapshot::read(vf)?;
    let cluster = Cluster::new(node)?;
    let mut first = host_device();
    first["ipam"] = json!({ "type": "static" });
    first["capabilities"]["ips"] = json!(true);
    let tuning = json!({ "type": "tuning", "capabilities": { "mac": true } });
    cluster.network("vf", Some(RESOURCE), &[first, tuning])?;
    let asked = json!([{ "name": "vf", "ips": ["192.0.2.5/24"], "mac": MAC }]);
    let pod = cluster.pod("hwt-web", &asked, &vfs(&[vf]))?;

    let took = pod.add()?;
    let link = pod.link("net1")?;
    same("the device behind", &link.parent_name, &vf.to_string())?;
    same("its address", link.address.as_str(), MAC)?;
    let shown = pod.run(&["ip", "-brief", "addr", "show", "dev", "net1"])?;
    holds(
        format!("192.0.2.5/24 in: {shown}"),
        shown.contains("192.0.2.5/24"),
    )?;
    let status = pod.status("net1")?;
    same("the network", &status["name"], "hwt/vf")?;
    same("reported address", &status["mac"], MAC)?;
    same("reported addresses", &status["ips"], &json!(["192.0.2.5"]))?;
    is_reported(&status, vf, pf)?;

    pod.check()?;
    pod.run(&["ip", "addr", "flush", "dev", "net1"])?;
    pod.is_refused("CHECK", 105, &["hwt/vf (net1)", "192.0.2.5"])
        .or_else(|_| pod.is_refused("CHECK", 100, &["hwt/vf (net1)"]))?;
    let gone = pod.del()?;
    node.notes.write(format!(
        "ADD {} ms, DEL {} ms, with cluster network, host-device, static and tuning",
        took.as_millis(),
        gone.as_millis()
    ));
    before.is_back()?;
    cluster.nothing_is_left()
}

/// An administrator's settings on the PF, restored when dropped.
struct Settings {
    pf: String,
    number: u32,
}

impl Settings {
    fn make(vf: PciAddress, words: &[&str]) -> Result<Self, Stop> {
        let (pf, number) = pf_and_number(vf)?;
        let settings = Self { pf, number };
        settings.set(words)?;
        Ok(settings)
    }

    fn set(&self, words: &[&str]) -> Outcome {
        let number = self.number.to_string();
        let vf = ["link", "set", "dev", &self.pf, "vf", &number];
        command("ip", &[vf.as_slice(), words].concat())?;
        Ok(())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // The next case that reads the VF finds what stays.
        let _ = self.set(&["vlan", "0", "qos", "0"]);
        let _ = self.set(&["spoofchk", "on"]);
        let _ = self.set(&["trust", "off"]);
    }
}

fn a_pod_without_requests_keeps_the_settings_of_a_vf_on_its_pf(node: &Node) -> Outcome {
    let vf = node.vf(0)?;
    let found = VfSnapshot::read(vf)?;
    let settings = Settings::make(vf, &["vlan", "100", "qos", "3"])?;
    settings.set(&["spoofchk", "off"])?;
    settings.set(&["trust", "on"])?;
    let before = VfSnapshot::read(vf)?;
    same("VLAN and priority", before.on_pf.vlan(), (100, 3))?;
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[host_device()])?;
    let pod = cluster.pod("hwt-web", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    pod.add()?;
    let on_pf = crate::rig::LinkVf::of(&settings.pf, settings.number)?;
    same(
        "its settings on the PF while the pod has it",
        &on_pf,
        &before.on_pf,
    )?;
    pod.check()?;
    pod.del()?;
    before.is_back()?;
    drop(settings);
    found.is_back()?;
    cluster.nothing_is_left()
}

fn a_vf_comes_back_although_the_network_namespace_is_gone(node: &Node) -> Outcome {
    let vf = node.vf(0)?;
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[host_device()])?;
    let pod = cluster.pod("hwt-web", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    let before = VfSnapshot::read(vf)?;
    pod.add()?;
    pod.lose_netns();
    // The kernel brings it back by itself, under its name in the pod.
    netdev(vf)?;
    pod.del()?;
    before.is_back()?;
    cluster.nothing_is_left()
}

fn another_interface_than_the_vf_is_refused_and_detached(node: &Node) -> Outcome {
    let (vf, other) = (node.vf(0)?, node.vf(1)?);
    let before = [VfSnapshot::read(vf)?, VfSnapshot::read(other)?];
    let cluster = Cluster::new(node)?;
    let wrong = json!({ "type": "hwt-device", "instead": other.to_string() });
    cluster.network("vf", Some(RESOURCE), &[wrong])?;
    let pod = cluster.pod("hwt-web", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    let words = ["hwt/vf (net1)", &vf.to_string(), &other.to_string()];
    pod.is_refused("ADD", 105, &words)?;
    for found in before {
        found.is_back()?;
    }
    pod.del()?;
    cluster.nothing_is_left()
}

fn a_vf_on_vfio_pci_is_reported_and_given_back(node: &Node) -> Outcome {
    let (vf, pf) = (node.vf(0)?, node.pf()?);
    let bound = DriverBinding::to(vf, "vfio-pci")?;
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[host_device()])?;
    let pod = cluster.pod("hwt-dpdk", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    pod.add()?;
    holds(
        "the pod has no interface for it",
        Link::show(None, "net1").is_err(),
    )?;
    holds("nor in its network namespace", pod.link("net1").is_err())?;
    is_reported(&pod.status("net1")?, vf, pf)?;
    pod.check()?;
    let group = present(
        "the IOMMU group",
        sysfs::link(sysfs::function(vf).join("iommu_group")),
    )?;
    holds(
        format!("/dev/vfio/{group}"),
        std::path::Path::new(&format!("/dev/vfio/{group}")).exists(),
    )?;
    pod.del()?;
    drop(bound);
    netdev(vf)?;
    cluster.nothing_is_left()
}

fn the_devices_of_the_node_are_shown_with_their_pods(node: &Node) -> Outcome {
    let vf = node.vf(1)?;
    let id = vf.to_string();
    let cluster = Cluster::new(node)?;
    cluster.network("vf", Some(RESOURCE), &[host_device()])?;
    let pod = cluster.pod("hwt-web", &json!([{ "name": "vf" }]), &vfs(&[vf]))?;
    pod.add()?;
    let reported: Value = serde_json::from_str(&cluster.devices("json")?)?;
    let user = json!([{ "device": id, "pod": "hwt/hwt-web", "container": "hwt-web",
                        "network": "hwt/vf", "interface": "net1" }]);
    same("users of the devices", &reported["users"], &user)?;
    same("orphans", &reported["orphans"], &json!([]))?;
    let table = cluster.devices("table")?;
    let row = table.lines().find(|line| line.starts_with(&id));
    let row = present(format!("{id} in: {table}"), row)?;
    holds(row, row.contains(" hwt/hwt-web net1 (hwt/vf)"))?;
    let picture = cluster.devices("svg")?;
    let shown = format!("data-device=\"{id}\"");
    same(
        "how often the VF is drawn",
        picture.matches(&shown).count(),
        1,
    )?;
    holds(
        "its pod is beside it",
        picture.contains(">hwt/hwt-web</text>"),
    )?;
    pod.del()?;
    let reported: Value = serde_json::from_str(&cluster.devices("json")?)?;
    same(
        "users of the devices afterwards",
        &reported["users"],
        &json!([]),
    )?;
    cluster.nothing_is_left()
}
