use std::os::unix::fs::symlink;

use super::machine;
use crate::{Facts, Inventory, Vfio, fixtures};

#[test]
fn the_attributes_of_a_pci_function_are_read() {
    let igb = machine(&fixtures::igb());
    let vf = igb.function("0000:01:10.2");
    assert_eq!(
        (vf.vendor(), vf.device(), vf.class()),
        (Some(0x8086), Some(0x10ca), Some(0x02_0000))
    );
    assert_eq!(vf.subsystem(), Some((0x1af4, 0x1100)));
    assert_eq!(
        (vf.driver().as_deref(), vf.driver_override()),
        (Some("igbvf"), None)
    );
    assert_eq!(
        (vf.iommu_group(), vf.iommu_group_members()),
        (Some(12), vec![vf.address()])
    );
    assert!(vf.is_network());
}

#[test]
fn a_numa_node_of_minus_one_means_no_numa_node() {
    assert_eq!(
        machine(&fixtures::igb())
            .function("0000:01:00.0")
            .numa_node(),
        None
    );
    assert_eq!(
        machine(&fixtures::unverified_e810(1))
            .function("0000:a2:00.0")
            .numa_node(),
        Some(1)
    );
}

#[test]
fn pci_function_without_driver_is_not_an_error() {
    let ib = machine(&fixtures::ipoib());
    assert_eq!(ib.function("0000:02:10.0").driver(), None);
    assert_eq!(ib.sysfs.take_remarks(), []);
}

#[test]
fn pci_function_with_a_five_digit_domain_is_found_with_its_vfs() {
    let vmd = machine(&fixtures::unverified_vmd());
    let vfs = vmd.function("10000:e1:00.0").vfs();
    let addresses: Vec<String> = vfs.iter().map(|(_, address)| address.to_string()).collect();
    assert_eq!(addresses, ["10000:e1:10.0", "10000:e1:10.2"]);
    assert_eq!(vmd.function("10000:e1:10.2").vf_index(), Some(1));
}

#[test]
fn pf_with_sriov_may_have_no_vfs() {
    let x710 = machine(&fixtures::unverified_x710(0));
    let sriov = x710.function("0000:3b:00.0").sriov().unwrap();
    assert_eq!(
        (sriov.total_vfs, sriov.num_vfs, sriov.vf_device),
        (64, Some(0), Some(0x154c))
    );
    assert_eq!(x710.function("0000:3b:00.0").vfs(), []);
}

#[test]
fn a_negative_number_of_vectors_is_unknown() {
    let e810 = machine(&fixtures::unverified_e810(2));
    assert_eq!(
        e810.function("0000:a2:00.0").sriov().unwrap().vf_total_msix,
        None
    );
    let igb = machine(&fixtures::igb());
    assert_eq!(
        igb.function("0000:01:00.0").sriov().unwrap().vf_total_msix,
        Some(0)
    );
}

#[test]
fn a_vf_that_was_passed_into_this_machine_has_no_index() {
    let mut capture = fixtures::igb();
    capture.remove("devices/pci0000:00/0000:00:04.0/0000:01:10.0/physfn");
    let igb = machine(&capture);
    let vf = igb.function("0000:01:10.0");
    assert_eq!((vf.physfn(), vf.vf_index(), vf.sriov()), (None, None, None));
    assert_eq!(igb.function("0000:01:10.2").vf_index(), Some(1));
}

#[test]
fn vf_numbers_are_in_numeric_order_and_match_the_vf_addresses() {
    let e810 = machine(&fixtures::unverified_e810(12));
    let pf = e810.function("0000:a2:00.0");
    let numbers: Vec<u32> = pf.vfs().iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (0..12).collect::<Vec<u32>>());
    for (number, address) in pf.vfs() {
        let vf = e810.sysfs.pci_function(address).unwrap();
        assert_eq!(
            (vf.vf_index(), vf.physfn()),
            (Some(number), Some(pf.address()))
        );
    }
}

#[test]
fn the_number_of_a_vf_does_not_depend_on_the_offset() {
    let mut capture = fixtures::unverified_e810(12);
    capture.remove("devices/pci0000:a0/0000:a0:02.0/0000:a2:00.0/sriov_offset");
    assert_eq!(
        machine(&capture).function("0000:a2:02.1").vf_index(),
        Some(9)
    );
    capture.put_text(
        "devices/pci0000:a0/0000:a0:02.0/0000:a2:00.0/sriov_offset",
        "9",
    );
    assert_eq!(
        machine(&capture).function("0000:a2:02.1").vf_index(),
        Some(9)
    );
}

#[test]
fn an_unreadable_number_of_vfs_is_unknown_and_not_zero() {
    let mut capture = fixtures::igb();
    capture.remove("devices/pci0000:00/0000:00:04.0/0000:01:00.0/sriov_numvfs");
    let sriov = machine(&capture).function("0000:01:00.0").sriov().unwrap();
    assert_eq!((sriov.total_vfs, sriov.num_vfs), (7, None));
}

