//! Retries failed detachments, because not every runtime repeats a failed DEL.
//!
//! A retry runs in a separate process, which outlives the call that starts it. So the retry does
//! not use up the call's time. The delegate of the retry also survives the end of the call. A
//! delegate that is killed during its DEL may leave state behind that a later DEL does not find.

use crate::journal::{Key, Lock, Lookup};
use crate::operation::detach::{self, Detachment};
use crate::operation::{Context, Note, Work};

/// Starts the retry of one failed detachment, if a retry is due. Skips the sandbox with the key
/// `but`. If the retry cannot be started, a later call starts it, because the journal keeps the
/// failed detachment.
pub(in crate::operation) fn begin_one(context: &Context<'_>, but: Option<&Key>) {
    let host = context.host;
    let Some(owed) = host.journal.due(but) else {
        return;
    };
    let key = owed.key;
    let (locks, deadlines) = (&host.lock_dir, context.request.config.deadlines);
    let lock = Lock::take_if_free(locks, &key.container);
    let is_begun = match &lock {
        // Postpone the next retry, so that no other call starts it while this retry may be running.
        Some(_) => host.journal.postpone(&key, deadlines.del),
        // A process holds the lock. Usually this process is working on the sandbox, so no retry is
        // needed. But a killed retry can leave a hung delegate that holds the lock. Then a new
        // retry is needed.
        None => Lock::is_orphaned(locks, &key.container, deadlines.delegate),
    };
    drop(lock);
    if is_begun && let Err(cause) = (host.start_worker)(context, Work::Retry, &key) {
        context.note(Note::NoRetry(key.container, cause));
    }
}

/// Retries the detachment of `key`, if it is still owed.
pub fn retry(context: &Context<'_>, key: &Key) {
    let host = context.host;
    let Ok(_lock) = context.lock(&key.container) else {
        return;
    };
    match host.journal.find(key) {
        Ok(Lookup::Found(sandbox)) if host.journal.owed(key).is_some() => {
            let container = key.container.clone();
            let detached = detach::detach(context, *sandbox, Detachment::Earlier);
            context.note(match detached {
                Ok(()) => Note::OwedDone(container),
                Err(still) => Note::OwedAgain(container, still),
            });
        }
        // Another call has removed the record. So remove the file that marks the detachment as
        // owed.
        Ok(Lookup::Absent) => drop(host.journal.forget(key)),
        // The record no longer names the attachments, so stop the retries. Keep the record as a
        // sign that the pod is attached. A DEL that finds this sign asks the cluster for the pod's
        // networks.
        Ok(Lookup::CutOff) => host.journal.settle_owed(key),
        Ok(Lookup::Found(_) | Lookup::Damaged(_)) | Err(_) => {}
    }
}
