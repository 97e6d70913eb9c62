//! Tests on sysfs trees from `fixtures`: which devices Jackfield finds behind an interface, and
//! which problems it finds with a device.

use std::path::Path;

use device_info::{Capture, fixtures};

use super::*;
use crate::cni::RawObject;
use crate::kernel::Link;
use crate::kernel::fake::FakeLinks;

pub(in crate::operation) fn node(dir: &Path) -> NodeConfig {
    let conf = serde_json::json!({
        "cniVersion": "1.0.0", "name": "jackfield", "type": "jackfield", "manifestDir": "/m",
        "delegates": [{"cniVersion": "1.0.0", "name": "cluster", "type": "bridge"}],
        "sysfsRoot": dir.join("sys"), "devInfoDir": dir.join("devinfo"),
    });
    NodeConfig::parse(&RawObject::parse(conf.to_string().as_bytes()).unwrap()).unwrap()
}

/// Builds the captured machine. Returns the device names of a link whose parent is the device
/// `parent` on `bus`.
fn names(capture: &Capture, bus: &str, parent: &str) -> Vec<String> {
    let link = Link {
        index: 2,
        parent_bus: Some(bus.to_owned()),
        parent_name: Some(parent.to_owned()),
        ..Link::default()
    };
    names_of(capture, vec![link])
}

/// Builds the captured machine, and returns the device names of the first link in `pod`.
fn names_of(capture: &Capture, pod: Vec<Link>) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    capture.build(dir.path()).unwrap();
    let node = node(dir.path());
    let link = pod[0].clone();
    let mut links = FakeLinks {
        links: pod,
        ..FakeLinks::default()
    };
    Hardware::of(&node).names(&link, &mut links)
}

#[test]
fn a_vf_has_the_name_of_its_pci_function() {
    let found = names(&fixtures::igb(), "pci", "0000:01:10.0");
    assert_eq!(found, ["0000:01:10.0"]);
}

#[test]
fn a_virtio_interface_has_the_names_of_the_devices_behind_it() {
    let found = names(&fixtures::vp_vdpa_virtio(), "virtio", "virtio2");
    assert_eq!(found, ["virtio2", "vdpapci0", "0000:03:00.0"]);
    let found = names(&fixtures::vduse(), "virtio", "virtio3");
    assert_eq!(found, ["virtio3", "vd0"]);
}

#[test]
fn a_subfunction_does_not_have_the_name_of_its_parent() {
    let found = names(
        &fixtures::unverified_bluefield2(),
        "auxiliary",
        "mlx5_core.sf.2",
    );
    assert_eq!(found, ["mlx5_core.sf.2"]);
}

#[test]
fn a_vlan_over_a_vf_has_the_name_of_that_vf() {
    let vlan = Link {
        index: 3,
        kind: Some("vlan".to_owned()),
        lower: Some(2),
        ..Link::default()
    };
    let vf = Link {
        index: 2,
        parent_bus: Some("pci".to_owned()),
        parent_name: Some("0000:01:10.2".to_owned()),
        ..Link::default()
    };
    assert_eq!(names_of(&fixtures::igb(), vec![vlan, vf]), ["0000:01:10.2"]);
}

#[test]
fn a_link_without_hardware_has_no_device_name() {
    let of_kind = |kind: &str| Link {
        index: 3,
        kind: Some(kind.to_owned()),
        lower: Some(3),
        ..Link::default()
    };
    let found = names_of(&fixtures::igb(), vec![of_kind("veth")]);
    assert_eq!(found, ["none (a link of kind veth)"]);
    let circle = names_of(&fixtures::igb(), vec![of_kind("vlan")]);
    assert_eq!(circle, [""; 0], "the search ends at a cycle");
    assert_eq!(names_of(&fixtures::igb(), vec![Link::default()]), [""; 0]);
}

fn attachment(id: &str) -> Attachment {
    let config = r#"{"cniVersion":"1.0.0","name":"n","type":"sriov"}"#;
    Attachment {
        resource: Some("r".to_owned()),
        device: Some(AllocatedDevice {
            id: id.to_owned(),
            resource: "r".to_owned(),
            driver: None,
            origin: None,
            claim: None,
        }),
        ..Attachment::for_tests(config)
    }
}

