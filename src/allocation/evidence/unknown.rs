//! Judges a resource in the cases in which its devices may be unknown: kubelet reports no devices
//! or too few devices, or kubelet's checkpoint cannot be used.
//!
//! A [`Verdict`] says what the evidence shows about the pod's devices of one resource. A verdict is
//! final if waiting for kubelet cannot change it.

use super::{Evidence, Verdict};
use crate::allocation::{
    Checkpoint, CheckpointCause, CheckpointError, Origin, PodResourcesAnswer, Supply, UnknownCause,
};
use crate::bounded::NAMED;
use crate::kubelet::PodDevices;

impl Evidence<'_> {
    /// Returns the verdict on a resource if neither kubelet nor a ResourceSlice reports a device of
    /// the resource. `requested` is the number of devices that the pod requests.
    pub(super) fn no_device(&self, requested: u64) -> Verdict {
        let answer = self.pod_resources;
        let dynamic = || answer.into_iter().flat_map(PodDevices::dynamic);
        let count = dynamic().count();
        if requested == 0 && count > 0 {
            return Verdict::never(UnknownCause::OtherResources {
                devices: dynamic().take(NAMED).cloned().collect(),
                others: count.saturating_sub(NAMED),
            });
        }
        let is_certain = answer.is_some_and(|it| it.is_known() && it.failure.is_none());
        if requested == 0 || is_certain {
            return Verdict::certain(Supply::NoDevices);
        }
        let report = answer.and_then(|it| it.failure.clone());
        Verdict::not_yet(UnknownCause::Unanswered(report))
    }

    /// Returns the verdict on `resource` if kubelet's checkpoint cannot be used and the annotation
    /// `jackfield.io/devices` of the pod's manifest does not list the resource.
    ///
    /// If the checkpoint is missing and the annotation lists devices of other resources, the
    /// annotation replaces the checkpoint. The pod then has no device of `resource`. Otherwise the
    /// devices are unknown. The pod-resources API cannot replace the checkpoint: it names pods
    /// without their UIDs, so its answer may be about another pod of the same name.
    pub(super) fn without_record(&self, resource: &str, error: &CheckpointError) -> Verdict {
        let is_embedded = self.sources.pod.is_some_and(|pod| !pod.devices.is_empty());
        if is_embedded && error.cause == CheckpointCause::Missing {
            return Verdict::devices(Vec::new(), Origin::Manifest);
        }
        let cause = UnknownCause::Checkpoint {
            error: error.clone(),
            ids: self.named_by_pod_resources(resource),
        };
        Verdict {
            is_final: !matches!(error.cause, CheckpointCause::Torn(_)),
            ..Verdict::never(cause)
        }
    }

    /// Returns why the devices are unknown. The caller has found that the checkpoint lists fewer
    /// devices (`recorded`) than the pod requests (`requested`).
    pub(super) fn missing(
        &self,
        resource: &str,
        requested: u64,
        recorded: usize,
        checkpoint: &Checkpoint,
    ) -> UnknownCause {
        let ids = self.named_by_pod_resources(resource);
        let pod_resources = match self.pod_resources {
            _ if !ids.is_empty() => {
                // Look up the holders of at most `NAMED` devices, because a message names no more.
                let mut first = ids.iter().take(NAMED);
                let uid = first.find_map(|id| checkpoint.holders(id).next());
                let uid = uid.map(str::to_owned);
                PodResourcesAnswer::OtherPod { ids, uid }
            }
            Some(answer) => match &answer.failure {
                Some(failure) => PodResourcesAnswer::Failure(failure.clone()),
                None if answer.is_known() => PodResourcesAnswer::NoDevices,
                None => PodResourcesAnswer::UnknownPod,
            },
            None => PodResourcesAnswer::NotAsked,
        };
        UnknownCause::Missing {
            file: self.sources.checkpoint.to_owned(),
            uid: self.sources.uid().unwrap_or_default().to_owned(),
            recorded,
            requested,
            pod_resources,
        }
    }

    fn named_by_pod_resources(&self, resource: &str) -> Vec<String> {
        let ids = self.index.of_plugins(resource).iter();
        ids.map(|id| (*id).to_owned()).collect()
    }
}
