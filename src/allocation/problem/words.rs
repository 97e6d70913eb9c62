//! What is wrong with a pod's devices, in words, and what to do.

use std::fmt;

use super::{
    AllocationRemark, AssignError, CheckpointError, ClaimedDevice, PodResourcesAnswer,
    UnknownCause, UnknownDevices, UnknownVersion,
};
use crate::bounded::named;
use crate::diagnostic::{self, Problem};

/// Makes a problem's `Display` its line.
macro_rules! display {
    ($($problem:ty),*) => {$(
        impl fmt::Display for $problem {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&diagnostic::line(self))
            }
        }
    )*};
}

display!(AssignError, UnknownDevices, CheckpointError);

impl Problem for AssignError {
    fn words(&self) -> String {
        match self {
            Self::TooFew {
                resource,
                networks,
                devices,
            } => format!(
                "resource {resource}: {networks} of the pod's networks want a device each, kubelet \
                 gave the pod {}",
                counted(devices)
            ),
            Self::NotOwned { id, resource, own } => {
                let of = resource.as_ref();
                let of = of.map_or_else(String::new, |it| format!(" of resource {it}"));
                let own = counted(own);
                format!("deviceID {id:?}{of} is no device of this pod, which has {own}")
            }
            Self::Twice { id } => format!("deviceID {id:?} is named for two networks of the pod"),
            Self::Unknown(unknown) => unknown.words(),
            Self::NotLookedUp { resource } => {
                format!("devices of resource {resource} were not looked up")
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::TooFew { .. } => {
                "request more in a container's resources.limits or by a resource claim, or select \
                 fewer networks"
            }
            Self::NotOwned { .. } => "name one of those or leave deviceID out",
            Self::Twice { .. } => "give each its own",
            Self::Unknown(unknown) => return unknown.remedy(),
            Self::NotLookedUp { .. } => return None,
        };
        Some(remedy.to_owned())
    }
}

fn counted(devices: &[String]) -> String {
    match devices {
        [] => "none".to_owned(),
        devices => format!("{} ({})", devices.len(), named(devices)),
    }
}

impl Problem for UnknownDevices {
    fn words(&self) -> String {
        format!(
            "devices of resource {}: {}",
            self.resource,
            self.cause.words()
        )
    }

