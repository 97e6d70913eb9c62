//! A change of the networks of a running pod, in the record of its sandbox.

use serde::{Deserialize, Serialize};

use super::{Progress, Sandbox, steps};
use crate::baseline::DeviceState;
use crate::cni::InterfaceName;
use crate::npwg::NetworksDigest;
use crate::plan::Attachment;

/// A change of the networks of a running pod. Jackfield writes the change to the record before the
/// first delegate runs, and removes the change once it is complete or rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingChange {
    /// The indices of the attachments that the change detaches.
    pub removed: Vec<usize>,
    /// The index of the first attachment that the change adds. The change also adds all later
    /// attachments.
    pub first_added: usize,
}

impl Sandbox {
    /// Sets the selection of each attachment in `kept`. A selection is the digest of the
    /// attachment's element in the annotation. Records of older releases lack selections.
    pub fn set_selections(&mut self, kept: &[(usize, NetworksDigest)]) {
        for (index, selection) in kept {
            self.header.attachments[*index].selection = Some(selection.clone());
        }
    }

    /// Sets the change that is about to detach the attachments `removed` and to attach `added`. The
    /// caller then writes the record.
    pub fn begin_change(&mut self, removed: Vec<usize>, added: Vec<Attachment>) {
        self.header.change = Some(PendingChange {
            removed,
            first_added: self.header.attachments.len(),
        });
        self.header.networks = Some(NetworksDigest::default());
        self.header.attachments.extend(added);
        let count = self.header.attachments.len();
        self.progress.resize(count, Progress::default());
        self.header.format = steps::format_of(&self.header.attachments);
    }

    /// Forgets each default route that Jackfield has removed from the pod and that used one of the
    /// `detached` interfaces. Detaching an attachment restores the default routes that the
    /// attachment replaced. If a later network used the name of a detached interface, a restored
    /// route would lead through the wrong network.
    pub fn forget_routes(&mut self, detached: &[InterfaceName]) {
        let is_detached = |name: &str| detached.iter().any(|it| it.as_str() == name);
        for progress in &mut self.progress {
            let routes = &mut progress.routes.removed;
            routes.retain(|route| !route.interfaces().any(is_detached));
        }
    }

    /// Returns the indices of the attachments to detach after a change that failed or was
    /// interrupted: the attachments that the change still had to remove, and the attachments that
    /// it may have added. The highest index comes first, because the last attachment is detached
    /// first. Returns an empty list if the record contains no change.
    pub fn unfinished(&self) -> Vec<usize> {
        let mut unfinished = self.to_detach();
        unfinished.retain(|index| self.is_pending(*index));
        unfinished
    }

    /// Whether an unfinished change attaches or detaches the attachment at `index`.
    pub fn is_pending(&self, index: usize) -> bool {
        let change = self.header.change.as_ref();
        change.is_some_and(|it| index >= it.first_added || it.removed.contains(&index))
    }

    /// Ends a change: removes the attachments that are detached or were never started, with their
    /// routes and the states of their devices. `networks` is the digest of the annotation that
    /// the remaining attachments match.
    #[must_use]
    pub fn end_change(mut self, networks: NetworksDigest) -> Sandbox {
        let (attachments, progress) = (self.header.attachments, self.progress);
        let pairs = attachments.into_iter().zip(progress);
        let (kept, ended): (Vec<_>, Vec<_>) =
            pairs.partition(|(_, progress)| progress.may_be_attached());
        (self.header.attachments, self.progress) = kept.into_iter().unzip();
        let remaining = self.header.attachments.iter();
        let kept: Vec<_> = remaining.map(|it| &it.ifname).collect();
        let ended = ended.into_iter().map(|(ended, _)| ended.ifname);
        let ended: Vec<_> = ended.filter(|name| !kept.contains(&name)).collect();
        self.forget_routes(&ended);
        let attachments = &self.header.attachments;
        let is_used = |device: &DeviceState| {
            let mut used = attachments.iter().filter_map(Attachment::pci);
            used.any(|address| address == device.device)
        };
        self.baseline.retain(is_used);
        self.header.format = steps::format_of(attachments);
        self.header.networks = Some(networks);
        self.header.change = None;
        self
    }
}
