//! Which device belongs to which network: a function of the allocation and of what is wished for.

use std::fmt;

use super::{AllocatedDevice, Allocation, Supply, same};
use crate::bounded::named;
use crate::diagnostic::{self, Problem};

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
        None => Err(AssignError::NotLookedUp {
            resource: resource.to_owned(),
        }),
    }
}

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
    Unknown(String),
    /// The pod's devices of the resource were not looked up.
    NotLookedUp {
        /// The resource.
        resource: String,
    },
}

impl fmt::Display for AssignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&diagnostic::line(self))
    }
}

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
            Self::Unknown(line) => line.clone(),
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
            Self::Unknown(_) | Self::NotLookedUp { .. } => return None,
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