    fn remedy(&self) -> Option<String> {
        self.cause.remedy()
    }
}

impl Problem for UnknownCause {
    fn words(&self) -> String {
        match self {
            Self::NoTime => "the call's deadline passed before they were looked at".to_owned(),
            Self::NoUid => "the pod's UID is not known".to_owned(),
            Self::Checkpoint { error, ids } if ids.is_empty() => error.words(),
            Self::Checkpoint { error, ids } => format!(
                "pod-resources names {}, but only the checkpoint says of which pod: {}",
                named(ids),
                error.words()
            ),
            Self::Missing {
                file,
                uid,
                recorded,
                requested,
                pod_resources,
            } => format!(
                "kubelet's checkpoint {} has {recorded} of {requested} for this pod, UID {uid} \
                 ({pod_resources})",
                file.display()
            ),
            Self::Unanswered { report } => {
                let cause = report.as_deref().unwrap_or("kubelet does not know the pod");
                format!("whether it has any: {cause}")
            }
            Self::ClaimsNotAsked => {
                "the pod has resource claims, and kubelet was not asked about them".to_owned()
            }
            Self::NoClaimedDevice { report } => {
                let cause = report.as_deref().unwrap_or("it names no device of theirs");
                format!("the pod has resource claims, and kubelet was asked about them: {cause}")
            }
            Self::OtherResources { devices, others } => {
                let devices: Vec<String> = devices
                    .iter()
                    .map(|it| format!("{} of driver {}", it.device, it.driver))
                    .collect();
                let more = match others {
                    0 => String::new(),
                    others => format!(" and {others} more"),
                };
                format!(
                    "none of the devices of the pod's claims ({}{more}) has it as its attribute \
                     k8s.cni.cncf.io/resourceName",
                    devices.join(", ")
                )
            }
            Self::NoSlice { device, report } => {
                let cause = report.as_ref();
                let cause = cause.map_or_else(String::new, |report| format!(" ({report})"));
                format!("no ResourceSlice of this node has {device}{cause}")
            }
            Self::NoIdentifier(device) => format!(
                "{device} has neither attribute k8s.cni.cncf.io/deviceID nor \
                 resource.kubernetes.io/pciBusID in its ResourceSlice"
            ),
            Self::Claims { device, error } => format!(
                "{device}: whether claim {} is this pod's: {}",
                device.claim,
                error.words()
            ),
            Self::NotClaimed { device, file, uid } => format!(
                "{device}: {} does not have it for claim {} of this pod, UID {uid}",
                file.display(),
                device.claim
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::NoTime => "raise deadlines.add, or let the pod use fewer resources",
            Self::NoUid => "let the runtime pass K8S_POD_UID in CNI_ARGS",
            Self::Checkpoint { error, .. } | Self::Claims { error, .. } => return error.remedy(),
            Self::Missing { .. } => "recreate the pod, or restart kubelet",
            Self::Unanswered { report: None } | Self::NoClaimedDevice { report: None } => {
                "look into kubelet's log"
            }
            Self::OtherResources { .. } => "correct the definition's annotation or the driver",
            Self::NoSlice { .. } => {
                "let the driver publish it, with the attribute k8s.cni.cncf.io/resourceName"
            }
            Self::NoIdentifier(_) => "let the driver publish one",
            Self::NotClaimed { .. } => "recreate the pod",
            Self::ClaimsNotAsked
            | Self::Unanswered { report: Some(_) }
            | Self::NoClaimedDevice { report: Some(_) } => return None,
        };
        Some(remedy.to_owned())
    }
}

impl fmt::Display for ClaimedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "device {} of pool {} of driver {}",
            self.device, self.pool, self.driver
        )
    }
}

impl fmt::Display for PodResourcesAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherPod { ids, uid } => {
                let ids = named(ids);
                write!(
                    f,
                    "pod-resources names {ids}, which are those of another pod"
                )?;
                uid.iter().try_for_each(|uid| write!(f, " of UID {uid}"))
            }
            Self::Failure(report) => f.write_str(report),
            Self::NoDevices => f.write_str("pod-resources names none"),
            Self::UnknownPod => f.write_str("pod-resources does not know the pod"),
            Self::NotAsked => f.write_str("pod-resources was not asked"),
        }
    }
}

impl Problem for CheckpointError {
    fn words(&self) -> String {
        let (path, wrong) = match self {
            Self::Missing { path } => (path, "is not there".to_owned()),
            Self::Io { path, error } => (path, format!("cannot be read: {error}")),
            Self::Torn { path, error } => (path, format!("is torn: {error}")),
            Self::Version { path, cause } => (path, format!("is of an unknown version: {cause}")),
        };
        format!("kubelet's checkpoint {} {wrong}", path.display())
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Missing { .. } => {
                "start kubelet, correct kubeletCheckpoint, or name the devices in a manifest's \
                 jackfield.io/devices"
            }
            Self::Io { .. } => "correct kubeletCheckpoint",
            Self::Torn { .. } => "restart kubelet, which writes it anew",
            Self::Version { .. } => "use a version of Jackfield that knows this kubelet",
        };
        Some(remedy.to_owned())
    }
}

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoData => f.write_str("it has no object Data"),
            Self::NoEntries => {
                f.write_str("its Data has neither PodDeviceEntries nor RegisteredDevices")
            }
            Self::Type(error) => error.fmt(f),
        }
    }
}

impl Problem for AllocationRemark {
    fn words(&self) -> String {
        match self {
            Self::Failure(report) => report.clone(),
            Self::OtherPod {
                resource,
                ids,
                file,
            } => format!(
                "kubelet's pod-resources names {} of resource {resource} for a pod of this name; \
                 kubelet's checkpoint {} knows the pod's UID, and counts",
                named(ids),
                file.display()
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests;
