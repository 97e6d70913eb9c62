//! Device information made of the machine's facts.

use device_info::{Devlink, Facts, Switch, Sysfs, WireDeviceInfo, complete};
use serde_json::{Value, json};

use crate::case::{Case, Outcome, Stop, holds, present, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{DriverBinding, IbStub, LinkLayer, Vdpa, Vfs, child, command, netdev, sysfs};

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
        name: "device-info/a_file_of_another_device_is_refused",
        needs: &[Feature::Sriov],
        run: a_file_of_another_device_is_refused,
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

/// Returns the facts on a device, read as the plugin reads them.
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

/// Compares the whole device information of a device without a file.
fn is_described_as(id: &str, expected: &Value) -> Outcome {
    let reported = present("device information", complete(None, Some(&facts(id)?))?)?;
    same(
        "device information",
        &serde_json::to_value(reported)?,
        expected,
    )
}

// clause: DEVINFO-1.1.0 §3.1.3.4 pf-pci-address: of the physical interface
fn a_vf_names_itself_and_its_pf(node: &Node) -> Outcome {
    let (vf, pf) = (node.vf(0)?.to_string(), node.pf()?.to_string());
    is_described_as(
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
    let bound = DriverBinding::to(address, "vfio-pci")?;
    let vf = address.to_string();
    is_described_as(
        &vf,
        &json!({"type": "pci", "version": "1.1.0", "pci": {
            "pci-address": vf, "vhost-net": "/dev/vhost-net", "pf-pci-address": pf,
        }}),
    )?;
    drop(bound);
    netdev(address).map(drop)
}

fn a_file_of_another_device_is_refused(node: &Node) -> Outcome {
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
    let reported = |driver: &str, path: String| {
        is_described_as(
            vdpa.name(),
            &json!({"type": "vdpa", "version": "1.1.0", "vdpa": {
                "parent-device": vdpa.name(), "driver": driver, "path": path,
            }}),
        )
    };
    vdpa.bind("vhost_vdpa")?;
    reported("vhost", format!("/dev/{}", vdpa.child("vhost-vdpa-")?))?;
    vdpa.bind("virtio_vdpa")?;
    let virtio = vdpa.child("virtio")?;
    reported("virtio", format!("/sys/bus/virtio/devices/{virtio}"))
}

// clause: DEVINFO-1.1.0 §3.1.4.4 pci-address: of the function behind a vDPA device
fn a_function_with_a_vdpa_device_is_one(node: &Node) -> Outcome {
    let address = node.virtio()?;
    let bound = DriverBinding::to(address, "vp-vdpa")?;
    let vdpa = Vdpa::add("hwt-vp", &format!("pci/{address}"))?;
    vdpa.bind("virtio_vdpa")?;
    let virtio = child(&sysfs::function(address), "virtio")?;
    let expected = json!({"type": "vdpa", "version": "1.1.0", "vdpa": {
        "parent-device": "hwt-vp", "driver": "virtio",
        "path": format!("/sys/bus/virtio/devices/{virtio}"), "pci-address": address.to_string(),
    }});
    is_described_as(&address.to_string(), &expected)?;
    is_described_as("hwt-vp", &expected)?;
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
    is_described_as(
        &vf,
        &json!({"type": "pci", "version": "1.1.0", "pci": {
            "pci-address": vf, "rdma-device": stub.device()?, "pf-pci-address": pf.to_string(),
        }}),
    )
}
