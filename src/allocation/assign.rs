//! Which device belongs to which network: a function of the allocation and of what is wished for.

use super::{AllocatedDevice, Allocation, Supply, same};
use crate::bounded::named;

/// What one network wants, in the order in which networks are attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish<'a> {
    /// The resource of its definition (`k8s.v1.cni.cncf.io/resourceName`).
    pub resource: Option<&'a str>,
    /// The device that the pod names for it (`deviceID`).
    pub device: Option<&'a str>,
}

/// Gives each wish its device, or says why it gets none.
///
/// A device that the pod names is taken first, and only when it is the pod's own. The others get
/// the next one of their resource each; a resource that is no device gives none.
pub fn assign(
    allocation: &Allocation,
    wishes: &[Wish<'_>],
) -> Vec<Result<Option<AllocatedDevice>, AssignError>> {
    let mut taken: Vec<&str> = Vec::new();
    let mut named = Vec::with_capacity(wishes.len());
    for wish in wishes {
        named.push(wish.device.map(|id| {
            let resource = owner(allocation, wish.resource, id)?;
            if taken.iter().any(|other| same(other, id)) {
                return Err(AssignError::Twice { id: id.to_owned() });
            }
            taken.push(id);
            Ok(device(allocation, id, resource))
        }));
    }
    let given = wishes.iter().zip(named).map(|(wish, named)| match named {
        Some(named) => named.map(Some),
        None => match wish.resource {
            Some(resource) => next(allocation, resource, wishes, &mut taken),
            None => Ok(None),
        },
    });
    given.collect()
}

fn device(allocation: &Allocation, id: &str, resource: &str) -> AllocatedDevice {
    let origin = match allocation.supply(resource) {
        Some(Supply::Devices { origin, .. }) => Some(*origin),
        _ => None,
    };
    AllocatedDevice {
        // One spelling: other plugins compare text.
        id: id
            .parse::<device_info::PciAddress>()
            .map_or_else(|_| id.to_owned(), |address| address.to_string()),
        resource: resource.to_owned(),
        driver: None,
        origin,
    }
}

/// The resource of the pod that a device belongs to; the definition's own, where it has one.
fn owner<'a>(
    allocation: &'a Allocation,
    resource: Option<&str>,
    id: &str,
) -> Result<&'a str, AssignError> {
    let owner = allocation
        .resource_of(id)
        .filter(|owner| resource.is_none_or(|resource| resource == *owner));
    if let Some(owner) = owner {
        return Ok(owner);
    }
    let concerned = allocation.supplies.iter();
    let mut concerned =
        concerned.filter(|(name, _)| resource.is_none_or(|resource| resource == name.as_str()));
    Err(concerned
        .find_map(|(_, supply)| match supply {
            Supply::Unknown(cause) => Some(AssignError::Unknown(cause.clone())),
            Supply::Devices { .. } | Supply::NoDevices => None,
        })
        .unwrap_or_else(|| AssignError::NotOwned {
            id: id.to_owned(),
            resource: resource.map(str::to_owned),
            own: own(allocation, resource),
        }))
}

fn own(allocation: &Allocation, resource: Option<&str>) -> Vec<String> {
    let of = allocation.supplies.iter();
    let of = of.filter(|(name, _)| resource.is_none_or(|resource| resource == name.as_str()));
    of.filter_map(|(_, supply)| match supply {
        Supply::Devices { ids, .. } => Some(ids.iter().cloned()),
        Supply::NoDevices | Supply::Unknown(_) => None,
    })
    .flatten()
    .collect()
}

fn next<'a>(
    allocation: &'a Allocation,
    resource: &str,
    wishes: &[Wish<'_>],
    taken: &mut Vec<&'a str>,
) -> Result<Option<AllocatedDevice>, AssignError> {
    match allocation.supply(resource) {
        Some(Supply::Devices { ids, .. }) => {
            let free = ids
                .iter()
                .find(|id| !taken.iter().any(|other| same(other, id)));
            let Some(id) = free else {
                let networks = wishes.iter().filter(|wish| wish.resource == Some(resource));
                return Err(AssignError::TooFew {
                    resource: resource.to_owned(),
                    networks: networks.count(),
                    devices: ids.clone(),
                });
            };
            taken.push(id);
            Ok(Some(device(allocation, id, resource)))
        }
        Some(Supply::NoDevices) => Ok(None),
        Some(Supply::Unknown(cause)) => Err(AssignError::Unknown(cause.clone())),
        None => Err(AssignError::Unknown(format!(
            "devices of resource {resource} were not looked up"
        ))),
    }
}

/// Why a network gets no device (code 104).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    /// More networks than devices.
    #[error(
        "resource {resource}: {networks} of the pod's networks want a device each, kubelet gave the pod {}; \
         request more in a container's resources.limits or by a resource claim, or select fewer networks",
        counted(devices)
    )]
    TooFew {
        /// The resource.
        resource: String,
        /// How many networks want one of it.
        networks: usize,
        /// What the pod has.
        devices: Vec<String>,
    },
    /// The pod names a device that is not its own.
    #[error(
        "deviceID {id:?}{} is no device of this pod, which has {}; name one of those or leave deviceID out",
        resource.as_ref().map(|resource| format!(" of resource {resource}")).unwrap_or_default(),
        counted(own)
    )]
    NotOwned {
        /// The device.
        id: String,
        /// The resource that it was to belong to.
        resource: Option<String>,
        /// What the pod has.
        own: Vec<String>,
    },
    /// The pod names one device for two networks.
    #[error("deviceID {id:?} is named for two networks of the pod; give each its own")]
    Twice {
        /// The device.
        id: String,
    },
    /// What kubelet allocated could not be found out.
    #[error("{0}")]
    Unknown(String),
}

fn counted(devices: &[String]) -> String {
    match devices {
        [] => "none".to_owned(),
        devices => format!("{} ({})", devices.len(), named(devices)),
    }
}
