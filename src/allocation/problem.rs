//! Everything that can be wrong with a pod's devices, as data.

mod words;

use std::io;
use std::path::{Path, PathBuf};

use crate::cni::ParserError;
use crate::diagnostic::SharedError;
use crate::kubelet::DynamicDevice;

/// Why a network gets no device (code 104).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    /// More networks want a device of the resource than the pod has.
    TooFew {
        /// The resource.
        resource: String,
        /// How many networks want one of its devices.
        networks: usize,
        /// The pod's devices of the resource.
        devices: Vec<String>,
    },
    /// The pod names a device that is not its own.
    NotOwned {
        /// The device.
        id: String,
        /// The resource of the definition, if it names one.
        resource: Option<String>,
        /// The pod's devices of that resource, or all of them.
        own: Vec<String>,
    },
    /// The pod names one device for two networks.
    Twice {
        /// The device.
        id: String,
    },
    /// The pod's devices of the resource are unknown.
    Unknown(#[source] Box<UnknownDevices>),
    /// The pod's devices of the resource were not looked up.
    NotLookedUp {
        /// The resource.
        resource: String,
    },
}

/// The pod's devices of a resource are unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct UnknownDevices {
    /// The resource, or the driver of devices without one.
    pub resource: String,
    /// Why they are unknown.
    pub cause: UnknownCause,
}

/// Why the pod's devices of a resource are unknown.
///
/// A `report` is the line in which the agent or kubelet's client says what failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownCause {
    /// The call's deadline passed before they were judged.
    NoTime,
    /// Neither the runtime nor the cluster names the pod's UID.
    NoUid,
    /// kubelet's checkpoint cannot be used.
    Checkpoint {
        /// What is wrong with it.
        error: CheckpointError,
        /// The devices that pod-resources names for a pod of this name.
        ids: Vec<String>,
    },
    /// kubelet's checkpoint has fewer devices of the pod than its containers request.
    Missing {
        /// The checkpoint.
        file: PathBuf,
        /// The pod's UID.
        uid: String,
        /// How many it has.
        recorded: usize,
        /// How many the containers request.
        requested: u64,
        /// What pod-resources answers.
        pod_resources: PodResourcesAnswer,
    },
    /// kubelet does not say whether the pod has any.
    Unanswered {
        /// Why, if kubelet could not be asked.
        report: Option<String>,
    },
    /// The pod has claims, and kubelet was not asked about them.
    ClaimsNotAsked,
    /// kubelet names no device of the pod's claims.
    NoClaimedDevice {
        /// Why, if kubelet could not be asked.
        report: Option<String>,
    },
    /// The devices of the pod's claims belong to other resources.
    OtherResources {
        /// The first of them.
        devices: Vec<ClaimedDevice>,
        /// How many more there are.
        others: usize,
    },
    /// No ResourceSlice of the node has the device of a claim.
    NoSlice {
        /// The device.
        device: Box<ClaimedDevice>,
        /// Why, if the slices could not be read.
        report: Option<String>,
    },
    /// The ResourceSlice of a claim's device has no identifier of it.
    NoIdentifier(Box<ClaimedDevice>),
    /// kubelet's record of claims cannot be used.
    Claims {
        /// The device of a claim.
        device: Box<ClaimedDevice>,
        /// What is wrong with the record.
        error: CheckpointError,
    },
    /// kubelet's record does not have the device for a claim of this pod.
    NotClaimed {
        /// The device.
        device: Box<ClaimedDevice>,
        /// The record.
        file: PathBuf,
        /// The pod's UID.
        uid: String,
    },
}

/// A device that a DRA driver prepared for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedDevice {
    /// The claim, `namespace/name`.
    pub claim: String,
    /// The driver.
    pub driver: String,
    /// The driver's pool.
    pub pool: String,
    /// The device's name in the pool.
    pub device: String,
}

/// What kubelet's pod-resources API answers about a resource of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodResourcesAnswer {
    /// The devices of another pod of the same name.
    OtherPod {
        /// The devices.
        ids: Vec<String>,
        /// The other pod's UID, if the checkpoint has one of the devices.
        uid: Option<String>,
    },
    /// Nothing, for this reason.
    Failure(String),
    /// The pod, without devices of the resource.
    NoDevices,
    /// That it does not know the pod.
    UnknownPod,
    /// Nothing: it was not asked.
    NotAsked,
}

/// Why a record of kubelet's cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The file does not exist.
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: SharedError,
    },
    /// The file is no whole JSON document.
    Torn {
        /// The file.
        path: PathBuf,
        /// Where it ends.
        #[source]
        error: ParserError,
    },
    /// The file is of a version that Jackfield does not know.
    Version {
        /// The file.
        path: PathBuf,
        /// What Jackfield does not expect.
        cause: UnknownVersion,
    },
}

/// What shows that a record of kubelet's is of an unknown version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownVersion {
    /// It has no object `Data`.
    NoData,
    /// `Data` has neither of the documented keys.
    NoEntries,
    /// A value has another type.
    Type(ParserError),
}

/// What is wrong with the text of a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormatError {
    Torn(ParserError),
    Version(UnknownVersion),
}

impl FormatError {
    /// The error about the file `path`.
    pub(super) fn at(self, path: &Path) -> CheckpointError {
        let path = path.to_owned();
        match self {
            FormatError::Torn(error) => CheckpointError::Torn { path, error },
            FormatError::Version(cause) => CheckpointError::Version { path, cause },
        }
    }
}

impl CheckpointError {
    /// The error about a file that cannot be read.
    pub(super) fn unreadable(path: &Path, error: io::Error) -> CheckpointError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => CheckpointError::Missing { path },
            _ => CheckpointError::Io {
                path,
                error: SharedError::new(error),
            },
        }
    }
}

impl From<&DynamicDevice> for ClaimedDevice {
    fn from(device: &DynamicDevice) -> ClaimedDevice {
        ClaimedDevice {
            claim: device.claim.clone(),
            driver: device.driver.clone(),
            pool: device.pool.clone(),
            device: device.device.clone(),
        }
    }
}

/// What surprises people about the origin of a pod's devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllocationRemark {
    /// kubelet or the cluster could not be asked for all of it, as this line says.
    Failure(String),
    /// pod-resources names devices that kubelet's checkpoint does not have for the pod's UID.
    OtherPod {
        /// The resource.
        resource: String,
        /// The devices that pod-resources names.
        ids: Vec<String>,
        /// The checkpoint.
        file: PathBuf,
    },
}
