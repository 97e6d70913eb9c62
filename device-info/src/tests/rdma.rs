use super::machine;
use crate::{Guid, fixtures};

#[test]
fn rdma_node_guid_and_port_guid_differ() {
    let ib = machine(&fixtures::ipoib());
    let vf = ib.function("0000:02:10.0");
    assert_eq!(vf.rdma_devices(), ["mlx5_1"]);
    let device = ib.sysfs.rdma_device("mlx5_1").unwrap();
    let guid = |text: &str| Some(Guid::parse_observed(text).unwrap());
    assert_eq!(device.node_guid(), guid("0200:0000:0000:0011"));
    let ports = device.ports();
    assert_eq!(ports.len(), 1);
    let port = ports.first().unwrap();
    assert_eq!((port.number, port.guid), (1, guid("0200:0000:0000:0021")));
    assert_eq!(port.link_layer.as_deref(), Some("InfiniBand"));
    assert_eq!(device.pci_address(), Some(vf.address()));
}

#[test]
fn rdma_software_device_has_an_interface_but_no_pci_function() {
    let rxe = machine(&fixtures::rxe());
    let device = rxe.sysfs.rdma_device("rxe0").unwrap();
    assert_eq!(
        (device.pci_address(), device.parent_netdev().as_deref()),
        (None, Some("eth2"))
    );
    assert_eq!(device.ports().first().unwrap().guid, None);
}

#[test]
fn a_missing_rdma_device_causes_no_remark() {
    let mut capture = fixtures::ipoib();
    capture.remove("class/infiniband/mlx5_1");
    capture.remove("devices/pci0000:00/0000:00:04.1/0000:02:10.0/infiniband");
    let ib = machine(&capture);
    assert!(ib.sysfs.rdma_device("mlx5_1").is_none());
    assert!(ib.function("0000:02:10.0").rdma_devices().is_empty());
    assert_eq!(ib.sysfs.take_remarks(), []);
}

#[test]
fn rdma_guids_that_are_empty_or_zero_are_unknown() {
    for text in ["", "0000:0000:0000:0000", "rubbish"] {
        let mut capture = fixtures::ipoib();
        let device = "devices/pci0000:00/0000:00:04.1/0000:02:10.0/infiniband/mlx5_1";
        capture.put_text(&format!("{device}/node_guid"), text);
        capture.put_text(&format!("{device}/ports/1/gids/0"), text);
        let device = machine(&capture).sysfs.rdma_device("mlx5_1").unwrap();
        assert_eq!(device.node_guid(), None, "{text:?}");
        assert!(
            device.ports().iter().all(|port| port.guid.is_none()),
            "{text:?}"
        );
    }
}
