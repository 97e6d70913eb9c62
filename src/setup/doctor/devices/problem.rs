//! What can be wrong with what devices depend on.

use std::io;
use std::path::PathBuf;

use crate::allocation::CheckpointError;
use crate::cluster::PodName;
use crate::diagnostic::Problem;
use crate::kernel::KernelError;

/// What is wrong with a device, or with what devices depend on.
#[derive(Debug)]
pub(super) enum DeviceCheckProblem {
    /// The network namespaces cannot be searched for virtual functions.
    NoNamespaces(KernelError),
    /// A DEL could not restore the device.
    Unrestored {
        /// The pod that had the device, if it is known.
        pod: Option<PodName>,
        /// Why, one line per setting.
        causes: Vec<String>,
        /// The driver that the device had before.
        driver: Option<String>,
    },
    /// Kubelet does not answer about devices.
    PodResources(String),
    /// Kubelet's checkpoint cannot be used.
    Checkpoint(CheckpointError),
    /// The kernel shares RDMA devices among all network namespaces.
    SharedRdma,
    /// The kernel has no RDMA.
    NoRdma {
        /// The file of its mode.
        file: PathBuf,
        /// Why the file cannot be read.
        cause: io::Error,
    },
}

impl Problem for DeviceCheckProblem {
    fn words(&self) -> String {
        match self {
            DeviceCheckProblem::NoNamespaces(cause) => format!(
                "cannot find out whether its virtual functions are in a network namespace: {cause}"
            ),
            DeviceCheckProblem::Unrestored { pod, causes, .. } => format!(
                "it is not as it was before {} had it: {}",
                match pod {
                    Some(pod) => format!("pod {pod}"),
                    None => "a pod".to_owned(),
                },
                causes.join(", ")
            ),
            DeviceCheckProblem::PodResources(failure) => failure.clone(),
            DeviceCheckProblem::Checkpoint(cause) => cause.words(),
            DeviceCheckProblem::SharedRdma => {
                "its plugin rdma needs RDMA's exclusive mode, and the kernel shares RDMA devices \
                 among all network namespaces"
                    .to_owned()
            }
            DeviceCheckProblem::NoRdma { file, cause } => {
                format!(
                    "its plugin rdma needs RDMA, and {}: {cause}",
                    file.display()
                )
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            DeviceCheckProblem::NoNamespaces(_) => "run it as root on the node itself",
            DeviceCheckProblem::Unrestored { driver, .. } => {
                let driver = driver.as_deref().unwrap_or("DRIVER");
                return Some(format!(
                    "rebind it through /sys/bus/pci/drivers/{driver}/unbind and bind; the next ADD \
                     that gets it tries to restore it again"
                ));
            }
            DeviceCheckProblem::PodResources(_) => {
                "make kubelet answer at its pod-resources socket, or correct podResourcesSocket"
            }
            DeviceCheckProblem::Checkpoint(cause) => return cause.remedy(),
            DeviceCheckProblem::SharedRdma => {
                "put `options ib_core netns_mode=0` into /etc/modprobe.d and reboot, or run `rdma \
                 system set netns exclusive` while no pod has a network namespace"
            }
            DeviceCheckProblem::NoRdma { .. } => {
                "load the module ib_core with the driver of the device"
            }
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::line;

    #[test]
    fn an_unrestored_device_has_its_words() {
        let problem = DeviceCheckProblem::Unrestored {
            pod: None,
            causes: vec!["a".to_owned(), "b".to_owned()],
            driver: None,
        };
        assert_eq!(
            line(&problem),
            "it is not as it was before a pod had it: a, b; rebind it through \
             /sys/bus/pci/drivers/DRIVER/unbind and bind; the next ADD that gets it tries to \
             restore it again"
        );
    }
}
