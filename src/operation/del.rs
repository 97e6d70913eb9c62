//! DEL: detaches the sandbox according to its record. DEL asks the cluster in two cases only
//! ([`recovery`]):
//!
//! - There is no usable record.
//! - The ADD of a network failed, and the delegates refuse to detach this network.

use super::detach::{self, Detachment};
use super::note::damage;
use super::recovery::retire::has_netns;
use super::{Context, Failure, Note, inquiry, readiness_indicator, recovery};
use crate::cluster::SandboxNetworks;
use crate::journal::{Key, Lookup, Sandbox};
use crate::kernel::PodNetns;

/// DEL may wait until the cluster network is ready, but reserves 1/`KEPT_FOR_DETACHING` of the
/// remaining time for detaching the sandbox.
const KEPT_FOR_DETACHING: u32 = 2;

/// Detaches a pod. Succeeds if the sandbox is unknown or already detached (CNI 1.1.0 §2 DEL).
///
/// # Errors
/// - [`Failure::Owed`] (code 106) if a part of the sandbox may still be attached. The journal then
///   keeps the record for a retry.
/// - [`Failure::OwnNetns`] if `CNI_NETNS` is the network namespace of Jackfield itself.
/// - If the lock is not free in time, or if the journal cannot be read or written.
/// - If the attachments of a sandbox without a usable record cannot be determined.
pub fn del(context: &Context<'_>) -> Result<(), Failure> {
    let key = context.key()?;
    let outcome = locked(context, &key);
    let gone = SandboxNetworks::gone(&key.container, &key.ifname);
    context.host.stopwatch.sandbox(gone);
    recovery::begin_retry(context, Some(&key));
    outcome
}

/// Refuses the network namespace that Jackfield itself runs in, because the interfaces in that
/// namespace belong to the node. Accepts this namespace if the runtime sets `CNI_NETNS_OVERRIDE`.
/// Accepts a path that cannot be opened, because the pod with that path no longer exists.
fn refuse_own_netns(context: &Context<'_>) -> Result<(), Failure> {
    let call = &context.request.call;
    let Some(path) = call.netns.as_deref().filter(|_| !call.netns_override) else {
        return Ok(());
    };
    match PodNetns::open(path).map(|netns| netns.is_ours()) {
        Ok(Ok(true)) => Err(Failure::OwnNetns(path.to_owned())),
        _ => Ok(()),
    }
}

fn locked(context: &Context<'_>, key: &Key) -> Result<(), Failure> {
    let _lock = context.lock(&key.container)?;
    let journal = &context.host.journal;
    let is_lost = match journal.find(key)? {
        Lookup::Found(sandbox) => return recorded(context, key, *sandbox),
        Lookup::Absent => journal.is_lost(key),
        Lookup::CutOff => true,
        Lookup::Damaged(aside) => {
            let container = key.container.clone();
            context.note(Note::DelOfDamagedRecord(container, damage(aside)));
            true
        }
    };
    refuse_own_netns(context)?;
    if let Ok(Some(pod)) = inquiry::pod_name(context) {
        context.host.cluster.sweep(&pod);
    }
    recovery::del_without_record(context, key, is_lost)?;
    // Without a record, `forget` still removes the sandbox's files in `owed/` and `changes/`.
    Ok(journal.forget(key)?)
}

/// Detaches a recorded sandbox. Waits for the cluster network first, as ADD does (NPWG 1.3 §6.1.2).
fn recorded(context: &Context<'_>, key: &Key, sandbox: Sandbox) -> Result<(), Failure> {
    // If the recorded namespace is gone, do not check the path from the runtime. The process ID in
    // a path such as `/proc/PID/ns/net` may now belong to a process in the node's namespace, and
    // the check would refuse the DEL.
    if has_netns(&sandbox.header)? {
        refuse_own_netns(context)?;
    }
    if let Err(failure) = readiness_indicator::wait(&context.sparing(KEPT_FOR_DETACHING)) {
        let owed = Failure::Owed(vec![failure]);
        return Err(detach::owe(context, key, owed));
    }
    detach::detach(context, sandbox, Detachment::Runtime)
}

#[cfg(test)]
mod tests;
