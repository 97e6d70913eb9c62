//! Recovery of sandboxes that a DEL cannot detach with their record alone.
//!
//! Normally, a DEL needs only the journal, the delegates, the kernel and the devices. Only in this
//! module can a DEL also ask the cluster or read Multus' cache.
//!
//! ```text
//! no record, or a damaged record     ▶ unrecorded   reconstructs the likely attachments
//! ADD failed, and plugins refuse DEL ▶ stuck        retries DEL with the network's new
//!                                                   configuration, if any; gives up in the end
//! a DEL failed earlier               ▶ retry        retries the DEL in a separate process
//! Jackfield is uninstalled           ▶ retire       detaches sandboxes of deleted pods;
//!                                                   with `--force`, all sandboxes
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

/// Detaches the attachments that a sandbox without a usable record may have. `is_lost` means that
/// the sandbox had a record that was destroyed or damaged.
///
/// # Errors
/// If there is no sign that the sandbox is attached, there is no error. Otherwise:
///
/// - [`Failure::Owed`] if an attachment could not be detached or a device could not be restored. If
///   Jackfield could write a record, it retries the detachment later.
/// - Another failure if the attachments cannot be determined, or if the record cannot be removed
///   after the detachment.
pub(super) fn del_without_record(
    context: &Context<'_>,
    key: &Key,
    is_lost: bool,
) -> Result<(), Failure> {
    let Some(unrecorded) = unrecorded::find(context, key, is_lost)? else {
        return Ok(());
    };
    if unrecorded.is_attached {
        // Write the record first, so that Jackfield can retry this DEL after a failure. If the
        // record cannot be written, for example to a full disk, detach without it. A failure here
        // would keep the pod from being deleted, and its deletion may free space.
        let journal = &context.host.journal;
        let recorded = journal.write(&unrecorded.sandbox).map(drop);
        let recorded = match unrecorded.is_of_multus {
            true => recorded.and_then(|()| journal.mark_adopted(key)),
            false => recorded,
        };
        match recorded {
            Ok(()) => journal.settle_lost(key),
            Err(cause) => context.note(Note::Tolerated(cause.into())),
        }
        detach::detach(context, unrecorded.sandbox, Detachment::Runtime)?;
        journal.settle_lost(key);
        return Ok(());
    }
    let sandbox = &unrecorded.sandbox;
    let to_detach = sandbox.to_detach();
    let (_, failures) = detach::attempt(context, sandbox, &to_detach, Detachment::Runtime);
    for failure in failures {
        context.note(Note::NotOnRecord(failure));
    }
    Ok(())
}