#[test]
fn facts_and_inventory_do_not_read_numvfs_because_the_read_can_block() {
    let igb = machine(&fixtures::igb());
    let numvfs = igb
        .sysfs
        .root()
        .join("devices/pci0000:00/0000:00:04.0/0000:01:00.0/sriov_numvfs");
    // Reading this invalid number adds a remark.
    std::fs::write(numvfs, "not a number").unwrap();
    assert!(Facts::read(&igb.sysfs, "0000:01:10.0", &mut |_| None).is_some());
    assert_eq!(igb.sysfs.take_remarks(), []);
    let inventory = Inventory::read(&igb.sysfs, &mut |_| None);
    assert_eq!(inventory.remarks, Vec::<String>::new());
    assert_eq!(inventory.physical_functions.first().unwrap().vfs.len(), 2);
    assert!(igb.function("0000:01:00.0").sriov().is_some());
    assert_eq!(igb.sysfs.take_remarks().len(), 1);
}

#[test]
fn a_function_reports_its_own_netdev_or_none() {
    let igb = machine(&fixtures::igb());
    assert_eq!(
        igb.function("0000:01:10.0").netdev().as_deref(),
        Some("eth2")
    );
    // When an interface moves to a pod, the directory `net` of its function becomes empty.
    let vf = igb.function("0000:01:10.2");
    std::fs::remove_dir_all(
        igb.sysfs
            .root()
            .join("devices/pci0000:00/0000:00:04.0/0000:01:10.2/net/eth3"),
    )
    .unwrap();
    assert_eq!((vf.netdev(), vf.netdevs()), (None, vec![]));

    let mlx = machine(&fixtures::unverified_connectx6(3));
    let pf = mlx.function("0000:3b:00.0");
    assert_eq!(pf.netdevs().len(), 4);
    assert_eq!(pf.netdev().as_deref(), Some("enp59s0f0np0"));
}

#[test]
fn netdev_of_a_virtio_function_is_below_its_virtio_device() {
    let virtio = machine(&fixtures::vp_vdpa_virtio());
    let function = virtio.function("0000:03:00.0");
    assert_eq!(
        (function.netdevs(), function.netdev().as_deref()),
        (vec!["eth0".to_owned()], Some("eth0"))
    );
}

#[test]
fn netdev_of_a_function_is_never_a_lone_representor() {
    let mut capture = fixtures::unverified_connectx6(1);
    let pf = "devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
    capture.remove(&format!("{pf}/net/enp59s0f0np0"));
    let function = machine(&capture).function("0000:3b:00.0").netdev();
    assert_eq!(function, None);
    capture.remove(&format!("{pf}/net/enp59s0f0_0/phys_port_name"));
    assert_eq!(machine(&capture).function("0000:3b:00.0").netdev(), None);
}

#[test]
fn the_parent_of_a_subfunction_is_the_nearest_function() {
    let dpu = machine(&fixtures::unverified_bluefield2());
    let sf = dpu.sysfs.subfunction("mlx5_core.sf.2").unwrap();
    assert_eq!(
        (sf.number(), sf.parent_address()),
        (Some(88), Some("0000:03:00.0".parse().unwrap()))
    );
    assert_eq!(sf.netdev().as_deref(), Some("enp3s0f0s88"));
    assert_eq!(sf.rdma_devices(), ["mlx5_2"]);
    assert_eq!(sf.driver().as_deref(), Some("mlx5_core.sf"));
    for id in [
        "mlx5_core.sf.9",
        "mlx5_core.eth.2",
        "../sf.2",
        ".sf.2",
        "0000:03:00.0",
    ] {
        assert!(dpu.sysfs.subfunction(id).is_none(), "{id}");
    }
}

#[test]
fn only_existing_vfio_device_nodes_are_reported() {
    let igb = machine(&fixtures::igb_vfio());
    let vf = igb.function("0000:01:10.0");
    assert_eq!(
        vf.vfio(),
        Some(Vfio {
            group: 11,
            noiommu: false,
            path: Some("/dev/vfio/11".to_owned()),
            device_path: None,
        })
    );
    assert_eq!(igb.function("0000:01:10.2").vfio(), None);
}

#[test]
fn vfio_without_an_iommu_reports_the_noiommu_node() {
    let igb = machine(&fixtures::igb_noiommu());
    let vfio = igb.function("0000:01:10.0").vfio().unwrap();
    assert_eq!(
        (vfio.noiommu, vfio.path.as_deref()),
        (true, Some("/dev/vfio/noiommu-0"))
    );
}

#[test]
fn vfio_reports_the_iommufd_device_if_it_exists() {
    let mut capture = fixtures::igb_vfio();
    capture.put_device_node("vfio/devices/vfio0", "246:0");
    let vfio = machine(&capture).function("0000:01:10.0").vfio().unwrap();
    assert_eq!(vfio.device_path.as_deref(), Some("/dev/vfio/devices/vfio0"));
}

#[test]
fn vhost_net_is_reported_only_with_both_character_devices() {
    assert_eq!(
        machine(&fixtures::igb_vfio()).sysfs.vhost_net().as_deref(),
        Some("/dev/vhost-net")
    );
    let igb = machine(&fixtures::igb());
    assert_eq!(igb.sysfs.vhost_net(), None);
    std::fs::create_dir_all(igb.sysfs.dev().join("net")).unwrap();
    std::fs::write(igb.sysfs.dev().join("net/tun"), "").unwrap();
    symlink("/dev/null", igb.sysfs.dev().join("vhost-net")).unwrap();
    assert_eq!(igb.sysfs.vhost_net(), None);
}
