//! The content of a record: a header that lists every intended attachment, and then the steps.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::wire::{self, List};
use super::{Key, PendingChange, files, record};
use crate::baseline::DeviceState;
use crate::boot::boot_id;
use crate::cluster::PodName;
use crate::cni::{CniResult, ContainerId, InterfaceName};
use crate::kernel::DefaultRoute;
use crate::npwg::NetworksDigest;
use crate::plan::Attachment;

/// The current format. The previous format lacks the baseline, which is the state of the devices
/// before any delegate ran.
///
/// This release reads both formats. It writes the current format only for a sandbox with a device,
/// so that older releases can read the records of sandboxes without devices.
const FORMAT: u32 = 2;

/// The first line of a record: the sandbox and every intended attachment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// The version of the record's format.
    pub format: u32,
    /// The ID of the boot in which the ADD ran. After a reboot, the sandbox's network namespace is
    /// gone.
    pub boot: String,
    /// `CNI_CONTAINERID`.
    pub container: ContainerId,
    /// `CNI_IFNAME`.
    pub ifname: InterfaceName,
    /// `CNI_NETNS`.
    pub netns: String,
    /// The identity of the network namespace, such as `net:[4026531840]`; empty if it is unknown.
    pub netns_id: String,
    /// `CNI_ARGS` as the runtime passed them.
    pub args: String,
    /// The pod, if the runtime names one.
    pub pod: Option<PodName>,
    /// Every attachment, in the order of attaching.
    #[serde(with = "List::<wire::Attachment>")]
    pub attachments: Vec<Attachment>,
    /// The digest of the networks annotation that the ADD or the last successful change applied. If
    /// the pod's annotation has a different digest, the pod's networks need a change. Each change
    /// first replaces the digest with an empty digest, which matches no annotation. If the change
    /// fails, the empty digest stays until a later change succeeds. `None` in records of older
    /// releases and in records that a DEL has reconstructed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networks: Option<NetworksDigest>,
    /// The unfinished change of the running pod's networks, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<PendingChange>,
}

impl Header {
    /// Creates a header with the ID of the current boot, in the oldest format that can hold the
    /// attachments. The network namespace, `CNI_ARGS` and the pod are unknown.
    pub fn new(key: &Key, attachments: Vec<Attachment>) -> Header {
        let Key { container, ifname } = key.clone();
        Header {
            format: format_of(&attachments),
            boot: boot_id(),
            container,
            ifname,
            netns: String::new(),
            netns_id: String::new(),
            args: String::new(),
            pod: None,
            attachments,
            networks: None,
            change: None,
        }
    }

    /// Returns the name of the sandbox for a message to the users of `pod`. `None` if the sandbox
    /// belongs to a different Kubernetes namespace than `pod`, because these users must not learn
    /// about pods in other namespaces.
    pub fn named_for(&self, pod: Option<&PodName>) -> Option<String> {
        let namespace = |pod: &PodName| pod.namespace.clone();
        if self.pod.as_ref().map(namespace) != pod.map(namespace) {
            return None;
        }
        let pod = self.pod.as_ref();
        let pod = pod.map_or_else(String::new, |pod| format!("pod {pod}, "));
        Some(format!("{pod}container {}", self.container))
    }

    /// Returns the attachments at `indices`, in the order of `indices`.
    pub fn at<'a>(&'a self, indices: &'a [usize]) -> impl Iterator<Item = &'a Attachment> {
        indices.iter().map(|index| &self.attachments[*index])
    }

    /// Returns the key of the record.
    pub fn key(&self) -> Key {
        Key {
            container: self.container.clone(),
            ifname: self.ifname.clone(),
        }
    }
}

/// Returns the format of a record with these attachments.
pub(super) fn format_of(attachments: &[Attachment]) -> u32 {
    match attachments.iter().any(|it| it.device.is_some()) {
        true => FORMAT,
        false => FORMAT - 1,
    }
}

/// One step of an ADD, a DEL or a change. The first `usize` of a step is the index of an attachment
/// in the header.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step<'a> {
    /// The state of the devices before any delegate ran.
    Baseline(#[serde(with = "List::<wire::Device>")] Cow<'a, [DeviceState]>),
    /// The delegates of this attachment are about to run.
    Started(usize),
    /// The delegates of this attachment have succeeded.
    Attached(usize, Cow<'a, CniResult>),
    /// A delegate of this attachment failed its ADD. The second `usize` is the position of that
    /// delegate in the attachment's chain. No later delegate of the chain ran. The rollback of an
    /// ADD writes this step only if the rollback could not detach everything. The rollback of a
    /// change always writes this step.
    Failed(usize, usize),
    /// Jackfield is about to change the pod's default routes for this attachment.
    Routes(usize, Cow<'a, RouteChange>),
    /// Every attachment is attached and verified. After this step, the ADD publishes the status.
    Complete,
    /// This attachment is detached and needs no retry.
    Detached(usize),
}

/// The default routes that an attachment removes and adds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RouteChange {
    /// The removed routes.
    #[serde(with = "List::<wire::Route>")]
    pub removed: Vec<DefaultRoute>,
    /// The added routes.
    #[serde(with = "List::<wire::Route>")]
    pub added: Vec<DefaultRoute>,
}

/// The progress of one attachment.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Whether the delegates may have run.
    pub started: bool,
    /// The result of the delegates.
    pub result: Option<CniResult>,
    /// The position of the failed delegate in the chain.
    pub failed_at: Option<usize>,
    /// The default routes that Jackfield changed, or was about to change, for this attachment.
    pub routes: RouteChange,
    /// Whether the attachment has been detached.
    pub detached: bool,
}

