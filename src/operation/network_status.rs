//! The network-status of a sandbox: one entry per attachment (NPWG 1.3 §5).

use super::proof::Shown;
use crate::cluster::Event;
use crate::cni::CniResult;
use crate::journal::{Progress, Sandbox};
use crate::npwg::{StatusAddresses, StatusEntry, StatusSource};
use crate::plan::Attachment;

/// Builds one entry per attachment, in the order of the attachments, from `results` and `shown`.
/// The auxiliary chain gets no entry.
pub(super) fn entries(
    sandbox: &Sandbox,
    results: &[Option<CniResult>],
    shown: &[Shown],
    addresses: StatusAddresses,
) -> Vec<StatusEntry> {
    let mut entries = Vec::with_capacity(results.len());
    let attachments = sandbox.header.attachments.iter().zip(results);
    for ((attachment, result), shown) in attachments.zip(shown) {
        if attachment.is_auxiliary {
            continue;
        }
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
        entries.push(entry);
    }
    StatusEntry::sign(&mut entries);
    entries
}

/// Builds the event that lists all attachments of a pod, with the `reason` and the wording that
/// Multus uses.
pub(super) fn added(sandbox: &Sandbox) -> Event {
    let part = |(attachment, attached): (&Attachment, &Progress)| {
        let ips = attached.result.iter().flat_map(|result| &result.ips);
        let ips: Vec<String> = ips.map(|ip| ip.address.to_string()).collect();
        let (ips, ifname, label) = (ips.join(" "), &attachment.ifname, &attachment.label);
        format!("Add {ifname} [{ips}] from {label}")
    };
    let attachments = sandbox.header.attachments.iter().zip(&sandbox.progress);
    let attachments = attachments.filter(|(attachment, _)| !attachment.is_auxiliary);
    let parts: Vec<String> = attachments.map(part).collect();
    Event::normal("AddedInterface", parts.join("; "))
}
