use super::machine;
use crate::{Device, VdpaDriver, fixtures};

#[test]
fn vdpa_devices_are_not_found_by_paths_or_unknown_names() {
    let sim = machine(&fixtures::vdpasim());
    assert_eq!(sim.sysfs.vdpa_devices().len(), 2);
    for name in ["", "..", "../vdpa", "vdpasim0/driver", "vdpasim9", "a\0"] {
        assert!(sim.sysfs.vdpa_device(name).is_none(), "{name:?}");
    }
}

#[test]
fn a_vhost_vdpa_path_with_wrong_device_numbers_is_unknown() {
    let sim = machine(&fixtures::vdpasim());
    let device = sim.sysfs.vdpa_device("vdpasim0").unwrap();
    assert_eq!(device.driver(), Some(VdpaDriver::Vhost));
    assert_eq!(device.path().as_deref(), Some("/dev/vhost-vdpa-0"));
    assert_eq!((device.pci_address(), device.virtio_device()), (None, None));

    let mut other = fixtures::vdpasim();
    other.put_device_node("vhost-vdpa-0", "245:7");
    assert_eq!(
        machine(&other)
            .sysfs
            .vdpa_device("vdpasim0")
            .unwrap()
            .path(),
        None
    );

    std::fs::remove_file(sim.sysfs.dev().join("vhost-vdpa-0")).unwrap();
    std::fs::write(sim.sysfs.dev().join("vhost-vdpa-0"), "").unwrap();
    assert_eq!(device.path(), None);
}

#[test]
fn virtio_vdpa_software_device_contains_its_virtio_device() {
    for (capture, name) in [
        (fixtures::vdpasim(), "vdpasim1"),
        (fixtures::vduse(), "vd0"),
    ] {
        let machine = machine(&capture);
        let device = machine.sysfs.vdpa_device(name).unwrap();
        assert_eq!(
            device.path().as_deref(),
            Some("/sys/bus/virtio/devices/virtio3"),
            "{name}"
        );
        assert_eq!(device.pci_address(), None, "{name}");
    }
}

#[test]
fn the_virtio_device_beside_a_vdpa_device_is_found() {
    let machine = machine(&fixtures::vp_vdpa_virtio());
    let device = machine.sysfs.vdpa_device("vdpapci0").unwrap();
    assert_eq!(device.virtio_device().as_deref(), Some("virtio2"));
    assert_eq!(device.pci_address(), Some("0000:03:00.0".parse().unwrap()));
    assert_eq!(device.netdev().as_deref(), Some("eth0"));
}

#[test]
fn virtio_device_is_unknown_if_two_vdpa_devices_share_a_function() {
    let mut capture = fixtures::vp_vdpa_virtio();
    let function = "devices/pci0000:00/0000:00:04.2/0000:03:00.0";
    capture.put_link(
        "bus/vdpa/devices/vdpapci1",
        &format!("../../../{function}/vdpapci1"),
    );
    capture.put_link(
        &format!("{function}/vdpapci1/driver"),
        "../../../../../bus/vdpa/drivers/virtio_vdpa",
    );
    assert_eq!(
        machine(&capture)
            .sysfs
            .vdpa_device("vdpapci0")
            .unwrap()
            .virtio_device(),
        None
    );
}

#[test]
fn vhost_vdpa_behind_a_pci_function_reports_the_function() {
    let machine = machine(&fixtures::vp_vdpa_vhost());
    let device = machine.sysfs.vdpa_device("vdpapci0").unwrap();
    assert_eq!(device.path().as_deref(), Some("/dev/vhost-vdpa-1"));
    assert_eq!(device.pci_address(), Some("0000:03:00.0".parse().unwrap()));
}

#[test]
fn an_identifier_leads_to_a_device_of_the_matching_kind() {
    let capture = fixtures::unverified_bluefield2().with(fixtures::vduse());
    let machine = machine(&capture);
    let device = |id: &str| machine.sysfs.device(id);
    assert!(matches!(device("0000:03:00.0"), Some(Device::Pci(_))));
    assert!(matches!(
        device("mlx5_core.sf.3"),
        Some(Device::Subfunction(_))
    ));
    assert!(matches!(device("vd0"), Some(Device::Vdpa(_))));
    for id in ["0000:03:00.1", "vd1", "tun/7", "br1", "../../etc/passwd"] {
        assert!(device(id).is_none(), "{id}");
    }
}

#[test]
fn the_parent_that_netlink_reports_identifies_the_device() {
    let vduse = machine(&fixtures::vduse());
    assert_eq!(
        vduse.sysfs.identity("virtio", "virtio3").is("vd0"),
        Some(true)
    );
    assert_eq!(
        vduse.sysfs.identity("virtio", "virtio3").is("0000:01:10.0"),
        None
    );

    let pci_backed = machine(&fixtures::vp_vdpa_virtio());
    let identity = pci_backed.sysfs.identity("virtio", "virtio2");
    assert_eq!(
        (identity.is("vdpapci0"), identity.is("0000:03:00.0")),
        (Some(true), Some(true))
    );
    assert_eq!(identity.is("0000:03:00.1"), Some(false));

    let dpu = machine(&fixtures::unverified_bluefield2());
    let identity = dpu.sysfs.identity("auxiliary", "mlx5_core.sf.2");
    assert_eq!(identity.is("mlx5_core.sf.2"), Some(true));
    assert_eq!(identity.is("mlx5_core.sf.3"), Some(false));
    assert_eq!(identity.is("0000:03:00.0"), Some(false));

    let identity = dpu.sysfs.identity("pci", "0000:03:00.0");
    assert_eq!(
        (identity.is("0000:03:00.0"), identity.is("some-id")),
        (Some(true), None)
    );
    for (bus, name) in [
        ("..", "x"),
        ("virtio", "../.."),
        ("usb", "1-1"),
        ("pci", "nonsense"),
    ] {
        assert_eq!(dpu.sysfs.identity(bus, name).is("0000:03:00.0"), None);
    }
}
