//! vDPA devices in user space. The program behind them is a stub that moves no packets.

use device_info::Sysfs;

use crate::case::{Case, Outcome, same};
use crate::cases::vdpa_sim::{device, is_opened_by_vhost, is_virtio};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::Vduse;

pub(super) const CASES: &[Case] = &[Case {
    name: "vduse/a_device_of_user_space_goes_from_vhost_to_virtio",
    needs: &[Feature::Vduse],
    run: a_device_of_user_space_goes_from_vhost_to_virtio,
}];

fn a_device_of_user_space_goes_from_vhost_to_virtio(_: &Node) -> Outcome {
    let vduse = Vduse::add("hwt-vduse")?;
    let vdpa = vduse.vdpa();
    same(
        "the function behind",
        device(&Sysfs::host(), vdpa)?.pci_address(),
        None,
    )?;
    is_opened_by_vhost(vdpa)?;
    vdpa.bind("virtio_vdpa")?;
    is_virtio(vdpa, &vdpa.child("virtio")?)
}
