//! Everything that can be wrong with a pod's devices.

use std::io;
use std::path::PathBuf;

use serde_json::error::Category;

use crate::bounded::named;
use crate::cni::ParserError;
use crate::diagnostic::{Problem, SharedError, line};
use crate::kubelet::DynamicDevice;

/// Why a network gets no device (code 104).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    /// The pod has fewer devices of the resource than its networks need.
    #[error(
        "resource {resource}: {networks} of the pod's networks need a device each, but the pod has \
         {}; request more in a container's resources.limits or by a resource claim, or select \
         fewer networks",
        counted(devices)
    )]
    TooFew {
        /// The resource.
        resource: String,
        /// How many networks need a device of the resource.
        networks: usize,
        /// The pod's devices of the resource.
        devices: Vec<String>,
    },
    /// The pod names a device that it does not have.
    #[error(
        "deviceID {id:?}{} is not a device of this pod, which has {}; \
         {}",
        .resource.iter().map(|name| format!(" of resource {name}")).collect::<String>(),
        counted(own),
        if own.is_empty() {
            "request a device in a container's resources.limits or by a resource claim, or leave \
             deviceID out"
        } else {
            "name one of the pod's devices or leave deviceID out"
        }
    )]
    NotOwned {
        /// The device.
        id: String,
        /// The resource that the definition names.
        resource: Option<String>,
        /// The pod's devices of that resource; all devices of the pod if the definition names no
        /// resource.
        own: Vec<String>,
    },
    /// The pod names this device for two networks.
    #[error("deviceID {0:?} is named for two networks of the pod; name one device per network")]
    Twice(String),
    /// The pod's devices of the resource are unknown.
    #[error("devices of resource {resource}: {cause}")]
    Unknown {
        /// The resource. If the devices belong to a claim and have no resource name, this is the
        /// name of the DRA driver.
        resource: String,
        /// Why the devices are unknown.
        cause: Box<UnknownCause>,
    },
    /// Jackfield did not look up the pod's devices of this resource.
    #[error("Jackfield did not look up the devices of resource {0}")]
    NotLookedUp(String),
}

fn counted(devices: &[String]) -> String {
    match devices {
        [] => "none".to_owned(),
        devices => format!("{} ({})", devices.len(), named(devices)),
    }
}

/// Why the pod's devices of a resource are unknown.
///
/// A `report` is the error line of a failed request to kubelet or to the API server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownCause {
    /// The call's deadline passed before Jackfield checked the devices.
    #[error(
        "the call's deadline passed before Jackfield checked them; raise deadlines.add, or let the \
         pod use fewer resources"
    )]
    NoTime,
    /// Neither the runtime nor the cluster names the pod's UID.
    #[error("the pod's UID is not known; let the runtime pass K8S_POD_UID in CNI_ARGS")]
    NoUid,
    /// kubelet's checkpoint cannot be used.
    #[error("{}{error}", names_only(ids))]
    Checkpoint {
        /// What is wrong with the checkpoint.
        error: CheckpointError,
        /// The devices that the pod-resources API lists under the pod's name. The devices may
        /// belong to another pod of the same name.
        ids: Vec<String>,
    },
    /// kubelet's checkpoint has fewer devices of the pod than the pod's containers request.
    #[error(
        "the pod (UID {uid}) requests {requested} devices, but kubelet's checkpoint {} lists only \
         {recorded} for this UID ({pod_resources}); recreate the pod, or restart kubelet",
        .file.display()
    )]
    Missing {
        /// The checkpoint.
        file: PathBuf,
        /// The pod's UID.
        uid: String,
        /// The number of the pod's devices in the checkpoint.
        recorded: usize,
        /// The number of devices that the containers request.
        requested: u64,
        /// The answer of the pod-resources API.
        pod_resources: PodResourcesAnswer,
    },
    /// It is unknown whether the pod has devices of the resource, because a request failed or
    /// kubelet does not know the pod. Contains the report of the failed request; `None` if no
    /// request failed.
    #[error(
        "cannot find out whether the pod has any: {}",
        .0.as_deref().unwrap_or("kubelet does not know the pod; look into kubelet's log")
    )]
    Unanswered(Option<String>),
    /// The pod has claims, but Jackfield did not ask kubelet about them.
    #[error("the pod has resource claims, but Jackfield did not ask kubelet about them")]
    ClaimsNotAsked,
    /// The pod has claims, but their devices are unknown, because a request failed or kubelet names
    /// no device of the claims. Contains the report of the failed request; `None` if no request
    /// failed.
    #[error(
        "the pod has resource claims, but their devices are unknown: {}",
        .0.as_deref().unwrap_or("kubelet names none; look into kubelet's log")
    )]
    NoClaimedDevice(Option<String>),
    /// No device of the pod's claims belongs to this resource.
    #[error(
        "no device of the pod's claims ({}{}) names this resource in its attribute \
         k8s.cni.cncf.io/resourceName; correct the definition's annotation, or the attribute that \
         the driver publishes",
        named(.devices.iter().map(|it| format!("{} of driver {}", it.device, it.driver))),
        if *.others > 0 { format!(" and {others} more") } else { String::new() }
    )]
    OtherResources {
        /// The first devices of the claims.
        devices: Vec<DynamicDevice>,
        /// How many more devices the claims have.
        others: usize,
    },
    /// No ResourceSlice of the node has the device of a claim.
    #[error(
        "no ResourceSlice of this node has {}{}; let the driver publish this device, with the \
         attribute k8s.cni.cncf.io/resourceName",
        in_pool(device),
        .report.iter().map(|report| format!(" ({report})")).collect::<String>()
    )]
    NoSlice {
        /// The device.
        device: Box<DynamicDevice>,
        /// The report of a failed request, if a request failed.
        report: Option<String>,
    },
    /// The ResourceSlice of a claim's device has no identifier for the device.
    #[error(
        "{} has neither attribute k8s.cni.cncf.io/deviceID nor resource.kubernetes.io/pciBusID in \
         its ResourceSlice; let the driver publish one of the two",
        in_pool(.0)
    )]
    NoIdentifier(Box<DynamicDevice>),
    /// kubelet's record of claims cannot be used.
    #[error("{}: cannot find out which pods have claim {}: {error}", in_pool(device), .device.claim)]
    Claims {
        /// The device of a claim.
        device: Box<DynamicDevice>,
        /// What is wrong with the record.
        error: CheckpointError,
    },
    /// kubelet's record of claims does not list the device for a claim of this pod.
    #[error(
        "kubelet's record {} does not list {} for claim {} of this pod, UID {uid}; recreate the \
         pod",
        .file.display(), in_pool(device), .device.claim
    )]
    NotClaimed {
        /// The device.
        device: Box<DynamicDevice>,
        /// The record.
        file: PathBuf,
        /// The pod's UID.
        uid: String,
    },
}

