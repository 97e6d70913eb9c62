//! Which device belongs to which network: a function of the allocation and the networks' wishes.

use super::{AllocatedDevice, Allocation, AssignError, Supply, same};

/// What one network wants, in the order in which networks are attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish<'a> {
    /// The resource of its definition (`k8s.v1.cni.cncf.io/resourceName`).
    pub resource: Option<&'a str>,
    /// The device that the pod names for it (`deviceID`).
    pub device: Option<&'a str>,
}

/// Gives each wish its device, or the reason why it gets none.
///
/// Wishes that name a device come first, and get it if it is the pod's own. Each of the others gets
/// the next device of its resource. A resource that counts something else gives none.
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
        // In one spelling, since other plugins compare texts.
        id: id
            .parse::<device_info::PciAddress>()
            .map_or_else(|_| id.to_owned(), |address| address.to_string()),
        resource: resource.to_owned(),
        driver: None,
        origin,
    }
}

/// The resource of the pod that a device belongs to: the definition's own, if it names one.
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
            Supply::Unknown(unknown) => Some(AssignError::Unknown(unknown.clone())),
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
        Some(Supply::Unknown(unknown)) => Err(AssignError::Unknown(unknown.clone())),
        None => Err(AssignError::NotLookedUp {
            resource: resource.to_owned(),
        }),
    }
}
