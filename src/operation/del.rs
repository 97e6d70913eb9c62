//! DEL: detach what is on record, using only the record.

use super::detach::{self, Detachment};
use super::recovery::retire::has_netns;
use super::{Context, Failure, Note, readiness_indicator, recovery};
use crate::journal::{Key, Lookup, Sandbox};
use crate::kernel::PodNetns;

/// The fraction of the time that is reserved for detaching after the wait for the cluster network:
/// a half.
const KEPT_FOR_DETACHING: u32 = 2;

/// Detaches a pod. Succeeds for a sandbox that is unknown or already detached (CNI 1.1.0 §2 DEL).
///
/// # Errors
/// [`Failure::Owed`] (code 106) if something is still attached; it stays on record.
pub fn del(context: &Context<'_>) -> Result<(), Failure> {
    let key = context.key()?;
    let outcome = locked(context, &key);
    recovery::begin_retry(context, Some(&key));
    outcome
}

/// Refuses the network namespace of the plugin itself, whose interfaces are the node's, unless the
/// runtime insists on it. A path that leads nowhere belongs to a pod that is gone. So does any path
/// if the namespace on record is gone: `/proc/PID/ns/net` may be that of another process by now.
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
    match journal.find(key)? {
        Lookup::Found(sandbox) => recorded(context, key, *sandbox),
        Lookup::Absent => without_record(context, key, journal.is_lost(key)),
        Lookup::CutOff => {
            without_record(context, key, true)?;
            Ok(journal.forget(key)?)
        }
        Lookup::Quarantined(damaged) => {
            context.note(Note::DelOfDamagedRecord {
                container: key.container.clone(),
                file: damaged.path.display().to_string(),
                cause: damaged.cause.to_string(),
            });
            without_record(context, key, true)
        }
    }
}

/// Detaches a sandbox on record. Waits for the cluster network first, as ADD does (NPWG 1.3
/// §6.1.2).
fn recorded(context: &Context<'_>, key: &Key, sandbox: Sandbox) -> Result<(), Failure> {
    if has_netns(&sandbox.header) {
        refuse_own_netns(context)?;
    }
    if let Err(failure) = readiness_indicator::wait(&context.sparing(KEPT_FOR_DETACHING)) {
        let owed = Failure::Owed(vec![failure]);
        return Err(detach::owe(context, key, owed));
    }
    detach::detach(context, sandbox, Detachment::Runtime)
}

fn without_record(context: &Context<'_>, key: &Key, is_lost: bool) -> Result<(), Failure> {
    refuse_own_netns(context)?;
    recovery::del_without_record(context, key, is_lost)
}

#[cfg(test)]
mod tests;
