//! What follows for a resource of which the pod's devices are not known, and why they are not.

use super::{Evidence, Verdict, unknown};
use crate::allocation::{Checkpoint, CheckpointError, Origin, Supply};
use crate::bounded::{NAMED, named};
use crate::kubelet::PodDevices;

impl Evidence<'_> {
    /// A resource that neither kubelet nor a driver has devices of.
    pub(super) fn no_device(&self, resource: &str, asked: u64) -> Verdict {
        let mut dynamic = self
            .told
            .into_iter()
            .flat_map(PodDevices::dynamic)
            .peekable();
        if asked == 0 && dynamic.peek().is_some() {
            let dynamic =
                dynamic.map(|device| format!("{} of driver {}", device.device, device.driver));
            let cause = format!(
                "none of the devices of the pod's claims ({}) has it as its attribute \
                 k8s.cni.cncf.io/resourceName; correct the definition's annotation or the driver",
                named(dynamic)
            );
            return Verdict::certain(unknown(resource, &cause));
        }
        let is_certain = self
            .told
            .is_some_and(|told| told.is_known() && told.failure.is_none());
        if asked == 0 || is_certain {
            return Verdict::certain(Supply::NoDevices);
        }
        let cause = match self.told.and_then(|told| told.failure.as_ref()) {
            Some(failure) => format!("whether it has any: {failure}"),
            None => "whether it has any: kubelet does not know the pod; look into its log".into(),
        };
        Verdict::for_now(resource, &cause)
    }

    /// Without kubelet's own record nothing says whose a device is.
    pub(super) fn without_record(&self, resource: &str, error: &CheckpointError) -> Verdict {
        let is_embedded = self.sources.pod.is_some_and(|pod| !pod.devices.is_empty());
        if is_embedded && matches!(error, CheckpointError::Missing { .. }) {
            return Verdict::certain(Supply::Devices {
                ids: Vec::new(),
                origin: Origin::Manifest,
            });
        }
        let told = self.index.told(resource);
        let cause = if told.is_empty() {
            error.to_string()
        } else {
            format!(
                "pod-resources names {}, but only the checkpoint says of which pod: {error}",
                named(told)
            )
        };
        Verdict {
            supply: unknown(resource, &cause),
            is_final: !matches!(error, CheckpointError::Torn { .. }),
        }
    }

    /// Why the pod's devices are not known to be all there.
    pub(super) fn missing(
        &self,
        resource: &str,
        asked: u64,
        found: usize,
        checkpoint: &Checkpoint,
    ) -> String {
        let file = self.sources.checkpoint.display();
        let uid = self.sources.uid().unwrap_or_default();
        let told = self.index.told(resource);
        let told = match self.told {
            _ if !told.is_empty() => {
                // Of as many as are looked up for a message.
                let holder = told
                    .iter()
                    .take(NAMED)
                    .find_map(|id| checkpoint.holders(id).next());
                let of = holder.map_or_else(String::new, |uid| format!(" of UID {uid}"));
                format!(
                    "pod-resources names {}, which are those of another pod{of}",
                    named(told)
                )
            }
            Some(told) => match &told.failure {
                Some(failure) => failure.clone(),
                None if told.is_known() => "pod-resources names none".to_owned(),
                None => "pod-resources does not know the pod".to_owned(),
            },
            None => "pod-resources was not asked".to_owned(),
        };
        format!(
            "kubelet's checkpoint {file} has {found} of {asked} for this pod, UID {uid} ({told}); \
             recreate the pod, or restart kubelet"
        )
    }
}
