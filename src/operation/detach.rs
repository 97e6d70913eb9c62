//! Detaches sandboxes: for a DEL, a GC or a retry, after a failed ADD, and when Jackfield is
//! uninstalled. An ADD also detaches an obsolete sandbox that has the key of the new sandbox, or
//! that holds a device, MAC or GUID that the ADD needs. A change of a running pod's networks
//! detaches single attachments.

use std::path::{Path, PathBuf};

use super::delegates::Delegates;
use super::devices::{hardware::Hardware, restore};
use super::{Context, Failure, default_route, network_status, recovery};
use crate::cluster::identity::is_of_static_form;
use crate::journal::{Header, Key, Progress, RouteChange, Sandbox, Step};
use crate::kernel::{NetnsError, PodNetns};
use crate::plan::Attachment;

/// The reason for detaching a sandbox or some of its attachments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detachment {
    /// The runtime sent a DEL. Jackfield tries the `CNI_NETNS` of the DEL before the recorded path
    /// of the network namespace.
    Runtime,
    /// This call made the attachments, then failed, and now rolls them back.
    Unwinding,
    /// An earlier call made the attachments, and this call detaches them.
    Earlier,
}

/// Detaches the attachments of `sandbox`, the last one first. Skips an attachment only if the
/// record shows that it was never started or is detached. Then restores the devices of the sandbox
/// and removes its record. After a failure, continues with the other attachments (NPWG 1.3 §7.2).
///
/// # Errors
/// - [`Failure::Owed`] if an attachment could not be detached or a device could not be restored.
///   The record then stays in the journal for a retry.
/// - [`Failure::Journal`] if the record cannot be removed.
pub fn detach(context: &Context<'_>, sandbox: Sandbox, why: Detachment) -> Result<(), Failure> {
    let key = sandbox.header.key();
    let (detached, mut debts) = attempt(context, &sandbox, &sandbox.to_detach(), why);
    debts.extend(restore::restore(context, &sandbox, &detached));
    if let Some(pod) = &sandbox.header.pod {
        context.host.cluster.sweep(pod);
    }
    // An incomplete ADD has not published the attachments in the status of the pod's
    // ResourceClaims, so nothing has to be removed from that status.
    if sandbox.complete {
        network_status::leave_claims(context, &sandbox, &detached);
    }
    if debts.is_empty() {
        let journal = &context.host.journal;
        journal.give_back(&key, &sandbox.header.attachments);
        journal.forget(&key)?;
        if why == Detachment::Runtime {
            forget_static_pod(context, &sandbox);
        }
        return Ok(());
    }
    let owed = Failure::Owed(debts);
    let steps = steps(&sandbox, &detached, why);
    if !steps.is_empty()
        && let Ok(mut entry) = context.host.journal.reopen(&key)
    {
        // If this write fails, a later DEL calls the same delegates again. CNI requires delegates
        // to accept a repeated DEL.
        let _ = entry.write(&steps);
    }
    Err(owe(context, &key, owed))
}

/// Returns the steps that record the detached attachments. After a failed ADD or change, the steps
/// also record which plugin failed.
fn steps(sandbox: &Sandbox, detached: &[usize], why: Detachment) -> Vec<Step<'static>> {
    let mut steps: Vec<Step<'_>> = detached.iter().copied().map(Step::Detached).collect();
    if why == Detachment::Unwinding {
        let failed = sandbox.progress.iter().enumerate();
        steps.extend(failed.filter_map(|(index, it)| Some(Step::Failed(index, it.failed_at?))));
    }
    steps
}

/// Detaches the attachments at `indices` of a sandbox that keeps its other attachments. Restores
/// the devices of the detached attachments, and records which attachments are detached. If nothing
/// failed, releases the devices, MACs and GUIDs of the attachments at `indices`.
///
/// # Errors
/// - [`Failure::Owed`] if an attachment could not be detached or a device could not be restored.
/// - [`Failure::Journal`] if the steps cannot be recorded and nothing else failed.
pub(super) fn detach_some(
    context: &Context<'_>,
    sandbox: &mut Sandbox,
    indices: &[usize],
    why: Detachment,
) -> Result<(), Failure> {
    let key = sandbox.header.key();
    let (detached, mut debts) = attempt(context, sandbox, indices, why);
    debts.extend(restore::restore(context, sandbox, &detached));
    // A failed change has not published its attachments in the status of the pod's ResourceClaims,
    // so nothing has to be removed from that status.
    if why != Detachment::Unwinding {
        network_status::leave_claims(context, sandbox, &detached);
    }
    let journal = &context.host.journal;
    if debts.is_empty() {
        journal.give_back(&key, sandbox.header.at(indices));
    }
    let steps = steps(sandbox, &detached, why);
    match journal
        .reopen(&key)
        .and_then(|mut entry| entry.write(&steps))
    {
        Ok(()) => {}
        Err(cause) if debts.is_empty() => return Err(cause.into()),
        Err(cause) => debts.push(cause.into()),
    }
    for index in detached {
        sandbox.progress[index].detached = true;
    }
    match debts.is_empty() {
        true => Ok(()),
        false => Err(Failure::Owed(debts)),
    }
}

