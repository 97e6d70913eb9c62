//! A vDPA device with a PCI function.

use device_info::Sysfs;

use crate::case::{Case, Outcome, same};
use crate::cases::sriov::function;
use crate::cases::vdpa_sim::{device, is_opened_by_vhost, is_virtio};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{DriverBinding, Vdpa, child, sysfs};

pub(super) const CASES: &[Case] = &[Case {
    name: "vp-vdpa/the_virtio_device_is_beside_and_not_inside",
    needs: &[Feature::VpVdpa],
    run: the_virtio_device_is_beside_and_not_inside,
}];

fn the_virtio_device_is_beside_and_not_inside(node: &Node) -> Outcome {
    let address = node.virtio()?;
    let bound = DriverBinding::to(address, "vp-vdpa")?;
    let vdpa = Vdpa::add("hwt-vp", &format!("pci/{address}"))?;
    let sysfs = Sysfs::host();
    same(
        "the function behind",
        device(&sysfs, &vdpa)?.pci_address(),
        Some(address),
    )?;
    is_opened_by_vhost(&vdpa)?;
    same(
        "its interfaces",
        function(&sysfs, address)?.netdevs(),
        Vec::<String>::new(),
    )?;

    vdpa.bind("virtio_vdpa")?;
    let virtio = child(&sysfs::function(address), "virtio")?;
    child(&sysfs::function(address).join(&virtio).join("net"), "")?;
    is_virtio(&vdpa, &virtio)?;
    same(
        "its interfaces",
        function(&sysfs, address)?.netdevs().len(),
        1,
    )?;
    // The device goes before the function's driver, because otherwise the driver takes it along.
    drop(vdpa);
    drop(bound);
    Ok(())
}
