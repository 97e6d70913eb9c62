//! vDPA devices in a pod: with and without a PCI function, for programs and for the kernel.

use serde_json::{Value, json};

use crate::case::{Case, Outcome, holds, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Cluster, DriverBinding, Vdpa, Vduse};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "pod/a_program_opens_a_vduse_device_by_its_character_device",
        needs: &[Feature::Pods, Feature::Vduse],
        run: a_program_opens_a_vduse_device_by_its_character_device,
    },
    Case {
        name: "pod/the_kernel_uses_a_vduse_device_as_an_interface",
        needs: &[Feature::Pods, Feature::Vduse],
        run: the_kernel_uses_a_vduse_device_as_an_interface,
    },
    Case {
        name: "pod/a_program_opens_a_virtio_function_by_its_character_device",
        needs: &[Feature::Pods, Feature::VpVdpa],
        run: a_program_opens_a_virtio_function_by_its_character_device,
    },
    Case {
        name: "pod/the_kernel_uses_a_virtio_function_as_an_interface",
        needs: &[Feature::Pods, Feature::VpVdpa],
        run: the_kernel_uses_a_virtio_function_as_an_interface,
    },
];

const RESOURCE: &str = "hwt.example/vdpa";

/// The suite's own plugin, which moves the interface if there is one.
fn own() -> Value {
    json!({ "type": "hwt-device",
            "capabilities": { "deviceID": true, "CNIDeviceInfoFile": true } })
}

/// Checks a device for a program: no interface, its path in network-status, a CHECK that notices a
/// missing driver.
fn is_opened_by_the_pod(node: &Node, vdpa: &Vdpa, id: &str, pci: Option<&str>) -> Outcome {
    vdpa.bind("vhost_vdpa")?;
    let path = format!("/dev/{}", vdpa.child("vhost-vdpa-")?);
    let cluster = Cluster::new(node)?;
    cluster.network("vdpa", Some(RESOURCE), &[own()])?;
    let devices = json!({ RESOURCE: [id] });
    let pod = cluster.pod("hwt-vdpa", &json!([{ "name": "vdpa" }]), &devices)?;
    pod.add()?;
    holds("the pod has no interface for it", pod.link("net1").is_err())?;
    let status = pod.status("net1")?;
    is_reported(&status, vdpa, "vhost", &path, pci)?;
    pod.check()?;
    vdpa.unbind()?;
    pod.is_refused("CHECK", 105, &["hwt/vdpa (net1)"])?;
    pod.del()?;
    cluster.nothing_is_left()
}

fn is_reported(
    status: &Value,
    vdpa: &Vdpa,
    driver: &str,
    path: &str,
    pci: Option<&str>,
) -> Outcome {
    let mut expected = json!({ "parent-device": vdpa.name(), "driver": driver, "path": path });
    if let Some(pci) = pci {
        expected["pci-address"] = json!(pci);
    }
    same("type", &status["device-info"]["type"], "vdpa")?;
    same("reported device", &status["device-info"]["vdpa"], &expected)
}

/// Checks a device for the kernel: its interface is in the pod and belongs to the device.
fn is_an_interface_of_the_pod(
    node: &Node,
    vdpa: &Vdpa,
    id: &str,
    plugin: Value,
    pci: Option<&str>,
) -> Outcome {
    vdpa.bind("virtio_vdpa")?;
    let virtio = match pci {
        None => vdpa.child("virtio")?,
        Some(_) => crate::rig::child(&crate::rig::sysfs::function(id.parse()?), "virtio")?,
    };
    let cluster = Cluster::new(node)?;
    cluster.network("vdpa", Some(RESOURCE), &[plugin])?;
    let devices = json!({ RESOURCE: [id] });
    let pod = cluster.pod("hwt-vdpa", &json!([{ "name": "vdpa" }]), &devices)?;
    pod.add()?;
    let link = pod.link("net1")?;
    same(
        "the device behind",
        link.parent_name.as_str(),
        virtio.as_str(),
    )?;
    let path = format!("/sys/bus/virtio/devices/{virtio}");
    let status = pod.status("net1")?;
    is_reported(&status, vdpa, "virtio", &path, pci)?;
    same("reported address", &status["mac"], &json!(link.address))?;
    pod.check()?;
    pod.del()?;
    cluster.nothing_is_left()
}

fn a_program_opens_a_vduse_device_by_its_character_device(node: &Node) -> Outcome {
    let vduse = Vduse::add("hwt-vduse")?;
    is_opened_by_the_pod(node, vduse.vdpa(), vduse.vdpa().name(), None)
}

fn the_kernel_uses_a_vduse_device_as_an_interface(node: &Node) -> Outcome {
    let vduse = Vduse::add("hwt-vduse")?;
    is_an_interface_of_the_pod(node, vduse.vdpa(), vduse.vdpa().name(), own(), None)
}

fn a_program_opens_a_virtio_function_by_its_character_device(node: &Node) -> Outcome {
    let address = node.virtio()?;
    let bound = DriverBinding::to(address, "vp-vdpa")?;
    let vdpa = Vdpa::add("hwt-vp", &format!("pci/{address}"))?;
    let id = address.to_string();
    is_opened_by_the_pod(node, &vdpa, &id, Some(&id))?;
    // The device goes before the function's driver, because otherwise the driver takes it along.
    drop(vdpa);
    drop(bound);
    Ok(())
}

/// The reference plugin host-device finds the interface below the function.
fn the_kernel_uses_a_virtio_function_as_an_interface(node: &Node) -> Outcome {
    let address = node.virtio()?;
    let bound = DriverBinding::to(address, "vp-vdpa")?;
    let vdpa = Vdpa::add("hwt-vp", &format!("pci/{address}"))?;
    let id = address.to_string();
    let plugin = json!({ "type": "host-device",
                         "capabilities": { "deviceID": true, "CNIDeviceInfoFile": true } });
    is_an_interface_of_the_pod(node, &vdpa, &id, plugin, Some(&id))?;
    drop(vdpa);
    drop(bound);
    Ok(())
}