/// Drops the pending publications of a static pod after its last sandbox is gone. The publications
/// wait for the pod's mirror pod, which may never appear.
fn forget_static_pod(context: &Context<'_>, sandbox: &Sandbox) {
    if let Some(pod) = &sandbox.header.pod
        && pod.uid.as_deref().is_some_and(is_of_static_form)
        && !context.host.journal.has_other(pod, &sandbox.header.key())
    {
        context.host.cluster.forget(pod);
    }
}

/// Records in the journal that the detachment of `key` must be retried. Returns the failure `owed`,
/// extended by the journal's error if recording fails.
pub(super) fn owe(context: &Context<'_>, key: &Key, owed: Failure) -> Failure {
    context.host.stopwatch.wrote(key);
    let recorded = context.host.journal.owe(key, &owed.to_string());
    owed.after_cleanup(recorded.map(drop))
}

/// Tries to detach the attachments at the indices `to_detach`, in this order. Does not write to the
/// record. Returns the indices of the detached attachments and the failures of the others.
pub(super) fn attempt(
    context: &Context<'_>,
    sandbox: &Sandbox,
    to_detach: &[usize],
    why: Detachment,
) -> (Vec<usize>, Vec<Failure>) {
    let netns = match netns(context, sandbox, why) {
        Ok(netns) => netns,
        Err(_) if to_detach.is_empty() => None,
        // Without the namespace, plugins would leave the interfaces in the pod.
        Err(unknown) => return (Vec::new(), vec![unknown.into()]),
    };
    let mut detached = Vec::new();
    let mut debts = Vec::new();
    for (place, index) in to_detach.iter().copied().enumerate() {
        // Each detachment except the last gets half of the remaining time. Otherwise a plugin that
        // hangs would prevent the other detachments, now and on each retry (NPWG 1.3 §7.2).
        let own = match to_detach.len() - place - 1 {
            0 => context.until(context.deadline),
            _ => context.sparing(2),
        };
        let attachment = &sandbox.header.attachments[index];
        let progress = &sandbox.progress[index];
        let netns = netns.as_deref();
        let outcome = match detach_one(&own, sandbox, attachment, progress, netns) {
            Err(debt) if why != Detachment::Unwinding => {
                recovery::settle_refused(&own, sandbox, index, netns, debt)
            }
            outcome => outcome,
        };
        if why == Detachment::Runtime {
            let stopwatch = context.host.stopwatch;
            stopwatch.attachment(&attachment.label, outcome.is_ok());
        }
        match outcome {
            Ok(()) => detached.push(index),
            Err(debt) => debts.push(debt),
        }
    }
    (detached, debts)
}

/// Returns the path of the network namespace to pass to delegates.
///
/// For a DEL from the runtime, tries `CNI_NETNS` first, then the recorded path. The runtime may
/// omit `CNI_NETNS` even while the pod exists (CNI 1.1.0 §2 DEL). For every other detachment, tries
/// only the recorded path. A path may now lead to the namespace of another pod. So this function
/// returns the first path that still leads to the recorded namespace, or `None` if no path does.
///
/// If the record lacks the namespace's identity, this function cannot check the paths. A DEL from
/// the runtime then gets its `CNI_NETNS`, and every other detachment gets `None`.
///
/// # Errors
/// As [`recorded_netns`].
fn netns(
    context: &Context<'_>,
    sandbox: &Sandbox,
    why: Detachment,
) -> Result<Option<PathBuf>, NetnsError> {
    let header = &sandbox.header;
    if why == Detachment::Runtime
        && let Some(given) = context.request.call.netns.clone()
        && (header.netns_id.is_empty() || recorded_netns(header, &given)?.is_some())
    {
        return Ok(Some(given));
    }
    let path = PathBuf::from(&header.netns);
    Ok(recorded_netns(header, &path)?.map(|_| path))
}

/// Opens the network namespace at `path` if it is the recorded namespace. Returns `None` if `path`
/// does not lead to the recorded namespace, or if the record lacks the namespace's identity.
///
/// # Errors
/// If the namespace cannot be opened for lack of descriptors or memory.
pub(super) fn recorded_netns(header: &Header, path: &Path) -> Result<Option<PodNetns>, NetnsError> {
    match PodNetns::open(path) {
        Ok(netns) if netns.id().to_string() == header.netns_id => Ok(Some(netns)),
        Err(unknown) if unknown.is_shortage() => Err(unknown),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Detaches `attachment` of `sandbox`. Usually, `attachment` is the recorded one. After a refused
/// DEL, `recovery::stuck` passes an attachment with the network's current configuration.
pub(super) fn detach_one(
    context: &Context<'_>,
    sandbox: &Sandbox,
    attachment: &Attachment,
    progress: &Progress,
    netns: Option<&Path>,
) -> Result<(), Failure> {
    let binaries = context.programs(&attachment.config);
    let delegates = Delegates::new(context, &sandbox.header, attachment, &binaries, netns)?;
    let outcome = delegates.del(progress);
    let undone = match netns {
        Some(netns) if progress.routes != RouteChange::default() => {
            default_route::undo(&progress.routes, netns, context.host.links)
        }
        _ => Ok(()),
    };
    outcome?;
    undone?;
    // Keep the device-info file until DEL has succeeded, because plugins may read it again on a
    // retry.
    Hardware::remove_file(attachment)
}