/// Applies `change` to the node and inspects a device. Returns the device's driver or the message
/// of the refusal.
fn inspected(capture: &Capture, id: &str, change: impl FnOnce(&Path)) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    capture.build(dir.path()).unwrap();
    change(&dir.path().join("sys/bus/pci/devices").join(id));
    let mut attachment = attachment(id);
    let node = node(dir.path());
    let looked = Hardware::of(&node).inspect(&mut attachment);
    looked.map_err(|reason| reason.to_string())?;
    let device = attachment.device.unwrap();
    Ok(device.driver.unwrap_or_else(|| "unknown".to_owned()))
}

#[test]
fn inspecting_a_usable_device_stores_its_driver() {
    let cases = [
        (fixtures::igb(), "0000:01:10.0", "igbvf"),
        (fixtures::igb_vfio(), "0000:01:10.0", "vfio-pci"),
        (fixtures::vdpasim(), "vdpasim0", "vhost"),
        (
            fixtures::unverified_bluefield2(),
            "mlx5_core.sf.2",
            "mlx5_core.sf",
        ),
        (fixtures::igb(), "made-up-by-a-plugin", "unknown"),
    ];
    for (capture, id, driver) in cases {
        assert_eq!(
            inspected(&capture, id, |_| ()),
            Ok(driver.to_owned()),
            "{id}"
        );
    }
}

/// A change to the sysfs directory of a device.
type Change<'a> = &'a dyn Fn(&Path);

#[test]
fn a_missing_or_wrongly_bound_device_is_refused() {
    let id = "0000:01:10.0";
    let unbound = |device: &Path| std::fs::remove_file(device.join("driver")).unwrap();
    let gone = |device: &Path| std::fs::remove_file(device).unwrap();
    let other =
        |device: &Path| std::fs::write(device.join("driver_override"), "vfio-pci\n").unwrap();
    let changes: [(&str, Change<'_>); 3] = [
        ("bound to no driver", &unbound),
        ("is missing", &gone),
        (
            "bound to driver igbvf, but its driver_override is vfio-pci",
            &other,
        ),
    ];
    for (words, change) in changes {
        let line = inspected(&fixtures::igb(), id, change).unwrap_err();
        assert!(line.contains("device 0000:01:10.0 of resource r"), "{line}");
        assert!(line.contains(words), "{line}");
    }
}

/// Applies `change` to the node and returns the findings on an attached device.
fn findings(capture: &Capture, id: &str, change: impl FnOnce(&Path)) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    capture.build(dir.path()).unwrap();
    let mut attachment = attachment(id);
    let node = node(dir.path());
    let hardware = Hardware::of(&node);
    hardware.inspect(&mut attachment).unwrap();
    change(dir.path());
    let mismatch = hardware.mismatch(&attachment);
    mismatch.iter().map(ToString::to_string).collect()
}

#[test]
fn a_missing_character_device_is_a_finding() {
    let table = [
        (fixtures::igb_vfio(), "0000:01:10.0", "vfio/11", "vfio-pci"),
        (
            fixtures::igb_noiommu(),
            "0000:01:10.0",
            "vfio/noiommu-0",
            "vfio-pci",
        ),
        (fixtures::vdpasim(), "vdpasim0", "vhost-vdpa-0", "vhost"),
        (
            fixtures::vp_vdpa_vhost(),
            "0000:03:00.0",
            "vhost-vdpa-1",
            "vp-vdpa",
        ),
    ];
    for (capture, id, file, driver) in table {
        assert_eq!(findings(&capture, id, |_| ()), [""; 0], "{id}");
        let found = findings(&capture, id, |node| {
            std::fs::remove_file(node.join("dev").join(file)).unwrap();
        });
        let line = format!("device {id} on driver {driver} has no character device");
        assert_eq!(found.len(), 1, "{id}");
        assert!(found[0].contains(&line), "{found:?}");
    }
}

#[test]
fn a_device_whose_driver_changed_is_a_finding() {
    let found = findings(&fixtures::igb_vfio(), "0000:01:10.0", |node| {
        let driver = node.join("sys/bus/pci/devices/0000:01:10.0/driver");
        std::fs::remove_file(&driver).unwrap();
        std::os::unix::fs::symlink("../../../../bus/pci/drivers/igbvf", driver).unwrap();
    });
    let line = "is bound to driver igbvf, but was attached with driver vfio-pci";
    assert!(found[0].contains(line), "{found:?}");
}
