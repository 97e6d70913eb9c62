//! A VF on `vfio-pci` without an IOMMU.

use device_info::Sysfs;

use crate::case::{Case, Outcome, present, same};
use crate::cases::sriov::function;
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{DriverBinding, netdev};

pub(super) const CASES: &[Case] = &[Case {
    name: "vfio-noiommu/a_group_without_an_iommu_has_a_path_of_its_own",
    needs: &[Feature::VfioNoiommu],
    run: a_group_without_an_iommu_has_a_path_of_its_own,
}];

fn a_group_without_an_iommu_has_a_path_of_its_own(node: &Node) -> Outcome {
    let (sysfs, address) = (Sysfs::host(), node.vf(0)?);
    let vf = function(&sysfs, address)?;
    same("group before", vf.iommu_group(), None)?;
    let bound = DriverBinding::to(address, "vfio-pci")?;
    let vfio = present("how it is opened", vf.vfio())?;
    same("without an IOMMU", vfio.noiommu, true)?;
    same(
        "path",
        vfio.path,
        Some(format!("/dev/vfio/noiommu-{}", vfio.group)),
    )?;
    drop(bound);
    netdev(address).map(drop)
}
