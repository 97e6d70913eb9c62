//! The network-status of a sandbox: one entry per attachment (NPWG 1.3 §5).

use super::proof::Shown;
use crate::cluster::Event;
use crate::cni::CniResult;
use crate::journal::{Attached, Sandbox};
use crate::npwg::{StatusAddresses, StatusEntry, StatusSource};
use crate::plan::Attachment;

/// Makes one entry per attachment, in their order, from `results` and `shown`.
pub(super) fn entries(
    sandbox: &Sandbox,
    results: &[Option<CniResult>],
    shown: &[Shown],
    addresses: StatusAddresses,
) -> Vec<StatusEntry> {
    let entry = |((attachment, result), shown): ((&Attachment, &Option<CniResult>), &Shown)| {
        let mut entry = StatusEntry::from_result(StatusSource {
            name: &attachment.label,
            is_default: attachment.is_cluster,
            result: result.as_ref(),
            ifname: &attachment.ifname,
            requested_default_route: attachment.default_route.as_deref(),
            device_info: shown.device_info.clone(),
            addresses,
        });
        if entry.interface.is_some() {
            entry.mtu = entry.mtu.or(shown.mtu);
            entry.mac = entry.mac.or_else(|| shown.mac.clone());
        }
        entry
    };
    let mut entries: Vec<StatusEntry> = sandbox
        .header
        .attachments
        .iter()
        .zip(results)
        .zip(shown)
        .filter(|((attachment, _), _)| !attachment.is_auxiliary)
        .map(entry)
        .collect();
    StatusEntry::sign(&mut entries);
    entries
}

/// The one event for all attachments of a pod, with the reason and the words of Multus.
pub(super) fn added(sandbox: &Sandbox) -> Event {
    let part = |(attachment, attached): (&Attachment, &Attached)| {
        let ips = attached.result.iter().flat_map(|result| &result.ips);
        let ips: Vec<String> = ips.map(|ip| ip.address.to_string()).collect();
        format!(
            "Add {} [{}] from {}",
            attachment.ifname,
            ips.join(" "),
            attachment.label
        )
    };
    let attachments = sandbox.header.attachments.iter().zip(&sandbox.progress);
    let attachments = attachments.filter(|(attachment, _)| !attachment.is_auxiliary);
    Event::normal(
        "AddedInterface",
        attachments.map(part).collect::<Vec<_>>().join("; "),
    )
}
