//! The devices of the pod's claims (DRA).

use std::collections::{BTreeMap, HashSet};

use super::Evidence;
use super::index::ContainerDevice;
use crate::allocation::checkpoint::read;
use crate::allocation::claims::Claims;
use crate::allocation::{UnknownCause, canonical, numeric};
use crate::cluster::ClaimedDevice;
use crate::kubelet::{DynamicDevice, PodDevices};

impl Evidence<'_> {
    /// Returns the identifier of each device in `devices`
    /// ([`SliceIdentity::id`](crate::kubelet::SliceIdentity::id)). The identifiers are sorted by
    /// container, and then by [`numeric`]. Each identifier occurs once.
    ///
    /// Fails if a device has no identifier, or if kubelet's record of claims does not show that the
    /// device belongs to a claim of this pod.
    pub(super) fn of_claims(
        &self,
        devices: &[ContainerDevice<'_>],
    ) -> Result<Vec<String>, UnknownCause> {
        let mut all: Vec<String> = Vec::new();
        let mut listed = HashSet::new();
        for container in devices.chunk_by(|(left, _), (right, _)| left == right) {
            let ids = container.iter().map(|(_, device)| self.identifier(device));
            let mut ids = ids.collect::<Result<Vec<String>, UnknownCause>>()?;
            ids.sort_by(|left, right| numeric(left, right));
            // Two containers with the same claim have the same device.
            all.extend(ids.into_iter().filter(|id| listed.insert(id.clone())));
        }
        Ok(all)
    }

    /// Returns the devices that kubelet prepared for claims of this pod. The key of each device is
    /// its identifier.
    pub(in crate::allocation) fn claimed(&self) -> BTreeMap<String, ClaimedDevice> {
        let devices = self.pod_resources.into_iter().flat_map(PodDevices::dynamic);
        let claimed = devices.filter_map(|device| {
            let id = self.identifier(device).ok()?;
            let (_, claim) = device.claim.split_once('/')?;
            let claimed = ClaimedDevice {
                claim: claim.to_owned(),
                driver: device.driver.clone(),
                pool: device.pool.clone(),
                device: device.device.clone(),
            };
            Some((canonical(&id).into_owned(), claimed))
        });
        claimed.collect()
    }

    /// Returns the identifier of a device, if kubelet prepared the device for a claim of this pod.
    fn identifier(&self, device: &DynamicDevice) -> Result<String, UnknownCause> {
        let claimed = || Box::new(device.clone());
        let identity = device.identity.as_ref();
        let id = identity.and_then(|identity| identity.id.clone());
        let id = id.ok_or_else(|| UnknownCause::NoIdentifier(claimed()))?;
        let path = Claims::path(self.sources.checkpoint);
        let claims = self.claims.get_or_init(|| read(&path, Claims::parse));
        let claims = claims.as_ref().map_err(|error| UnknownCause::Claims {
            device: claimed(),
            error: error.clone(),
        })?;
        match self.sources.uid() {
            Some(uid) if claims.has(uid, device) => Ok(id),
            Some(uid) => Err(UnknownCause::NotClaimed {
                device: claimed(),
                file: path,
                uid: uid.to_owned(),
            }),
            None => Err(UnknownCause::NoUid),
        }
    }

    /// Returns why Jackfield does not know all devices of the pod's claims. Returns `None` if the
    /// pod has no claims. Also returns `None` if kubelet lists devices for the claims and a
    /// ResourceSlice describes each of these devices.
    pub(super) fn open_claims(&self) -> Option<UnknownCause> {
        if !self.sources.pod.is_some_and(|pod| pod.has_claims) {
            return None;
        }
        let Some(answer) = self.pod_resources else {
            return Some(UnknownCause::ClaimsNotAsked);
        };
        let report = answer.failure.clone();
        let unidentified = answer.dynamic().find(|device| device.identity.is_none());
        if let Some(device) = unidentified {
            let device = Box::new(device.clone());
            return Some(UnknownCause::NoSlice { device, report });
        }
        let is_empty = answer.dynamic().next().is_none();
        is_empty.then_some(UnknownCause::NoClaimedDevice(report))
    }
}
