//! A VF on `vfio-pci`, behind an IOMMU.

use device_info::Sysfs;

use crate::case::{Case, Outcome, holds, present, same};
use crate::cases::sriov::function;
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{DriverBinding, netdev, sysfs};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "vfio/a_vf_on_vfio_pci_is_opened_by_its_group",
        needs: &[Feature::Vfio],
        run: a_vf_on_vfio_pci_is_opened_by_its_group,
    },
    Case {
        name: "vfio/a_vf_on_a_network_driver_is_not_for_vfio",
        needs: &[Feature::Vfio],
        run: a_vf_on_a_network_driver_is_not_for_vfio,
    },
];

fn a_vf_on_vfio_pci_is_opened_by_its_group(node: &Node) -> Outcome {
    let (sysfs, address) = (Sysfs::host(), node.vf(0)?);
    let vf = function(&sysfs, address)?;
    let bound = DriverBinding::to(address, "vfio-pci")?;
    let group = present(
        "the IOMMU group",
        sysfs::link(sysfs::function(address).join("iommu_group")),
    )?;
    same("driver", vf.driver().as_deref(), Some("vfio-pci"))?;
    same(
        "override",
        vf.driver_override().as_deref(),
        Some("vfio-pci"),
    )?;
    same("interfaces", vf.netdevs(), Vec::<String>::new())?;
    same("its PF", vf.physfn(), Some(node.pf()?))?;
    let vfio = present("how it is opened", vf.vfio())?;
    same("group", vfio.group.to_string(), group.as_str())?;
    same("without an IOMMU", vfio.noiommu, false)?;
    same("path", vfio.path, Some(format!("/dev/vfio/{group}")))?;
    let members = sysfs::names(format!("/sys/kernel/iommu_groups/{group}/devices"));
    let listed: Vec<String> = vf
        .iommu_group_members()
        .iter()
        .map(ToString::to_string)
        .collect();
    same("members of its group", listed, members)?;
    drop(bound);
    netdev(address).map(drop)
}

fn a_vf_on_a_network_driver_is_not_for_vfio(node: &Node) -> Outcome {
    let sysfs = Sysfs::host();
    let vf = function(&sysfs, node.vf(1)?)?;
    same("VFIO", vf.vfio(), None)?;
    holds("it has an IOMMU group", vf.iommu_group().is_some())
}
