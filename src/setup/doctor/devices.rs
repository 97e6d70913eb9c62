//! What devices depend on: kubelet's socket and record, virtual functions that are nobody's, and
//! the mode of RDMA.

use std::fs;
use std::path::Path;

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
/// Where the kernel says whether RDMA devices are shared among network namespaces.
const RDMA_MODE: &str = "module/ib_core/parameters/netns_mode";
/// Who is asked about: nobody, so that nothing comes of it.
const NOBODY: (&str, &str, &str) = ("jackfield", "doctor", "jackfield.io/none");

/// Looks as far as a network of this node uses devices.
pub(super) fn look(context: &Context<'_>, networks: &[Examined], diagnosis: &mut Diagnosis) {
    // Of a node whose networks nobody tells, any may.
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

/// Virtual functions that the device plugin goes on giving to pods, and nobody can use.
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
                diagnosis.error(Check::Devices, about, &orphan.to_string());
            }
        }
        Err(error) => diagnosis.find(
            Check::Devices,
            root.display(),
            format!("whether its virtual functions are in any network namespace: {error}"),
            "run it as root on the node itself",
        ),
    }
}

/// Devices that no DEL could put back as they were.
fn unrestored(context: &Context<'_>, diagnosis: &mut Diagnosis) {
    for device in otherwise(context) {
        let before = &device.before;
        let pod = device.pod.as_ref();
        let whose = pod.map_or_else(|| "a pod".to_owned(), |pod| format!("pod {pod}"));
        let causes = device.causes.join(", ");
        let driver = before.driver.as_deref().unwrap_or("DRIVER");
        diagnosis.find(
            Check::Devices,
            before,
            format!("it is not as it was before {whose} had it: {causes}"),
            format!(
                "bind it anew by /sys/bus/pci/drivers/{driver}/unbind and bind; the next ADD that \
                 gets it looks again"
            ),
        );
    }
}

/// Asks kubelet, and returns whether a device plugin may have devices on this node. DRA drivers have
/// theirs without one.
fn pod_resources(context: &Context<'_>, diagnosis: &mut Diagnosis) -> bool {
    let socket = &context.request.config.pod_resources_socket;
    let (namespace, name, resource) = NOBODY;
    let devices = kubelet::ask(socket, namespace, name, &[resource]);
    if let Some(failure) = devices.failure {
        diagnosis.error(Check::Devices, socket.display(), &failure);
    }
    devices.on_node.is_none_or(|names| !names.is_empty())
}

fn checkpoint(context: &Context<'_>, is_needed: bool, diagnosis: &mut Diagnosis) {
    let file = &context.request.config.kubelet_checkpoint;
    match Checkpoint::read(file) {
        // kubelet writes it with the first device of a device plugin.
        Err(CheckpointError::Missing { .. }) if !is_needed => {}
        Err(error) => diagnosis.error(Check::Devices, file.display(), &error.to_string()),
        Ok(_) => {}
    }
}

fn exclusive(context: &Context<'_>, label: &str, diagnosis: &mut Diagnosis) {
    let file = context.request.config.sysfs_root.join(RDMA_MODE);
    let about = format!("network {label}");
    match fs::read_to_string(&file) {
        Ok(mode) if mode.trim() == "N" => {}
        Ok(_) => diagnosis.find(
            Check::Devices,
            about,
            "its plugin rdma needs RDMA's exclusive mode, and the kernel shares RDMA devices among all network namespaces",
            "put `options ib_core netns_mode=0` into /etc/modprobe.d and reboot, or run `rdma system set netns exclusive` while no pod has a network namespace",
        ),
        Err(cause) => diagnosis.find(
            Check::Devices,
            about,
            format!("its plugin rdma needs RDMA, and {}: {cause}", file.display()),
            "load the module ib_core with the driver of the device",
        ),
    }
}
