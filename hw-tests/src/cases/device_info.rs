//! Device information of the specification, made of what the machine says.

use device_info::{Devlink, Facts, Switch, Sysfs, WireDeviceInfo, complete};
use serde_json::{Value, json};

use crate::case::{Case, Outcome, Stop, holds, present, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Bound, IbStub, LinkLayer, Vdpa, Vfs, child, command, netdev, sysfs};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "device-info/a_vf_names_itself_and_its_pf",
        needs: &[Feature::Guest, Feature::Sriov],
        run: a_vf_names_itself_and_its_pf,
    },
    Case {
        name: "device-info/a_vf_of_user_space_names_vhost_net",
        needs: &[Feature::Guest, Feature::Vfio],
        run: a_vf_of_user_space_names_vhost_net,
    },
    Case {
        name: "device-info/what_a_plugin_wrote_of_another_device_is_refused",
        needs: &[Feature::Sriov],
        run: what_a_plugin_wrote_of_another_device_is_refused,
    },
    Case {
        name: "device-info/a_vdpa_device_names_its_driver_and_its_path",
        needs: &[Feature::VdpaSim],
        run: a_vdpa_device_names_its_driver_and_its_path,
    },
    Case {
        name: "device-info/a_function_with_a_vdpa_device_is_one",
        needs: &[Feature::VpVdpa],
        run: a_function_with_a_vdpa_device_is_one,
    },
    Case {
        name: "device-info/a_vf_names_its_rdma_device",
        needs: &[Feature::Guest, Feature::IpoibStub],
        run: a_vf_names_its_rdma_device,
    },
];

/// What the machine says of a device, as the plugin asks it.
fn facts(id: &str) -> Result<Facts, Stop> {
    let sysfs = Sysfs::host();
    let mut devlink = Devlink::open()?;
    let mut failed = None;
    let facts = Facts::read(&sysfs, id, &mut |device| {
        Switch::read(&mut devlink, device)
            .map_err(|error| failed = Some(error))
            .ok()
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    same("remarks", sysfs.take_remarks().len(), 0)?;
    present(format!("{id} as a device"), facts)
}

/// The whole of what is said of a device that nobody wrote a file on.
fn is_told_as(id: &str, expected: &Value) -> Outcome {
    let told = present("device information", complete(None, Some(&facts(id)?))?)?;
    same("device information", &serde_json::to_value(told)?, expected)
}

// clause: DEVINFO-1.1.0 §3.1.3.4 pf-pci-address: of the physical interface
fn a_vf_names_itself_and_its_pf(node: &Node) -> Outcome {
    let (vf, pf) = (node.vf(0)?.to_string(), node.pf()?.to_string());
    is_told_as(
        &vf,
        &json!({"type": "pci", "version": "1.1.0", "pci": {"pci-address": vf, "pf-pci-address": pf}}),
    )
}

// clause: DEVINFO-1.1.0 §3.1.3.2 vhost-net: the exceptional path's character device
fn a_vf_of_user_space_names_vhost_net(node: &Node) -> Outcome {
    let (address, pf) = (node.vf(0)?, node.pf()?.to_string());
    for module in ["tun", "vhost_net"] {
        command("modprobe", &[module])?;
    }
    let bound = Bound::to(address, "vfio-pci")?;
    let vf = address.to_string();
    is_told_as(
        &vf,
        &json!({"type": "pci", "version": "1.1.0", "pci": {
            "pci-address": vf, "vhost-net": "/dev/vhost-net", "pf-pci-address": pf,
        }}),
    )?;
    drop(bound);
    netdev(address).map(drop)
}

fn what_a_plugin_wrote_of_another_device_is_refused(node: &Node) -> Outcome {
    let (vf, other) = (node.vf(0)?.to_string(), node.vf(1)?.to_string());
    let written = |pci: Value| {
        let file = json!({"type": "pci", "version": "1.0.0", "pci": pci});
        WireDeviceInfo::from_json(file.to_string().as_bytes())
    };
    let facts = facts(&vf)?;
    let own = complete(Some(written(json!({"pci-address": vf}))?), Some(&facts))?;
    holds("its own is taken", own.is_some())?;
    for (pci, wrong) in [
        (json!({"pci-address": other}), &other),
        (json!({"pci-address": vf, "pf-pci-address": other}), &other),
    ] {
        match complete(Some(written(pci)?), Some(&facts)) {
            Ok(taken) => return Err(Stop::failed(format!("it was taken: {taken:?}"))),
            Err(error) => holds(
                format!("it names both: {error}"),
                error.to_string().contains(wrong.as_str()) && error.to_string().contains(&vf),
            )?,
        }
    }
    Ok(())
}

// clause: DEVINFO-1.1.0 §3.1.4 vdpa: parent-device, driver and path
fn a_vdpa_device_names_its_driver_and_its_path(_: &Node) -> Outcome {
    let vdpa = Vdpa::add("hwt-sim0", "vdpasim_net")?;
    let told = |driver: &str, path: String| {
        is_told_as(
            vdpa.name(),
            &json!({"type": "vdpa", "version": "1.1.0", "vdpa": {
                "parent-device": vdpa.name(), "driver": driver, "path": path,
            }}),
        )
    };
    vdpa.bind("vhost_vdpa")?;
    told("vhost", format!("/dev/{}", vdpa.child("vhost-vdpa-")?))?;
    vdpa.bind("virtio_vdpa")?;
    let virtio = vdpa.child("virtio")?;
    told("virtio", format!("/sys/bus/virtio/devices/{virtio}"))
}

// clause: DEVINFO-1.1.0 §3.1.4.4 pci-address: of the function behind a vDPA device
fn a_function_with_a_vdpa_device_is_one(node: &Node) -> Outcome {
    let address = node.virtio()?;
    let bound = Bound::to(address, "vp-vdpa")?;
    let vdpa = Vdpa::add("hwt-vp", &format!("pci/{address}"))?;
    vdpa.bind("virtio_vdpa")?;
    let virtio = child(&sysfs::function(address), "virtio")?;
    let expected = json!({"type": "vdpa", "version": "1.1.0", "vdpa": {
        "parent-device": "hwt-vp", "driver": "virtio",
        "path": format!("/sys/bus/virtio/devices/{virtio}"), "pci-address": address.to_string(),
    }});
    is_told_as(&address.to_string(), &expected)?;
    is_told_as("hwt-vp", &expected)?;
    drop(vdpa);
    drop(bound);
    Ok(())
}

// clause: DEVINFO-1.1.0 §3.1.3.3 rdma-device: the name of the RDMA device
fn a_vf_names_its_rdma_device(node: &Node) -> Outcome {
    let pf = node.spare_pf()?;
    let vfs = Vfs::make(pf, 1)?;
    let address = present("the VF", vfs.addresses().first().copied())?;
    let stub = IbStub::add(address, LinkLayer::Roce)?;
    let vf = address.to_string();
    is_told_as(
        &vf,
        &json!({"type": "pci", "version": "1.1.0", "pci": {
            "pci-address": vf, "rdma-device": stub.device()?, "pf-pci-address": pf.to_string(),
        }}),
    )
}