fn names_only(ids: &[String]) -> String {
    match ids {
        [] => String::new(),
        ids => format!(
            "the pod-resources API names {}, but without a usable checkpoint Jackfield cannot find \
             out which pod has them: ",
            named(ids)
        ),
    }
}

/// The name of a claim's device in messages.
fn in_pool(it: &DynamicDevice) -> String {
    format!(
        "device {} of pool {} of driver {}",
        it.device, it.pool, it.driver
    )
}

/// What kubelet's pod-resources API answers about one resource of a pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PodResourcesAnswer {
    /// The answer names devices, but the checkpoint lists too few devices for this pod. The answer
    /// may be about another pod of the same name.
    #[error(
        "the pod-resources API names {}{}",
        named(ids),
        .uid.iter()
            .map(|uid| format!(", which the checkpoint lists for UID {uid}"))
            .collect::<String>()
    )]
    OtherPod {
        /// The devices.
        ids: Vec<String>,
        /// The UID for which the checkpoint lists one of these devices; `None` if it lists none.
        uid: Option<String>,
    },
    /// The API did not answer, for this reason.
    #[error("{0}")]
    Failure(String),
    /// The answer has the pod, but no device of the resource.
    #[error("the pod-resources API names none")]
    NoDevices,
    /// kubelet does not know the pod.
    #[error("the pod-resources API does not know the pod")]
    UnknownPod,
    /// Jackfield did not ask the API.
    #[error("Jackfield did not query the pod-resources API")]
    NotAsked,
}

/// Why one of kubelet's records cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", line(self))]
pub struct CheckpointError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with the file.
    #[source]
    pub cause: CheckpointCause,
}

/// What is wrong with one of kubelet's records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointCause {
    /// The file does not exist.
    #[error("does not exist")]
    Missing,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(SharedError),
    /// The file is not valid JSON, for example because it is incomplete.
    #[error("is not valid JSON: {0}")]
    Torn(ParserError),
    /// A value has an unexpected type, or a required key is missing.
    #[error("is of an unknown version: {0}")]
    UnknownType(ParserError),
    /// The object `Data` in the file has neither of the two keys that kubelet writes.
    #[error(
        "is of an unknown version: the object Data in it has neither the key PodDeviceEntries nor \
         the key RegisteredDevices"
    )]
    NoEntries,
}

impl Problem for CheckpointError {
    fn words(&self) -> String {
        format!("kubelet's record {} {}", self.path.display(), self.cause)
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self.cause {
            CheckpointCause::Missing => {
                "start kubelet, correct kubeletCheckpoint, or name the devices in a manifest's \
                 jackfield.io/devices"
            }
            CheckpointCause::Unreadable(_) => "correct kubeletCheckpoint",
            CheckpointCause::Torn(_) => "restart kubelet, which rewrites it",
            CheckpointCause::UnknownType(_) | CheckpointCause::NoEntries => {
                "use a version of Jackfield that supports this kubelet"
            }
        };
        Some(remedy.to_owned())
    }
}

impl From<io::Error> for CheckpointCause {
    fn from(error: io::Error) -> CheckpointCause {
        match error.kind() {
            io::ErrorKind::NotFound => CheckpointCause::Missing,
            _ => CheckpointCause::Unreadable(SharedError::new(error)),
        }
    }
}

impl From<serde_json::Error> for CheckpointCause {
    fn from(error: serde_json::Error) -> CheckpointCause {
        match error.classify() {
            Category::Data => CheckpointCause::UnknownType(error.into()),
            _ => CheckpointCause::Torn(error.into()),
        }
    }
}

/// A remark about the sources that name a pod's devices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocationRemark {
    /// A request to kubelet or to the cluster failed, so Jackfield may not know every device of the
    /// pod. Contains the report.
    #[error("{0}")]
    Failure(String),
    /// The pod-resources API lists devices under this pod's name, but kubelet's checkpoint does not
    /// list all of them for this pod's UID. The devices may belong to another pod of the same name.
    #[error(
        "kubelet's pod-resources API names {} of resource {resource}, but kubelet's checkpoint {} \
         does not list all of them for this pod; the API's answer may be about another pod of the \
         same name, so Jackfield uses the checkpoint",
        named(ids), .file.display()
    )]
    OtherPod {
        /// The resource.
        resource: String,
        /// The devices that the pod-resources API names.
        ids: Vec<String>,
        /// The checkpoint.
        file: PathBuf,
    },
}

#[cfg(test)]
mod tests;
