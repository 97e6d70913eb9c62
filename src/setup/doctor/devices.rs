//! Checks what devices depend on: kubelet's socket and checkpoint, orphaned virtual functions, and
//! the mode of RDMA.

mod problem;

use std::fs;
use std::path::Path;

use problem::DeviceCheckProblem;

use device_info::{Inventory, Sysfs};

use super::{Check, Diagnosis};
use crate::allocation::{Checkpoint, CheckpointError};
use crate::kernel::devices_in_all_namespaces;
use crate::kubelet;
use crate::operation::Context;
use crate::operation::devices::orphans::orphans;
use crate::operation::devices::unrestored::otherwise;
use crate::operation::examine::Examined;

/// The plugin that moves a pod's RDMA device into its network namespace.
const RDMA: &str = "rdma";
/// The kernel's mode of RDMA: whether network namespaces share RDMA devices.
const RDMA_MODE: &str = "module/ib_core/parameters/netns_mode";
/// The pod and the resource in a question to kubelet: they do not exist, so that the answer is short.
const NO_POD: (&str, &str, &str) = ("jackfield", "doctor", "jackfield.io/none");

/// Checks as much as the networks of this node need.
pub(super) fn look(context: &Context<'_>, networks: &[Examined], diagnosis: &mut Diagnosis) {
    // Unknown networks may use devices.
    let uses_devices =
        networks.is_empty() || networks.iter().any(|network| network.resource.is_some());
    let has_plugins = uses_devices && pod_resources(context, diagnosis);
    checkpoint(context, has_plugins, diagnosis);
    orphaned(context, diagnosis);
    unrestored(context, diagnosis);
    let rdma = networks
        .iter()
        .find(|network| network.types.iter().any(|name| name == RDMA));
    if let Some(network) = rdma {
        exclusive(context, &network.label, diagnosis);
    }
    if diagnosis.is_fine(Check::Devices) {
        let count = networks
            .iter()
            .filter(|network| network.resource.is_some())
            .count();
        diagnosis.fine(Check::Devices, format!("{count} networks use devices"));
    }
}

/// Finds virtual functions that the device plugin goes on giving to pods, and no pod can use.
fn orphaned(context: &Context<'_>, diagnosis: &mut Diagnosis) {
    let root = &context.request.config.sysfs_root;
    let dev = root.parent().unwrap_or(Path::new("/")).join("dev");
    let inventory = Inventory::read(&Sysfs::at(root, dev), &mut |_| None);
    // A journal that cannot be read is its own finding.
    let Ok(users) = context.host.journal.device_users() else {
        return;
    };
    match orphans(&inventory, &users, devices_in_all_namespaces) {
        Ok(orphans) => {
            for orphan in orphans {
                let about = format!("device {}", orphan.address);
                diagnosis.find(Check::Devices, about, orphan);
            }
        }
        Err(error) => {
            let problem = DeviceCheckProblem::NoNamespaces(error);
            diagnosis.find(Check::Devices, root.display(), problem);
        }
    }
}

/// Finds devices that no DEL could restore.
fn unrestored(context: &Context<'_>, diagnosis: &mut Diagnosis) {
    for device in otherwise(context) {
        let problem = DeviceCheckProblem::Unrestored {
            pod: device.pod,
            causes: device.causes,
            driver: device.before.driver.clone(),
        };
        diagnosis.find(Check::Devices, &device.before, problem);
    }
}

/// Asks kubelet, and returns whether a device plugin may have devices on this node. DRA drivers need
/// no device plugin.
fn pod_resources(context: &Context<'_>, diagnosis: &mut Diagnosis) -> bool {
    let socket = &context.request.config.pod_resources_socket;
    let (namespace, name, resource) = NO_POD;
    let devices = kubelet::ask(socket, namespace, name, &[resource]);
    if let Some(failure) = devices.failure {
        let problem = DeviceCheckProblem::PodResources(failure);
        diagnosis.find(Check::Devices, socket.display(), problem);
    }
    devices.on_node.is_none_or(|names| !names.is_empty())
}

fn checkpoint(context: &Context<'_>, is_needed: bool, diagnosis: &mut Diagnosis) {
    let file = &context.request.config.kubelet_checkpoint;
    match Checkpoint::read(file) {
        // Kubelet writes it with the first device of a device plugin.
        Err(CheckpointError::Missing { .. }) if !is_needed => {}
        Err(error) => {
            let problem = DeviceCheckProblem::Checkpoint(error);
            diagnosis.find(Check::Devices, file.display(), problem);
        }
        Ok(_) => {}
    }
}

fn exclusive(context: &Context<'_>, label: &str, diagnosis: &mut Diagnosis) {
    let file = context.request.config.sysfs_root.join(RDMA_MODE);
    let about = format!("network {label}");
    match fs::read_to_string(&file) {
        Ok(mode) if mode.trim() == "N" => {}
        Ok(_) => diagnosis.find(Check::Devices, about, DeviceCheckProblem::SharedRdma),
        Err(cause) => {
            let problem = DeviceCheckProblem::NoRdma { file, cause };
            diagnosis.find(Check::Devices, about, problem);
        }
    }
}
