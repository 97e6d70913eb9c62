//! vDPA devices of the kernel's simulator, which have no PCI function.

use std::path::Path;

use device_info::{Sysfs, VdpaDevice, VdpaDriver};

use crate::case::{Case, Outcome, Stop, holds, present, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{Link, Vdpa, sysfs};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "vdpa-sim/under_vhost_the_path_is_the_character_device",
        needs: &[Feature::VdpaSim],
        run: under_vhost_the_path_is_the_character_device,
    },
    Case {
        name: "vdpa-sim/under_virtio_each_device_has_its_own_virtio_device",
        needs: &[Feature::VdpaSim],
        run: under_virtio_each_device_has_its_own_virtio_device,
    },
    Case {
        name: "vdpa-sim/a_device_without_a_driver_has_no_path",
        needs: &[Feature::VdpaSim],
        run: a_device_without_a_driver_has_no_path,
    },
];

/// Returns the vDPA device as the crate under test reads it.
pub(super) fn device(sysfs: &Sysfs, vdpa: &Vdpa) -> Result<VdpaDevice, Stop> {
    present(
        format!("{} as a vDPA device", vdpa.name()),
        sysfs.vdpa_device(vdpa.name()),
    )
}

/// Checks that a device on `vhost_vdpa` is opened by its character device.
pub(super) fn is_opened_by_vhost(vdpa: &Vdpa) -> Outcome {
    vdpa.bind("vhost_vdpa")?;
    let child = vdpa.child("vhost-vdpa-")?;
    let sysfs = Sysfs::host();
    let device = device(&sysfs, vdpa)?;
    same("driver", device.driver(), Some(VdpaDriver::Vhost))?;
    same("path", device.path(), Some(format!("/dev/{child}")))?;
    same("virtio device", device.virtio_device(), None)?;
    same("interface", device.netdev(), None)?;
    same("remarks", sysfs.take_remarks().len(), 0)
}

/// Checks that a device on `virtio_vdpa` has the virtio device `virtio`, and that its interface, if
/// the driver created one, leads back to it.
pub(super) fn is_virtio(vdpa: &Vdpa, virtio: &str) -> Outcome {
    let sysfs = Sysfs::host();
    let device = device(&sysfs, vdpa)?;
    same("driver", device.driver(), Some(VdpaDriver::Virtio))?;
    same(
        "virtio device",
        device.virtio_device().as_deref(),
        Some(virtio),
    )?;
    let path = format!("/sys/bus/virtio/devices/{virtio}");
    holds(format!("{path} is there"), Path::new(&path).exists())?;
    let netdevs = sysfs::names(format!("{path}/net"));
    same("path", device.path(), Some(path))?;
    same("interface", device.netdev().as_ref(), netdevs.first())?;
    let identity = match netdevs.first() {
        Some(name) => {
            let link = Link::show(None, name)?;
            sysfs.identity(&link.parent_bus, &link.parent_name)
        }
        None => sysfs.identity("virtio", virtio),
    };
    same(
        "its vDPA device",
        identity.vdpa.as_deref(),
        Some(vdpa.name()),
    )?;
    same("the function behind", identity.pci, device.pci_address())
}

fn under_vhost_the_path_is_the_character_device(_: &Node) -> Outcome {
    let (first, second) = (
        Vdpa::add("hwt-sim0", "vdpasim_net")?,
        Vdpa::add("hwt-sim1", "vdpasim_net")?,
    );
    is_opened_by_vhost(&first)?;
    is_opened_by_vhost(&second)?;
    same(
        "the function behind",
        device(&Sysfs::host(), &first)?.pci_address(),
        None,
    )
}

fn under_virtio_each_device_has_its_own_virtio_device(_: &Node) -> Outcome {
    let (first, second) = (
        Vdpa::add("hwt-sim0", "vdpasim_net")?,
        Vdpa::add("hwt-sim1", "vdpasim_net")?,
    );
    for vdpa in [&first, &second] {
        vdpa.bind("virtio_vdpa")?;
    }
    for vdpa in [&first, &second] {
        is_virtio(vdpa, &vdpa.child("virtio")?)?;
    }
    Ok(())
}

fn a_device_without_a_driver_has_no_path(_: &Node) -> Outcome {
    let vdpa = Vdpa::add("hwt-sim0", "vdpasim_net")?;
    vdpa.unbind()?;
    let sysfs = Sysfs::host();
    let device = device(&sysfs, &vdpa)?;
    same("driver", device.driver(), None)?;
    same("path", device.path(), None)?;
    drop(vdpa);
    holds(
        "its removal is seen",
        sysfs.vdpa_device("hwt-sim0").is_none(),
    )?;
    same("remarks", sysfs.take_remarks().len(), 0)
}