impl Progress {
    /// Whether the network may be attached, so that a DEL has to detach it.
    pub fn may_be_attached(&self) -> bool {
        self.started && !self.detached
    }
}

/// A sandbox, read from its record.
#[derive(Debug)]
pub struct Sandbox {
    /// The identity of the sandbox and the intended attachments.
    pub header: Header,
    /// The progress of each attachment, in the order of `header.attachments`.
    pub progress: Vec<Progress>,
    /// The state of the devices before any delegate ran.
    pub baseline: Vec<DeviceState>,
    /// Whether the ADD attached and verified every attachment.
    pub complete: bool,
    /// Whether steps may be missing because a line is incomplete or damaged, or because a reboot
    /// interrupted the ADD or a change. If steps may be missing, every intended attachment may have
    /// been started.
    pub is_torn: bool,
}

impl Sandbox {
    /// Reads a record from a file.
    pub(super) fn read(path: &Path) -> Result<Sandbox, RecordError> {
        Sandbox::replay(&files::read(path)?)
    }

    /// Reads a record up to its first line that is incomplete or damaged.
    pub(crate) fn replay(bytes: &[u8]) -> Result<Sandbox, RecordError> {
        let mut rest = bytes;
        let first =
            record::next_line(&mut rest).ok_or_else(|| match record::is_cut_off(bytes) {
                true => RecordError::CutOff,
                false => RecordError::Damaged,
            })?;
        let header: Header = serde_json::from_slice(first)?;
        if !(FORMAT - 1..=FORMAT).contains(&header.format) {
            return Err(RecordError::Format(header.format));
        }
        let mut sandbox = Sandbox::planned(header);
        while let Some(step) = record::next_line(&mut rest) {
            sandbox.apply(serde_json::from_slice(step)?);
        }
        let is_at_work = !sandbox.complete || sandbox.header.change.is_some();
        sandbox.is_torn = !rest.is_empty() || is_at_work && sandbox.header.boot != boot_id();
        Ok(sandbox)
    }

    fn apply(&mut self, step: Step<'_>) {
        match step {
            Step::Baseline(devices) => self.baseline = devices.into_owned(),
            Step::Complete => self.complete = true,
            Step::Started(index) => self.at(index, |it| it.started = true),
            Step::Attached(index, result) => {
                self.at(index, |it| it.result = Some(result.into_owned()));
            }
            Step::Failed(index, place) => self.at(index, |it| it.failed_at = Some(place)),
            Step::Routes(index, routes) => self.at(index, |it| it.routes = routes.into_owned()),
            Step::Detached(index) => self.at(index, |it| it.detached = true),
        }
    }

    fn at(&mut self, index: usize, change: impl FnOnce(&mut Progress)) {
        if let Some(attached) = self.progress.get_mut(index) {
            change(attached);
        }
    }

    /// Returns a sandbox in which nothing is attached yet.
    pub fn planned(header: Header) -> Sandbox {
        let progress = vec![Progress::default(); header.attachments.len()];
        Sandbox {
            header,
            progress,
            baseline: Vec::new(),
            complete: false,
            is_torn: false,
        }
    }

    /// Returns the lines of a record with the header and all steps of this sandbox.
    pub(super) fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(4 << 10);
        record::append(&mut bytes, &self.header)?;
        let mut write = |step: Step<'_>| record::append(&mut bytes, &step);
        if !self.baseline.is_empty() {
            write(Step::Baseline(Cow::Borrowed(&self.baseline)))?;
        }
        for (index, attached) in self.progress.iter().enumerate() {
            if attached.started {
                write(Step::Started(index))?;
            }
            if let Some(result) = &attached.result {
                write(Step::Attached(index, Cow::Borrowed(result)))?;
            }
            if let Some(place) = attached.failed_at {
                write(Step::Failed(index, place))?;
            }
            if attached.routes != RouteChange::default() {
                write(Step::Routes(index, Cow::Borrowed(&attached.routes)))?;
            }
            if attached.detached {
                write(Step::Detached(index))?;
            }
        }
        if self.complete {
            write(Step::Complete)?;
        }
        Ok(bytes)
    }

    /// Returns the indices of the attachments that a DEL has to detach, last first. If steps may be
    /// missing, also returns attachments that were perhaps never started. A DEL of such an
    /// attachment does no harm (CNI 1.1.0 §2 DEL).
    pub fn to_detach(&self) -> Vec<usize> {
        let attached = self.progress.iter().enumerate().rev();
        attached
            .filter(|(_, it)| it.may_be_attached() || (self.is_torn && !it.detached))
            .map(|(index, _)| index)
            .collect()
    }
}

/// Why a file cannot be read as the expected record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The header is incomplete. [`Lookup::CutOff`](super::Lookup::CutOff) names the causes.
    #[error("its header was never finished")]
    CutOff,
    /// The header is damaged.
    #[error("its header is damaged")]
    Damaged,
    /// This release does not support the record's format. For example, a newer release wrote the
    /// record.
    #[error("its format {0} is not supported by this version")]
    Format(u32),
    /// A line is not a valid header or step.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The sandbox in the header is not the sandbox in the name of the file.
    #[error("its header belongs to a different sandbox")]
    Foreign,
}

#[cfg(test)]
pub(super) mod tests;
