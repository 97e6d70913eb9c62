//! Checks kubelet's socket and checkpoint, virtual functions that have lost their interface,
//! devices that no DEL could restore, and the kernel's RDMA mode.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use device_info::{Inventory, Sysfs};

use super::Findings;
use crate::allocation::{Checkpoint, CheckpointCause};
use crate::cluster::PodName;
use crate::kernel::{KernelError, devices_in_all_namespaces};
use crate::kubelet;
use crate::operation::Context;
use crate::operation::devices::orphans::orphans;
use crate::operation::devices::unrestored::otherwise;
use crate::operation::examine::Examined;

/// The plugin that moves an RDMA device into the pod's network namespace.
const RDMA: &str = "rdma";
/// The file of the kernel's RDMA mode, which decides whether network namespaces share RDMA devices.
const RDMA_MODE: &str = "module/ib_core/parameters/netns_mode";
/// The pod and the resource in a test request to kubelet. Neither exists, so the answer is short.
const NO_POD: (&str, &str, &str) = ("jackfield", "doctor", "jackfield.io/none");

/// What is wrong with a device, or with the kernel's support for devices.
#[derive(Debug, thiserror::Error)]
enum DeviceCheckProblem {
    /// The network namespaces cannot be searched for virtual functions.
    #[error("cannot find out whether unused virtual functions are in a network namespace: {0}")]
    NoNamespaces(KernelError),
    /// A DEL could not restore the device.
    #[error(
        "it differs from its state before {} had it: {}",
        pod.as_ref().map_or_else(|| "a pod".to_owned(), |pod| format!("pod {pod}")),
        causes.join(", ")
    )]
    Unrestored {
        /// The pod that had the device, if it is known.
        pod: Option<PodName>,
        /// Why a DEL could not restore the settings, one line per setting.
        causes: Vec<String>,
    },
    /// The kernel does not support RDMA.
    #[error("its plugin rdma needs RDMA, but {file}: {cause}")]
    NoRdma {
        /// The file of the RDMA mode.
        file: PathBuf,
        /// Why the file cannot be read.
        cause: io::Error,
    },
}

/// Checks devices. Requires kubelet's socket only if a network may use devices, and RDMA only if a
/// network uses the plugin `rdma`.
pub(super) fn look(context: &Context<'_>, networks: &[Examined], mut findings: Findings<'_>) {
    let with_devices = networks.iter().filter(|network| network.resource.is_some());
    let with_devices = with_devices.count();
    // If the networks are unknown, they may use devices.
    let uses_devices = networks.is_empty() || with_devices > 0;
    let has_plugins = uses_devices && pod_resources(context, &mut findings);
    checkpoint(context, has_plugins, &mut findings);
    orphaned(context, &mut findings);
    unrestored(context, &mut findings);
    let mut networks = networks.iter();
    if let Some(network) = networks.find(|network| network.types.iter().any(|name| name == RDMA)) {
        exclusive(context, &network.label, &mut findings);
    }
    findings.fine(format!("{with_devices} networks use devices"));
}

/// Finds virtual functions that no pod can use, although the device plugin still gives them to
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
                findings.add_problem(format!("device {}", orphan.address), orphan);
            }
        }
        Err(error) => {
            let problem = DeviceCheckProblem::NoNamespaces(error);
            findings.add(
                root.display(),
                problem,
                "run doctor as root on the node itself",
            );
        }
    }
}

/// Finds devices that no DEL could restore.
fn unrestored(context: &Context<'_>, findings: &mut Findings<'_>) {
    for device in otherwise(context) {
        let (pod, causes) = (device.pod, device.causes);
        let remedy = format!(
            "rebind it through /sys/bus/pci/drivers/{}/unbind and bind; the next ADD with this \
             device tries again to restore it",
            device.before.driver.as_deref().unwrap_or("DRIVER")
        );
        let problem = DeviceCheckProblem::Unrestored { pod, causes };
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
        // Kubelet writes the checkpoint when a device plugin has its first device.
        Err(error) if error.cause == CheckpointCause::Missing && !is_needed => {}
        Err(error) => findings.add_problem(file.display(), error),
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
            "its plugin rdma needs RDMA's exclusive mode, and the kernel shares RDMA devices among \
             all network namespaces",
            "put `options ib_core netns_mode=0` into /etc/modprobe.d and reboot, or run `rdma \
             system set netns exclusive` while no pod has a network namespace",
        ),
        Err(cause) => {
            let remedy = "load the module ib_core with the driver of the device";
            findings.add(about, DeviceCheckProblem::NoRdma { file, cause }, remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unrestored_device_has_its_words() {
        let problem = DeviceCheckProblem::Unrestored {
            pod: None,
            causes: vec!["a".to_owned(), "b".to_owned()],
        };
        assert_eq!(
            problem.to_string(),
            "it differs from its state before a pod had it: a, b"
        );
    }
}
