//! Detachments that failed are tried again, although no runtime asks for them any more.

use std::time::{Duration, Instant};

use super::Context;
use super::detach::{self, Detachment};
use crate::journal::{Key, Lock, Lookup};

/// How long one attempt may take: it comes on top of somebody else's call.
const ATTEMPT: Duration = Duration::from_millis(200);

/// Tries one detachment that is owed and due, other than that of `but`. Whatever comes of it is
/// nothing to the caller: it stays on record until it is done.
pub(super) fn try_one(context: &Context<'_>, but: Option<&Key>) {
    let node = context.node;
    let Some(owed) = node.journal.due(but) else {
        return;
    };
    let key = owed.key();
    let attempt = Context::until(node, context.request, Instant::now() + ATTEMPT);
    // Whoever holds the lock is at it already.
    let Ok(_lock) = Lock::take(&node.lock_dir, &key.container, Instant::now()) else {
        return;
    };
    match node.journal.find(&key) {
        Ok(Lookup::Found(sandbox)) => {
            let line = match detach::detach(&attempt, *sandbox, Detachment::Earlier) {
                Ok(()) => "is detached now".to_owned(),
                Err(still) => still.to_string(),
            };
            context.note(&format!("owed: container {}: {line}", key.container));
        }
        // Somebody else has settled it.
        Ok(Lookup::Absent | Lookup::CutOff) => drop(node.journal.forget(&key)),
        Ok(Lookup::Quarantined { .. }) | Err(_) => {}
    }
}
