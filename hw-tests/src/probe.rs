//! Probes the features of a machine.

use std::path::Path;

use crate::feature::Feature;
use crate::node::Node;
use crate::rig::{command, sysfs};

/// Checks that the machine has the feature, and loads the modules for it. Returns why not.
pub(crate) fn probe(feature: Feature, node: &Node) -> Result<(), String> {
    match feature {
        Feature::Sriov => sriov(node),
        Feature::Vfio => sriov(node)
            .and_then(|()| modules(&["vfio-pci"]))
            .and_then(|()| iommu(node, true)),
        Feature::VfioNoiommu => sriov(node)
            .and_then(|()| modules(&["vfio-pci"]))
            .and_then(|()| iommu(node, false))
            .and_then(|()| noiommu_allowed()),
        Feature::VdpaSim => vdpa_bus().and_then(|()| modules(&["vdpa_sim_net"])),
        Feature::Vduse => vdpa_bus()
            .and_then(|()| modules(&["vduse"]))
            .and_then(|()| program("vduse-net")),
        Feature::VpVdpa => node
            .virtio()
            .map(drop)
            .map_err(|_| "no virtio network function was given; name one by --virtio".to_owned())
            .and_then(|()| vdpa_bus())
            .and_then(|()| modules(&["vp_vdpa"])),
        Feature::Switchdev => modules(&["netdevsim"]).and_then(|()| program("devlink")),
        Feature::RdmaShared => soft_roce().and_then(|()| rdma_mode("shared")),
        Feature::RdmaExclusive => soft_roce().and_then(|()| rdma_mode("exclusive")),
        Feature::Pods => pods(node),
        Feature::Bond => pods(node).and_then(|()| modules(&["bonding"])),
        Feature::Dpdk => pods(node).and_then(|()| program("dpdk-testpmd")),
        Feature::Guest if node.is_guest => Ok(()),
        Feature::Guest => Err("it checks this program itself, in the virtual machine".to_owned()),
        Feature::IpoibStub => {
            sriov(node).and_then(|()| modules(&["ib_stub", "ib_ipoib", "pci-pf-stub"]))
        }
    }
}

fn sriov(node: &Node) -> Result<(), String> {
    let Some(pf) = node.pfs.first() else {
        return Err("no PF was given; name one by --pf".to_owned());
    };
    match sysfs::read(sysfs::function(*pf).join("sriov_totalvfs")) {
        Ok(total) if total != "0" => Ok(()),
        Ok(_) => Err(format!("{pf} has no SR-IOV; enable it in its firmware")),
        Err(error) => Err(format!("{pf} is not a PF: {error}")),
    }
}

fn iommu(node: &Node, wanted: bool) -> Result<(), String> {
    let Some(pf) = node.pfs.first() else {
        return Err("no PF was given; name one by --pf".to_owned());
    };
    match (
        sysfs::link(sysfs::function(*pf).join("iommu_group")),
        wanted,
    ) {
        (Some(_), true) | (None, false) => Ok(()),
        (None, true) => Err(format!(
            "{pf} is not behind an IOMMU; add intel_iommu=on or amd_iommu=on to the kernel's command line"
        )),
        (Some(group), false) => Err(format!("{pf} is behind an IOMMU, in group {group}")),
    }
}

/// The suite never switches this on, because it lets devices write all memory.
fn noiommu_allowed() -> Result<(), String> {
    const FILE: &str = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
    match sysfs::read(FILE) {
        Ok(value) if value == "Y" => Ok(()),
        Ok(_) => Err(format!("{FILE} is off")),
        Err(error) => Err(error.to_string()),
    }
}

/// Checks the binary and the plugins for pods.
fn pods(node: &Node) -> Result<(), String> {
    let Some(jackfield) = &node.jackfield else {
        return Err("no binary jackfield was given; name it by --jackfield".to_owned());
    };
    if !jackfield.is_file() {
        return Err(format!(
            "{} does not exist; name another by --jackfield",
            jackfield.display()
        ));
    }
    ["host-device", "static", "tuning", "dummy"]
        .iter()
        .try_for_each(|name| plugin(node, name))
        .and_then(|()| modules(&["dummy"]))
}

fn plugin(node: &Node, name: &str) -> Result<(), String> {
    let Some(folder) = &node.cni_bin else {
        return Err("no CNI plugins were given; name their folder by --cni-bin".to_owned());
    };
    if folder.join(name).is_file() {
        return Ok(());
    }
    Err(format!(
        "no CNI plugin {name} in {}; name another folder by --cni-bin",
        folder.display()
    ))
}

fn vdpa_bus() -> Result<(), String> {
    modules(&["vhost_vdpa", "virtio_vdpa"]).and_then(|()| program("vdpa"))
}

fn soft_roce() -> Result<(), String> {
    modules(&["rdma_rxe"]).and_then(|()| program("rdma"))
}

fn rdma_mode(wanted: &str) -> Result<(), String> {
    let output = command("rdma", &["system", "show"]).map_err(|error| error.to_string())?;
    if output.split_whitespace().any(|word| word == wanted) {
        return Ok(());
    }
    Err(format!(
        "RDMA devices are not {wanted} among network namespaces here ({}); run `rdma system set netns {wanted}` before any namespace exists",
        output.trim()
    ))
}

fn modules(names: &[&str]) -> Result<(), String> {
    for name in names {
        let loaded = Path::new("/sys/module").join(name.replace('-', "_"));
        if !loaded.exists() {
            command("modprobe", &[name]).map_err(|error| format!("no module {name}: {error}"))?;
        }
    }
    Ok(())
}

fn program(name: &str) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(name).is_file()) {
        return Ok(());
    }
    Err(format!("no program {name} in PATH"))
}
