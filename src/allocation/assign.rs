//! Assigns the devices of an allocation to networks.

use super::{
    AllocatedDevice, Allocation, AssignError, Origin, Supply, UnknownCause, canonical, same,
};

/// One network's wish for a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish<'a> {
    /// The resource that the network's definition names (`k8s.v1.cni.cncf.io/resourceName`).
    pub resource: Option<&'a str>,
    /// The device that the pod names for the network (`deviceID`).
    pub device: Option<&'a str>,
}

/// Returns one result for each wish: a device, `None` if the network needs no device, or the reason
/// why the network cannot get a device. The wishes are in the order in which Jackfield attaches the
/// networks.
///
/// Wishes that name a device get their devices first. A wish gets the named device if the pod has
/// that device and no earlier wish got that device. If the wish also names a resource, the device
/// must belong to that resource. Each wish that names only a resource then gets the next free
/// device of that resource. If the resource stands for something other than devices, such as
/// licences ([`Supply::NoDevices`]), the wish gets no device.
pub fn assign(
    allocation: &Allocation,
    wishes: &[Wish<'_>],
) -> Vec<Result<Option<AllocatedDevice>, AssignError>> {
    let mut taken: Vec<&str> = Vec::new();
    let mut named = Vec::with_capacity(wishes.len());
    for wish in wishes {
        named.push(wish.device.map(|id| {
            let device = owned(allocation, wish.resource, id)?;
            if taken.iter().any(|other| same(other, id)) {
                return Err(AssignError::Twice(id.to_owned()));
            }
            taken.push(id);
            Ok(Some(device))
        }));
    }
    let given = wishes.iter().zip(named);
    let given = given.map(|(wish, named)| match (named, wish.resource) {
        (Some(named), _) => named,
        (None, Some(resource)) => next(allocation, resource, wishes, &mut taken),
        (None, None) => Ok(None),
    });
    given.collect()
}

fn device(allocation: &Allocation, id: &str, resource: &str, origin: Origin) -> AllocatedDevice {
    // Use the canonical spelling, because other plugins compare identifiers as text.
    let id = canonical(id).into_owned();
    AllocatedDevice {
        claim: allocation.claimed.get(&id).cloned(),
        id,
        resource: resource.to_owned(),
        driver: None,
        origin: Some(origin),
    }
}

/// Looks up a device that the pod names. The device must be one of the pod's devices. If the
/// definition names a resource, the device must also belong to that resource.
fn owned(
    allocation: &Allocation,
    resource: Option<&str>,
    id: &str,
) -> Result<AllocatedDevice, AssignError> {
    let is_meant = |(name, _): &(&String, &Supply)| resource.is_none_or(|it| it == *name);
    let supplies = || allocation.supplies.iter().filter(is_meant);
    let mut own = Vec::new();
    for (name, supply) in supplies() {
        if let Supply::Devices { ids, origin } = supply {
            if ids.iter().any(|own| same(own, id)) {
                return Ok(device(allocation, id, name, *origin));
            }
            own.extend(ids.iter().cloned());
        }
    }
    let unknown = supplies().find_map(|(name, supply)| match supply {
        Supply::Unknown(cause) => Some(unknown(name, cause)),
        Supply::Devices { .. } | Supply::NoDevices => None,
    });
    Err(unknown.unwrap_or_else(|| AssignError::NotOwned {
        id: id.to_owned(),
        resource: resource.map(str::to_owned),
        own,
    }))
}

fn unknown(resource: &str, cause: &UnknownCause) -> AssignError {
    AssignError::Unknown {
        resource: resource.to_owned(),
        cause: Box::new(cause.clone()),
    }
}

fn next<'a>(
    allocation: &'a Allocation,
    resource: &str,
    wishes: &[Wish<'_>],
    taken: &mut Vec<&'a str>,
) -> Result<Option<AllocatedDevice>, AssignError> {
    match allocation.supply(resource) {
        Some(Supply::Devices { ids, origin }) => {
            let is_free = |id: &&String| !taken.iter().any(|other| same(other, id));
            let Some(id) = ids.iter().find(is_free) else {
                let networks = wishes.iter().filter(|wish| wish.resource == Some(resource));
                return Err(AssignError::TooFew {
                    resource: resource.to_owned(),
                    networks: networks.count(),
                    devices: ids.clone(),
                });
            };
            taken.push(id);
            Ok(Some(device(allocation, id, resource, *origin)))
        }
        Some(Supply::NoDevices) => Ok(None),
        Some(Supply::Unknown(cause)) => Err(unknown(resource, cause)),
        None => Err(AssignError::NotLookedUp(resource.to_owned())),
    }
}
