//! The network-status of a sandbox (NPWG 1.3 §5).

use super::attach::KEPT_FOR_DETACHING;
use super::proof::Shown;
use super::{Context, Failure, Note};
use crate::cluster::{ClaimStatus, ClusterError, Event, NetworkData, Phase, Publication};
use crate::cni::CniResult;
use crate::journal::{Progress, Sandbox};
use crate::npwg::{StatusAddresses, StatusEntry, StatusSource};
use crate::plan::Attachment;

/// Builds one entry for each attachment except the auxiliary chain, which creates no interface.
/// `results` are the results of the delegates. `shown` is what Jackfield itself has read about the
/// attachments, such as the MTU. `results`, `shown` and the entries are in the order of the
/// attachments.
pub(super) fn entries(
    context: &Context<'_>,
    sandbox: &Sandbox,
    results: &[Option<CniResult>],
    shown: &[Shown],
) -> Vec<StatusEntry> {
    let addresses = context.request.config.status_addresses;
    let mut entries = Vec::with_capacity(results.len());
    let attachments = sandbox.header.attachments.iter().zip(results);
    for ((attachment, result), shown) in attachments.zip(shown) {
        if !attachment.is_auxiliary {
            entries.push(entry(attachment, result.as_ref(), shown, addresses));
        }
    }
    StatusEntry::sign(&mut entries);
    entries
}

fn entry(
    attachment: &Attachment,
    result: Option<&CniResult>,
    shown: &Shown,
    addresses: StatusAddresses,
) -> StatusEntry {
    let mut entry = StatusEntry::from_result(StatusSource {
        name: &attachment.label,
        is_default: attachment.is_cluster,
        result,
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
}

/// Builds the status of the pod's ResourceClaims from the attachments that use a device of a claim.
fn claims(sandbox: &Sandbox, results: &[Option<CniResult>], shown: &[Shown]) -> Vec<ClaimStatus> {
    let attachments = sandbox.header.attachments.iter().zip(results);
    let devices = attachments
        .zip(shown)
        .filter_map(|((attachment, result), shown)| {
            let device = attachment.device.as_ref()?.claim.clone()?;
            let entry = entry(attachment, result.as_ref(), shown, StatusAddresses::Prefix);
            let data = NetworkData::new(entry.interface, entry.ips, entry.mac);
            Some((device, Some(data)))
        });
    ClaimStatus::group(devices)
}

/// Asks the agent to remove the detached attachments at `indices` from the status of the pod's
/// ResourceClaims ([`Cluster::withdraw`](crate::cluster::Cluster::withdraw)). Does nothing if the
/// journal has a record of another sandbox of the pod.
pub(super) fn leave_claims(context: &Context<'_>, sandbox: &Sandbox, indices: &[usize]) {
    let attachments = sandbox.header.at(indices);
    let devices = attachments.filter_map(|it| Some((it.device.as_ref()?.claim.clone()?, None)));
    let claims = ClaimStatus::group(devices);
    let Some(pod) = sandbox.header.pod.as_ref().filter(|_| !claims.is_empty()) else {
        return;
    };
    // After a reboot, the current sandbox of a pod may publish its status before kubelet removes
    // the previous sandbox. That status must stay.
    if !context.host.journal.has_other(pod, &sandbox.header.key()) {
        let removal = Publication::new(pod.clone(), None, Vec::new()).with_claims(claims);
        context.host.cluster.withdraw(&removal);
    }
}

/// Builds the network-status and returns it. If the pod is known, also publishes the
/// network-status, the status of the pod's ResourceClaims, and `events`. If an event cannot be
/// created, this function adds a note and does not fail.
pub(super) fn publish(
    context: &Context<'_>,
    sandbox: &Sandbox,
    results: &[Option<CniResult>],
    shown: &[Shown],
    events: Vec<Event>,
) -> Result<Vec<StatusEntry>, Failure> {
    let status = entries(context, sandbox, results, shown);
    let Some(pod) = &sandbox.header.pod else {
        return Ok(status);
    };
    let publication = Publication::new(pod.clone(), Some(status.clone()), events);
    let publication = publication.with_claims(claims(sandbox, results, shown));
    let host = context.host;
    let until = context.sparing(KEPT_FOR_DETACHING).deadline;
    let publish = || host.cluster.publish(&publication, until);
    match host.stopwatch.during(Phase::Publish, publish) {
        Err(error @ ClusterError::Event(_)) => context.note(Note::Tolerated(error.into())),
        published => published?,
    }
    Ok(status)
}

/// Builds the event that lists the attachments with an index of at least `first`. The event has the
/// same `reason` and wording as the event of Multus.
pub(super) fn added(sandbox: &Sandbox, first: usize) -> Event {
    let part = |(attachment, attached): (&Attachment, &Progress)| {
        let ips = attached.result.iter().flat_map(|result| &result.ips);
        let ips: Vec<String> = ips.map(|ip| ip.address.to_string()).collect();
        let (ips, ifname, label) = (ips.join(" "), &attachment.ifname, &attachment.label);
        format!("Add {ifname} [{ips}] from {label}")
    };
    let attachments = sandbox.header.attachments.iter().zip(&sandbox.progress);
    let attachments = attachments
        .skip(first)
        .filter(|(attachment, _)| !attachment.is_auxiliary);
    let parts: Vec<String> = attachments.map(part).collect();
    Event::normal("AddedInterface", parts.join("; "))
}

/// Builds the event that lists the attachments at `indices` as detached. Returns `None` if
/// `indices` is empty.
pub(super) fn removed(sandbox: &Sandbox, indices: &[usize]) -> Option<Event> {
    let attachments = sandbox.header.at(indices);
    let parts = attachments.map(|it| format!("Remove {} from {}", it.ifname, it.label));
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| Event::normal("RemovedInterface", parts.join("; ")))
}
