//! A PF and its VFs.

use std::time::Duration;

use device_info::{Devlink, DevlinkHandle, PciAddress, PciFunction, Switch, Sysfs};

use crate::case::{Case, Outcome, Stop, holds, present, same};
use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{DriverBinding, Link, Netns, Vfs, netdev, sysfs, vf_state_cost};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "sriov/a_pf_counts_its_vfs_and_lists_them_by_number",
        needs: &[Feature::Sriov],
        run: a_pf_counts_its_vfs_and_lists_them_by_number,
    },
    Case {
        name: "sriov/a_vf_knows_its_pf_and_its_number",
        needs: &[Feature::Sriov],
        run: a_vf_knows_its_pf_and_its_number,
    },
    Case {
        name: "sriov/a_vf_shows_its_ids_its_driver_and_its_interface",
        needs: &[Feature::Sriov],
        run: a_vf_shows_its_ids_its_driver_and_its_interface,
    },
    Case {
        name: "sriov/an_interface_in_a_pod_is_gone_from_the_host_and_still_its_vf",
        needs: &[Feature::Sriov],
        run: an_interface_in_a_pod_is_gone_from_the_host_and_still_its_vf,
    },
    Case {
        name: "sriov/a_vf_without_a_driver_is_not_an_error",
        needs: &[Feature::Sriov],
        run: a_vf_without_a_driver_is_not_an_error,
    },
    Case {
        name: "sriov/a_nic_without_an_eswitch_has_no_representors",
        needs: &[Feature::Sriov],
        run: a_nic_without_an_eswitch_has_no_representors,
    },
    Case {
        name: "sriov/reading_the_state_of_vfs_has_a_cost_per_vf",
        needs: &[Feature::Sriov],
        run: reading_the_state_of_vfs_has_a_cost_per_vf,
    },
    Case {
        name: "sriov/vfs_come_and_go",
        needs: &[Feature::Sriov],
        run: vfs_come_and_go,
    },
];

/// Returns the function as the crate under test reads it.
pub(super) fn function(sysfs: &Sysfs, address: PciAddress) -> Result<PciFunction, Stop> {
    present(
        format!("{address} as a PCI function"),
        sysfs.pci_function(address),
    )
}

fn hexadecimal(address: PciAddress, file: &str) -> Result<u32, Stop> {
    let text = sysfs::read(sysfs::function(address).join(file))?;
    Ok(u32::from_str_radix(text.trim_start_matches("0x"), 16)?)
}

fn a_pf_counts_its_vfs_and_lists_them_by_number(node: &Node) -> Outcome {
    let sysfs = Sysfs::host();
    let pf = function(&sysfs, node.pf()?)?;
    let folder = sysfs::function(node.pf()?);
    let number = |file: &str| -> Result<u32, Stop> { Ok(sysfs::read(folder.join(file))?.parse()?) };
    let sriov = present("the PF's SR-IOV capability", pf.sriov())?;
    same("total VFs", sriov.total_vfs, number("sriov_totalvfs")?)?;
    same("VFs", sriov.num_vfs, Some(number("sriov_numvfs")?))?;
    same(
        "the VFs' device ID",
        sriov.vf_device.map(u32::from),
        Some(hexadecimal(node.pf()?, "sriov_vf_device")?),
    )?;
    let expected: Vec<(u32, PciAddress)> = (0..).zip(node.vfs.iter().copied()).collect();
    same("the list of VFs", pf.vfs(), expected)?;
    same("the PF as a VF", pf.physfn(), None)
}

fn a_vf_knows_its_pf_and_its_number(node: &Node) -> Outcome {
    let sysfs = Sysfs::host();
    for (number, address) in (0..).zip(&node.vfs) {
        let vf = function(&sysfs, *address)?;
        same(format!("{address}'s PF"), vf.physfn(), Some(node.pf()?))?;
        same(format!("{address}'s number"), vf.vf_index(), Some(number))?;
        holds(format!("{address} is not a PF"), vf.sriov().is_none())?;
    }
    same("remarks", sysfs.take_remarks().len(), 0)
}

fn a_vf_shows_its_ids_its_driver_and_its_interface(node: &Node) -> Outcome {
    let (sysfs, address) = (Sysfs::host(), node.vf(0)?);
    let vf = function(&sysfs, address)?;
    let id = |file| Ok::<_, Stop>(Some(hexadecimal(address, file)?));
    same("vendor", vf.vendor().map(u32::from), id("vendor")?)?;
    same("device", vf.device().map(u32::from), id("device")?)?;
    same("class", vf.class(), id("class")?)?;
    holds("it is a network function", vf.is_network())?;
    let folder = sysfs::function(address);
    same("driver", vf.driver(), sysfs::link(folder.join("driver")))?;
    same("interface", vf.netdev(), Some(netdev(address)?))?;
    let numa = sysfs::read(folder.join("numa_node"))?;
    same("NUMA node", vf.numa_node(), numa.parse().ok())
}

