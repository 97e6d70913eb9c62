//! What can be wrong with what devices depend on.

use std::io;
use std::path::PathBuf;

use crate::allocation::CheckpointError;
use crate::cluster::PodName;
use crate::diagnostic::Problem;
use crate::kernel::KernelError;

/// What is wrong with a device, or with what devices depend on.
#[derive(Debug)]
pub(super) enum DeviceProblem {
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

impl Problem for DeviceProblem {
    fn words(&self) -> String {
        match self {
            DeviceProblem::NoNamespaces(cause) => format!(
                "cannot find out whether its virtual functions are in a network namespace: {cause}"
            ),
            DeviceProblem::Unrestored { pod, causes, .. } => format!(
                "it is not as it was before {} had it: {}",
                match pod {
                    Some(pod) => format!("pod {pod}"),
                    None => "a pod".to_owned(),
                },
                causes.join(", ")
            ),
            DeviceProblem::PodResources(failure) => failure.clone(),
            DeviceProblem::Checkpoint(cause) => cause.to_string(),
            DeviceProblem::SharedRdma => {
                "its plugin rdma needs RDMA's exclusive mode, and the kernel shares RDMA devices \
                 among all network namespaces"
                    .to_owned()
            }
            DeviceProblem::NoRdma { file, cause } => {
                format!(
                    "its plugin rdma needs RDMA, and {}: {cause}",
                    file.display()
                )
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            DeviceProblem::NoNamespaces(_) => "run it as root on the node itself",
            DeviceProblem::Unrestored { driver, .. } => {
                let driver = driver.as_deref().unwrap_or("DRIVER");
                return Some(format!(
                    "bind it again by /sys/bus/pci/drivers/{driver}/unbind and bind; the next ADD \
                     that gets it looks again"
                ));
            }
            DeviceProblem::PodResources(_) => {
                "make kubelet answer at its pod-resources socket, or correct podResourcesSocket"
            }
            DeviceProblem::Checkpoint(_) => "restart kubelet, or correct kubeletCheckpoint",
            DeviceProblem::SharedRdma => {
                "put `options ib_core netns_mode=0` into /etc/modprobe.d and reboot, or run `rdma \
                 system set netns exclusive` while no pod has a network namespace"
            }
            DeviceProblem::NoRdma { .. } => "load the module ib_core with the driver of the device",
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
        let problem = DeviceProblem::Unrestored {
            pod: None,
            causes: vec!["a".to_owned(), "b".to_owned()],
            driver: None,
        };
        assert_eq!(
            line(&problem),
            "it is not as it was before a pod had it: a, b; bind it again by \
             /sys/bus/pci/drivers/DRIVER/unbind and bind; the next ADD that gets it looks again"
        );
    }
}
