//! Checks kubelet's socket and checkpoint, virtual functions that have lost their interface,
//! devices that no DEL could restore, and the kernel's RDMA mode.

use std::fs;
use std::path::Path;

use device_info::{Inventory, Sysfs};

use super::{AS_ROOT, Findings};
use crate::allocation::{Checkpoint, CheckpointCause};
use crate::kernel::devices_in_all_namespaces;
use crate::kubelet;
use crate::operation::Context;
use crate::operation::devices::orphans::orphans;
use crate::operation::devices::unrestored::still_unrestored;
use crate::operation::examine::Examined;

/// The plugin that moves an RDMA device into the pod's network namespace.
const RDMA: &str = "rdma";
/// The file of the kernel's RDMA mode. The mode decides whether network namespaces share RDMA
/// devices.
const RDMA_MODE: &str = "module/ib_core/parameters/netns_mode";
/// A namespace, a pod and a resource for a test request to kubelet. The pod does not exist, so it
/// has no device of the resource. In this case, [`kubelet::ask`] also asks which resources have
/// devices on this node.
const NO_POD: (&str, &str, &str) = ("jackfield", "doctor", "jackfield.io/none");

/// Checks devices. Checks kubelet's socket only if a network may use devices, and the RDMA mode
/// only if a network uses the plugin `rdma`.
pub(super) fn look(context: &Context<'_>, networks: &[Examined], mut findings: Findings<'_>) {
    let with_devices = networks.iter().filter(|network| network.resource.is_some());
    let with_devices = with_devices.count();
    // If the networks are unknown, they may use devices.
    let uses_devices = networks.is_empty() || with_devices > 0;
    let has_plugins = uses_devices && pod_resources(context, &mut findings);
    checkpoint(context, has_plugins, &mut findings);
    orphaned(context, &mut findings);
    unrestored(context, &mut findings);
    let uses_rdma = |network: &&Examined| network.types.iter().any(|name| name == RDMA);
    if let Some(network) = networks.iter().find(uses_rdma) {
        exclusive(context, &network.label, &mut findings);
    }
    if !networks.is_empty() {
        findings.fine(format!("{with_devices} networks use devices"));
    }
}

/// Finds virtual functions that no pod can use, although the device plugin may still give them to
/// pods.
fn orphaned(context: &Context<'_>, findings: &mut Findings<'_>) {
    let root = &context.request.config.sysfs_root;
    let dev = root.parent().unwrap_or(Path::new("/")).join("dev");
    let inventory = Inventory::read(&Sysfs::at(root, dev), &mut |_| None);
    // The check of the journal reports a journal that cannot be read.
    let Ok(users) = context.host.journal.device_users() else {
        return;
    };
    match orphans(&inventory, &users, devices_in_all_namespaces) {
        Ok(orphans) => {
            for orphan in orphans {
                findings.add_problem(format!("device {}", orphan.address), &orphan);
            }
        }
        Err(error) => {
            let problem = format!(
                "cannot search all network namespaces for the interfaces of unused virtual \
                 functions: {error}"
            );
            findings.add(root.display(), problem, AS_ROOT);
        }
    }
}

/// Finds devices that no DEL could restore.
fn unrestored(context: &Context<'_>, findings: &mut Findings<'_>) {
    for device in still_unrestored(context) {
        let pod = device
            .pod
            .map_or_else(|| "a pod".to_owned(), |pod| format!("pod {pod}"));
        let causes = device.causes.join(", ");
        let problem = format!("its state differs from the state before {pod} used it: {causes}");
        let remedy = format!(
            "the next ADD with this device tries again to restore it; if `jackfield devices` shows \
             no pod with the device, you can also rebind it: write its PCI address to \
             /sys/bus/pci/drivers/{driver}/unbind, then to /sys/bus/pci/drivers/{driver}/bind",
            driver = device.before.driver.as_deref().unwrap_or("DRIVER")
        );
        findings.add(&device.before, problem, remedy);
    }
}

/// Sends a test request to kubelet. Returns whether a device plugin may have devices on this node.
/// Devices of DRA drivers do not count.
fn pod_resources(context: &Context<'_>, findings: &mut Findings<'_>) -> bool {
    let socket = &context.request.config.pod_resources_socket;
    let (namespace, name, resource) = NO_POD;
    let devices = kubelet::ask(socket, namespace, name, &[resource]);
    if let Some(failure) = devices.failure {
        let remedy =
            "make kubelet answer at its pod-resources socket, or correct podResourcesSocket";
        findings.add(socket.display(), failure, remedy);
    }
    devices.on_node.is_none_or(|names| !names.is_empty())
}

fn checkpoint(context: &Context<'_>, is_needed: bool, findings: &mut Findings<'_>) {
    let file = &context.request.config.kubelet_checkpoint;
    match Checkpoint::read(file) {
        // Kubelet creates no checkpoint before a device plugin has a device.
        Err(error) if error.cause == CheckpointCause::Missing && !is_needed => {}
        Err(error) => findings.add_problem(file.display(), &error),
        Ok(_) => {}
    }
}

fn exclusive(context: &Context<'_>, label: &str, findings: &mut Findings<'_>) {
    let file = context.request.config.sysfs_root.join(RDMA_MODE);
    let about = format!("network {label}");
    match fs::read_to_string(&file) {
        Ok(mode) if mode.trim() == "N" => {}
        Ok(_) => findings.add(
            about,
            "its plugin rdma needs RDMA's exclusive mode, but the kernel shares RDMA devices among \
             all network namespaces",
            "put `options ib_core netns_mode=0` into a file in /etc/modprobe.d and reboot, or run \
             `rdma system set netns exclusive` while no pod has a network namespace",
        ),
        Err(cause) => {
            let file = file.display();
            let problem = format!("its plugin rdma needs RDMA, but {file} cannot be read: {cause}");
            let remedy = "load the module ib_core and the device's driver";
            findings.add(about, problem, remedy);
        }
    }
}
