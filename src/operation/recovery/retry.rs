//! Retries failed detachments, which no runtime requests any more.
//!
//! A retry runs in a process that outlives the call which starts it. The call's time belongs to its
//! caller, and a plugin that is killed halfway leaves state behind that its own DEL does not know
//! about.

use crate::journal::{Key, Lock, Lookup};
use crate::operation::detach::{self, Detachment};
use crate::operation::{Context, Note};

/// Starts the retry of one owed detachment that is due, except that of `but`. Reports no outcome to
/// the caller: the detachment stays on record until it succeeds.
pub(in crate::operation) fn begin_one(context: &Context<'_>, but: Option<&Key>) {
    let host = context.host;
    let Some(owed) = host.journal.due(but) else {
        return;
    };
    let key = owed.key;
    // The holder of the lock already works on the sandbox.
    let Some(lock) = Lock::take_if_free(&host.lock_dir, &key.container) else {
        return;
    };
    // Keeps other calls from starting the same retry while it may run.
    let deadline = context.request.config.deadlines.del;
    let is_begun = host.journal.postpone(&key, deadline);
    drop(lock);
    if is_begun && let Err(cause) = (host.retry)(context, &key) {
        context.note(Note::NoRetry(key.container, cause));
    }
}

/// Retries the detachment of `key` with the time limit of a DEL.
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
        // Another call has detached it.
        Ok(Lookup::Absent | Lookup::CutOff) => drop(host.journal.forget(key)),
        Ok(Lookup::Found(_) | Lookup::Quarantined(_)) | Err(_) => {}
    }
}
