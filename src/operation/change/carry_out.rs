//! The steps of a change whose plan has no problems.

use crate::baseline::DeviceState;
use crate::cluster::{Event, Phase};
use crate::journal::{Progress, Sandbox};
use crate::kernel::{PodLinks, PodNetns};
use crate::npwg::{NetworksDigest, StatusEntry};
use crate::operation::attach::Attaching;
use crate::operation::detach::{self, Detachment};
use crate::operation::devices::{reserve, restore};
use crate::operation::prepare::{Change, Prepared};
use crate::operation::proof::{self, Proof};
use crate::operation::{Context, Failure, Note, default_route, network_status};
use crate::request::{NodeConfig, Strictness};
use crate::verify::Masters;

/// Carries out a change. If attaching fails, rolls back the new networks. Publishes the status of
/// the remaining attachments even if detaching or attaching fails.
pub(super) fn carry_out(
    context: &Context<'_>,
    mut sandbox: Sandbox,
    change: Change,
    netns: &PodNetns,
    links: &mut dyn PodLinks,
) -> Result<Vec<StatusEntry>, Failure> {
    let journal = &context.host.journal;
    let (mut removed, prepared) = (change.removed, change.prepared);
    let first = sandbox.header.attachments.len();
    sandbox.begin_change(removed.clone(), prepared.attachments().cloned().collect());
    let entry = journal.write(&sandbox)?;
    context.host.stopwatch.wrote(&sandbox.header.key());
    let mut events = prepared.events.clone();
    let removed_event = network_status::removed(&sandbox, &removed);
    // Detach the last attachment first, as DEL does.
    removed.reverse();
    // Whether detaching failed. If it did, a DEL or the next change must complete the cleanup.
    let mut is_owed = false;
    let outcome = match detach::detach_some(context, &mut sandbox, &removed, Detachment::Earlier) {
        Err(owed) => {
            is_owed = true;
            Err(owed)
        }
        Ok(()) => {
            events.extend(removed_event);
            let attachments = &sandbox.header.attachments;
            let names = removed.iter().map(|it| attachments[*it].ifname.clone());
            let names: Vec<_> = names.collect();
            sandbox.forget_routes(&names);
            let mut attaching = Attaching {
                context,
                netns,
                links: &mut *links,
                entry,
                sandbox,
                previous: None,
                events,
                shown: Vec::new(),
            };
            let attached = attach(&mut attaching, &prepared, first);
            (sandbox, events) = (attaching.sandbox, attaching.events);
            attached.map_err(|cause| {
                let rolled_back = roll_back(context, &mut sandbox, first);
                is_owed = rolled_back.is_err();
                cause.after_cleanup(rolled_back)
            })
        }
    };
    // If nothing is left to clean up, remove the change from the record. Otherwise the record keeps
    // the change for a DEL or the next change.
    let is_settled = !is_owed && (outcome.is_ok() || sandbox.unfinished().is_empty());
    if outcome.is_err() {
        // Mark all new attachments as detached, so that the network-status lists none of them, even
        // if a part of a network is left in the pod.
        sandbox.progress[first..].fill_with(|| Progress {
            detached: true,
            ..Progress::default()
        });
    }
    let mut sandbox = sandbox.end_change(NetworksDigest::default());
    if is_settled {
        journal.write(&sandbox)?;
    }
    if outcome.is_ok() && !prepared.attachments.is_empty() {
        let first = sandbox.header.attachments.len() - prepared.attachments.len();
        events.push(network_status::added(&sandbox, first));
    }
    let published = publish(context, &sandbox, links, events);
    outcome?;
    let status = published?;
    // As the last step, record the digest of the pod's annotation. If this process is killed before
    // this write, the record keeps the empty digest, and the next change publishes the status
    // again.
    sandbox.header.networks = Some(prepared.networks);
    journal.write(&sandbox)?;
    Ok(status)
}

/// Attaches the new networks. Their indices in the record begin with `first`.
fn attach(attaching: &mut Attaching<'_>, prepared: &Prepared, first: usize) -> Result<(), Failure> {
    let (context, header) = (attaching.context, &attaching.sandbox.header);
    let added = header.attachments.get(first..).unwrap_or_default();
    reserve::take(context, header, added)?;
    let baseline = restore::baseline(context, header, added)?;
    let is_new = |known: &DeviceState| baseline.iter().any(|it| it.device == known.device);
    attaching.sandbox.baseline.retain(|known| !is_new(known));
    attaching.sandbox.baseline.extend(baseline);
    attaching.attach_networks(prepared, first)
}

/// Detaches the attachments from the index `first` on, and releases their devices, MACs and GUIDs.
fn roll_back(context: &Context<'_>, sandbox: &mut Sandbox, first: usize) -> Result<(), Failure> {
    let mut begun = sandbox.to_detach();
    begun.retain(|index| *index >= first);
    let roll_back = || detach::detach_some(context, sandbox, &begun, Detachment::Unwinding);
    context.host.stopwatch.during(Phase::Unwind, roll_back)?;
    let added = sandbox.header.attachments.get(first..).unwrap_or_default();
    context.host.journal.give_back(&sandbox.header.key(), added);
    Ok(())
}

/// Publishes the network-status of all attachments of the sandbox. Drops the warnings of the
/// verification, because CHECK reports them. If an attachment cannot be verified, adds a note and
/// publishes the status anyway.
pub(super) fn publish(
    context: &Context<'_>,
    sandbox: &Sandbox,
    links: &mut dyn PodLinks,
    events: Vec<Event>,
) -> Result<Vec<StatusEntry>, Failure> {
    let config = NodeConfig {
        verify: Strictness::Warn,
        verify_cluster: Strictness::Warn,
        ..context.request.config.clone()
    };
    let results = default_route::answered(sandbox);
    let mut shown = Vec::with_capacity(results.len());
    for (attachment, result) in sandbox.header.attachments.iter().zip(&results) {
        let (result, until) = (result.as_ref(), context.deadline);
        let proof = proof::prove(&config, attachment, result, Masters::Any, links, until);
        let proof = proof.unwrap_or_else(|failure| {
            context.note(Note::Tolerated(failure));
            Proof::default()
        });
        shown.push(proof.shown);
    }
    network_status::publish(context, sandbox, &results, &shown, events)
}
