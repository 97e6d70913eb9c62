//! The lists of live attachments that GC passes to the plugins. The plugins must not free the
//! resources of these attachments.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::cni::{ContainerId, InterfaceName, NetworkName, ValidAttachment};
use crate::journal::{Journal, Key, MultusCache, Sandbox};
use crate::plan::Attachment;

/// Live attachments by network name. Networks with the same CNI name share one list.
#[derive(Debug, Default)]
pub(super) struct LiveAttachments {
    by_network: HashMap<NetworkName, BTreeSet<ValidAttachment>>,
    containers: HashSet<ContainerId>,
    damaged: Vec<ContainerId>,
}

impl LiveAttachments {
    /// Adds the attachments of a recorded sandbox, except those that are already detached.
    pub(super) fn keep(&mut self, sandbox: &Sandbox) {
        let container = &sandbox.header.container;
        self.containers.insert(container.clone());
        for (attachment, progress) in sandbox.header.attachments.iter().zip(&sandbox.progress) {
            if !progress.detached {
                self.add(container, attachment);
            }
        }
    }

    /// Adds every attachment in Multus' cache as live, even if the runtime does not list the
    /// attachment as valid. The runtime calls GC once for each network configuration, each time
    /// with a separate list. An attachment that Multus made may be only in the list for Multus'
    /// configuration. Skips the containers that Jackfield has adopted from the cache: their live
    /// attachments are in the journal.
    pub(super) fn keep_cached(&mut self, cache: &MultusCache<'_>, journal: &Journal) {
        let adopted: HashSet<ContainerId> = journal.adopted().into_iter().collect();
        for container in cache.containers() {
            if adopted.contains(&container) {
                continue;
            }
            let key = Key {
                container: container.clone(),
                ifname: InterfaceName::first(),
            };
            let cached = cache.read(&key);
            if !cached.damage.is_empty() {
                self.damaged.push(container.clone());
            }
            for one in &cached.attachments {
                self.add(&container, &one.attachment);
            }
            self.containers.insert(container);
        }
    }

    /// Returns a live container whose attachments are not all known, if there is one. `named` are
    /// the attachments that the runtime lists as valid.
    pub(super) fn unknown<'a>(&'a self, named: &'a [ValidAttachment]) -> Option<&'a ContainerId> {
        let named = named.iter().map(|valid| &valid.container_id);
        let mut unknown = named.filter(|container| !self.containers.contains(container));
        self.damaged.first().or_else(|| unknown.next())
    }

    /// Returns the live attachments to one network.
    pub(super) fn to(&self, network: &NetworkName) -> Vec<ValidAttachment> {
        let valid = self.by_network.get(network);
        valid.into_iter().flatten().cloned().collect()
    }

    fn add(&mut self, container: &ContainerId, attachment: &Attachment) {
        let network = attachment.network.clone();
        let valid = self.by_network.entry(network).or_default();
        valid.insert(ValidAttachment {
            container_id: container.clone(),
            ifname: attachment.ifname.clone(),
        });
    }
}
