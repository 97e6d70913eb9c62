//! Recovery of sandboxes whose record alone is not enough to detach them.
//!
//! A DEL with a record uses the journal, the delegates, the kernel and the devices. Whatever else a
//! DEL asks, such as the cluster or Multus' cache, it asks through this module.
//!
//! ```text
//! no record, or a damaged one        ▶ unrecorded   reconstructs what the sandbox may have
//! delegates refuse DEL after ADD     ▶ stuck        tries the current configuration, then gives up
//! a DEL failed earlier               ▶ retry        retries in a process of its own
//! Jackfield leaves the node          ▶ retire       detaches sandboxes of deleted pods, or all
//! ```

pub mod retire;
pub mod retry;
mod stuck;
mod unrecorded;

use super::detach::{self, Detachment};
use super::{Context, Failure, Note};
use crate::journal::Key;

pub(super) use retry::begin_one as begin_retry;
pub(super) use stuck::settle as settle_refused;
pub(super) use unrecorded::find as find_unrecorded;

/// Detaches what a sandbox without a usable record may have. `is_lost` says that it had a record.
///
/// # Errors
/// [`Failure::Owed`] if something is still attached; the sandbox then has a record.
pub(super) fn del_without_record(
    context: &Context<'_>,
    key: &Key,
    is_lost: bool,
) -> Result<(), Failure> {
    let Some(unrecorded) = unrecorded::find(context, key, is_lost)? else {
        return Ok(());
    };
    if unrecorded.is_attached {
        // A failed DEL then leaves a debt like any other.
        let journal = &context.host.journal;
        journal.adopt(&unrecorded.sandbox)?;
        if unrecorded.is_of_multus {
            journal.mark_adopted(key)?;
        }
        if is_lost {
            journal.settle_lost(key);
        }
        return detach::detach(context, unrecorded.sandbox, Detachment::Runtime);
    }
    let (_, failures) = detach::attempt(context, &unrecorded.sandbox, Detachment::Runtime);
    for failure in failures {
        context.note(Note::NotOnRecord(failure));
    }
    Ok(())
}
