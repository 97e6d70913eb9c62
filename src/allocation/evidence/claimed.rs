//! What the pod's claims (DRA) have brought it.

use std::collections::HashSet;

use super::Evidence;
use super::index::Placed;
use crate::allocation::claims::Claims;
use crate::allocation::numeric;
use crate::kubelet::DynamicDevice;

impl Evidence<'_> {
    /// The identifiers of some of the pod's devices of claims, container by container.
    pub(super) fn of_claims(&self, devices: &[Placed<'_>]) -> Result<Vec<String>, String> {
        let mut all: Vec<String> = Vec::new();
        let mut known = HashSet::new();
        for container in devices.chunk_by(|(left, _), (right, _)| left == right) {
            let ids = container.iter().map(|(_, device)| self.claimed(device));
            let mut ids = ids.collect::<Result<Vec<String>, String>>()?;
            ids.sort_by(|left, right| numeric(left, right));
            for id in ids {
                // Containers may share a claim.
                if known.insert(id.clone()) {
                    all.push(id);
                }
            }
        }
        Ok(all)
    }

    /// The identifier of a device that was prepared for a claim of this very pod.
    fn claimed(&self, device: &DynamicDevice) -> Result<String, String> {
        let named = format!(
            "device {} of pool {} of driver {}",
            device.device, device.pool, device.driver
        );
        let id = device
            .identity
            .as_ref()
            .and_then(|identity| identity.id.clone());
        let id = id.ok_or_else(|| {
            format!(
                "{named} has neither attribute k8s.cni.cncf.io/deviceID nor \
                 resource.kubernetes.io/pciBusID in its ResourceSlice; let the driver publish one"
            )
        })?;
        let path = Claims::path(self.sources.checkpoint);
        let claims = self.claims.get_or_init(|| Claims::read(&path));
        let claims = claims.as_ref().map_err(|error| {
            format!(
                "{named}: whether claim {} is this pod's: {error}",
                device.claim
            )
        })?;
        match self.sources.uid() {
            Some(uid) if claims.has(uid, device) => Ok(id),
            Some(uid) => Err(format!(
                "{named}: {} does not have it for claim {} of this pod, UID {uid}; \
                 recreate the pod",
                path.display(),
                device.claim
            )),
            None => Err(
                "the pod's UID is not known; let the runtime pass K8S_POD_UID in CNI_ARGS"
                    .to_owned(),
            ),
        }
    }

    /// Why it is not known yet what the pod's claims have brought it, if it has any.
    pub(super) fn claims_are_open(&self) -> Option<String> {
        if !self.sources.pod.is_some_and(|pod| pod.has_claims) {
            return None;
        }
        let Some(told) = self.told else {
            return Some(
                "the pod has resource claims, and kubelet was not asked about them".into(),
            );
        };
        let unidentified = told.dynamic().find(|device| device.identity.is_none());
        let failure = told.failure.as_ref();
        if let Some(device) = unidentified {
            let cause = failure.map_or_else(String::new, |failure| format!(" ({failure})"));
            return Some(format!(
                "no ResourceSlice of this node has device {} of pool {} of driver {}{cause}; \
                 let the driver publish it, with the attribute k8s.cni.cncf.io/resourceName",
                device.device, device.pool, device.driver
            ));
        }
        if told.dynamic().next().is_some() {
            return None;
        }
        let cause = failure.map_or(
            "it names no device of theirs; look into its log",
            |failure| failure.as_str(),
        );
        Some(format!(
            "the pod has resource claims, and kubelet was asked about them: {cause}"
        ))
    }
}
