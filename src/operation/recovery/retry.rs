//! Detachments that failed are tried again, although no runtime asks for them any more.
//!
//! By a process of their own, which outlives the call that begins it: that one's time is its
//! caller's, and a plugin that is ended half way leaves what its own DEL does not know of.

use crate::journal::{Key, Lock, Lookup};
use crate::operation::detach::{self, Detachment};
use crate::operation::{Context, Note};

/// Has one detachment tried again that is owed and due, other than that of `but`. Whatever comes of
/// it is nothing to the caller: it stays on record until it is done.
pub(in crate::operation) fn begin_one(context: &Context<'_>, but: Option<&Key>) {
    let host = context.host;
    let Some(owed) = host.journal.due(but) else {
        return;
    };
    let key = owed.key();
    // Whoever holds the lock is at it already.
    let Some(lock) = Lock::take_if_free(&host.lock_dir, &key.container) else {
        return;
    };
    // For as long as it may take, no other call begins the same.
    let is_begun = host
        .journal
        .postpone(&key, context.request.config.deadlines.del);
    drop(lock);
    if is_begun && let Err(cause) = (host.retry)(context, &key) {
        context.note(Note::NoRetry(key.container, cause));
    }
}

/// Tries the detachment of `key` again, with all the time of a DEL.
pub fn retry(context: &Context<'_>, key: &Key) {
    let host = context.host;
    let Ok(_lock) = context.lock(&key.container) else {
        return;
    };
    match host.journal.find(key) {
        Ok(Lookup::Found(sandbox)) if host.journal.owed(key).is_some() => {
            let container = key.container.clone();
            context.note(
                match detach::detach(context, *sandbox, Detachment::Earlier) {
                    Ok(()) => Note::OwedDone(container),
                    Err(still) => Note::OwedAgain(container, still),
                },
            );
        }
        // Somebody else has settled it.
        Ok(Lookup::Absent | Lookup::CutOff) => drop(host.journal.forget(key)),
        Ok(Lookup::Found(_) | Lookup::Quarantined { .. }) | Err(_) => {}
    }
}
