//! The whole machine: its inventory, and its capture without identities.

use device_info::{Capture, Devlink, Inventory, Sysfs};

use crate::case::{Case, Outcome, Stop, holds, present, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{DriverBinding, Rxe, Vdpa, netdev, sysfs};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "capture/the_inventory_lists_a_pf_with_its_vfs_and_what_they_are",
        needs: &[Feature::Sriov, Feature::Vfio],
        run: the_inventory_lists_a_pf_with_its_vfs_and_what_they_are,
    },
    Case {
        name: "capture/the_inventory_lists_software_devices",
        needs: &[Feature::RdmaShared, Feature::VdpaSim],
        run: the_inventory_lists_software_devices,
    },
    Case {
        name: "capture/a_capture_does_not_identify_the_machine",
        needs: &[Feature::RdmaShared],
        run: a_capture_does_not_identify_the_machine,
    },
    Case {
        name: "capture/a_machine_built_from_a_capture_is_captured_as_the_same",
        needs: &[Feature::Sriov],
        run: a_machine_built_from_a_capture_is_captured_as_the_same,
    },
];

fn inventory() -> Result<Inventory, Stop> {
    let mut devlink = Devlink::open()?;
    let inventory = Inventory::read(&Sysfs::host(), &mut |device| devlink.switch(device));
    same("remarks", inventory.remarks.as_slice(), [""; 0].as_slice())?;
    Ok(inventory)
}

fn the_inventory_lists_a_pf_with_its_vfs_and_what_they_are(node: &Node) -> Outcome {
    let (address, kept) = (node.vf(0)?, node.vf(1)?);
    let bound = DriverBinding::to(address, "vfio-pci")?;
    let inventory = inventory()?;
    let alone = |address| {
        let mut functions = inventory.functions.iter();
        functions.any(|function| function.address == address)
    };
    let mut pfs = inventory.physical_functions.iter();
    let pf = pfs.find(|pf| Ok(pf.function.address) == node.pf());
    let pf = present("the PF", pf)?;
    same(
        "its interface",
        pf.function.netdev.clone(),
        Some(netdev(node.pf()?)?),
    )?;
    let listed: Vec<_> = pf.vfs.iter().map(|vf| vf.function.address).collect();
    same("its VFs", listed, node.vfs.clone())?;
    for (number, vf) in (0..).zip(&pf.vfs) {
        let address = vf.function.address;
        same(format!("{address}'s number"), vf.index, number)?;
        holds(format!("{address} is listed once"), !alone(address))?;
    }
    let [taken, other, ..] = pf.vfs.as_slice() else {
        return Err(Stop::failed("the PF has fewer than two VFs"));
    };
    same(
        "driver of the one on VFIO",
        taken.function.driver.as_deref(),
        Some("vfio-pci"),
    )?;
    holds("how it is opened", taken.function.vfio.is_some())?;
    same("its interface", taken.function.netdev.clone(), None)?;
    same(
        "interface of the other",
        other.function.netdev.clone(),
        Some(netdev(kept)?),
    )?;
    drop(bound);
    netdev(address).map(drop)
}

fn the_inventory_lists_software_devices(node: &Node) -> Outcome {
    let rxe = Rxe::add("hwt-rxe", &netdev(node.vf(0)?)?)?;
    let vdpa = Vdpa::add("hwt-sim0", "vdpasim_net")?;
    vdpa.bind("vhost_vdpa")?;
    let path = format!("/dev/{}", vdpa.child("vhost-vdpa-")?);
    let inventory = inventory()?;
    let listed = inventory
        .vdpa
        .iter()
        .find(|entry| entry.name == vdpa.name());
    let listed = present("the vDPA device", listed)?;
    same("its path", listed.path.clone(), Some(path))?;
    same("the function behind", listed.pci_address, None)?;
    let listed = inventory.rdma.iter().find(|entry| entry.name == rxe.name());
    let listed = present("the RDMA device", listed)?;
    holds("its GUID", listed.node_guid.is_some())?;
    same("the function behind", listed.pci_address, None)
}

fn a_capture_does_not_identify_the_machine(node: &Node) -> Outcome {
    let rxe = Rxe::add("hwt-rxe", &netdev(node.vf(0)?)?)?;
    let json = Capture::read(&Sysfs::host(), Some(&mut Devlink::open()?)).to_json();
    let mut identities = vec![sysfs::read(rxe.folder().join("node_guid"))?];
    for name in sysfs::names("/sys/class/net") {
        // The bonding driver has a file among the interfaces.
        let Ok(address) = sysfs::read(format!("/sys/class/net/{name}/address")) else {
            continue;
        };
        if address.bytes().any(|byte| (b'1'..=b'f').contains(&byte)) {
            identities.push(address);
        }
    }
    holds("there is something to hide", identities.len() > 2)?;
    for identity in identities {
        let bare = identity.replace(':', "");
        let found = json.contains(&identity) || json.contains(&bare);
        holds(format!("{identity} is not in the capture"), !found)?;
    }
    Ok(())
}

fn a_machine_built_from_a_capture_is_captured_as_the_same(_: &Node) -> Outcome {
    let here = Capture::read(&Sysfs::host(), None);
    let folder = tempfile::tempdir()?;
    let again = Capture::from_json(&here.to_json())?.build(folder.path())?;
    let again = Capture::read(&again, None);
    let lines = |capture: &Capture| capture.lines().collect::<Vec<_>>();
    same("the capture of its image", lines(&again), lines(&here))
}