fn an_interface_in_a_pod_is_gone_from_the_host_and_still_its_vf(node: &Node) -> Outcome {
    let (sysfs, address, other) = (Sysfs::host(), node.vf(1)?, node.vf(0)?);
    let vf = function(&sysfs, address)?;
    let (pod, name) = (Netns::add("hwt-pod")?, netdev(address)?);
    let taken = pod.take(&name, "net1")?;
    same("interfaces on the host", vf.netdevs(), Vec::<String>::new())?;
    same("its driver", vf.driver().is_some(), true)?;

    let link = Link::show(Some(&pod), "net1")?;
    let identity = sysfs.identity(&link.parent_bus, &link.parent_name);
    same(
        "it is its VF",
        identity.is(&address.to_string()),
        Some(true),
    )?;
    same(
        "it is another",
        identity.is(&other.to_string()),
        Some(false),
    )?;

    drop(taken);
    same("interfaces once back", vf.netdevs(), vec![name.clone()])
}

fn a_vf_without_a_driver_is_not_an_error(node: &Node) -> Outcome {
    let (sysfs, address) = (Sysfs::host(), node.vf(1)?);
    let vf = function(&sysfs, address)?;
    let unbound = DriverBinding::to_none(address)?;
    same("driver", vf.driver(), None)?;
    same("interfaces", vf.netdevs(), Vec::<String>::new())?;
    same("its PF", vf.physfn(), Some(node.pf()?))?;
    same("VFIO", vf.vfio(), None)?;
    same("remarks", sysfs.take_remarks().len(), 0)?;
    drop(unbound);
    netdev(address).map(drop)
}

fn a_nic_without_an_eswitch_has_no_representors(node: &Node) -> Outcome {
    let sysfs = Sysfs::host();
    let vf = function(&sysfs, node.vf(0)?)?;
    let handle = DevlinkHandle {
        bus: "pci".to_owned(),
        name: node.pf()?.to_string(),
    };
    let switch = Switch::read(&mut Devlink::open()?, &handle)?;
    if switch.mode.is_some() {
        return Err(Stop::Skipped(format!("{} has an eswitch", node.pf()?)));
    }
    same(
        "representor by devlink",
        vf.representor(Some(&switch)),
        None,
    )?;
    same("representor by names", vf.representor(None), None)
}

/// Measured and reported, on the spare PF with as many VFs as it can have, if there is one.
fn reading_the_state_of_vfs_has_a_cost_per_vf(node: &Node) -> Outcome {
    let pf = node.spare_pf()?;
    let made = if pf == node.pf()? {
        None
    } else {
        let total = sysfs::read(sysfs::function(pf).join("sriov_totalvfs"))?;
        Some(Vfs::make_bare(pf, total.parse()?)?)
    };
    let count = made
        .as_ref()
        .map_or(node.vfs.len(), |vfs| vfs.addresses().len());
    let (with, without) = vf_state_cost(&netdev(pf)?)?;
    let each = with.saturating_sub(without) / u32::try_from(count)?;
    let millis = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1000.0);
    node.notes.write(format!(
        "the state of {count} VFs of {pf}: {} ({} without them), {} per VF",
        millis(with),
        millis(without),
        millis(each)
    ));
    holds(
        format!("one VF costs {}, at most 5 ms", millis(each)),
        each < Duration::from_millis(5),
    )
}

fn vfs_come_and_go(node: &Node) -> Outcome {
    let pf = node.spare_pf()?;
    if pf == node.pf()? {
        return Err(Stop::Skipped(
            "it needs a second PF, because the first one's VFs are in use; give --pf twice"
                .to_owned(),
        ));
    }
    let sysfs = Sysfs::host();
    let spare = function(&sysfs, pf)?;
    let total = present("SR-IOV", spare.sriov())?.total_vfs;
    same("VFs before", spare.vfs(), Vec::new())?;
    let vfs = Vfs::make_bare(pf, usize::try_from(total)?)?;
    let listed: Vec<PciAddress> = spare.vfs().into_iter().map(|(_, vf)| vf).collect();
    same("all VFs", listed.as_slice(), vfs.addresses())?;
    let gone = function(&sysfs, present("the first VF", listed.first().copied())?)?;
    drop(vfs);
    same("VFs afterwards", spare.vfs(), Vec::new())?;
    same("the PF of a removed VF", gone.physfn(), None)?;
    same("the driver of a removed VF", gone.driver(), None)?;
    same("remarks", sysfs.take_remarks().len(), 0)
}
