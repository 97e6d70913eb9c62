//! DEL: detach what is on record, with nothing but the record.

use super::detach::{self, Detachment};
use super::{Context, Failure};
use crate::journal::{Key, Lock, Lookup};

/// Detaches a pod. A sandbox never seen, or detached before, is a success (CNI 1.1.0 §2 DEL).
///
/// # Errors
/// [`Failure::Owed`] (code 106) when something is still attached; it stays on record.
pub fn del(context: &Context<'_>) -> Result<(), Failure> {
    let (container, ifname) = context.request.call.attachment()?;
    let key = Key { container, ifname };
    let _lock = Lock::take(&context.node.lock_dir, &key.container, context.deadline)?;
    match context.node.journal.find(&key)? {
        Lookup::Found(sandbox) => detach::detach(context, *sandbox, Detachment::Runtime),
        Lookup::Absent | Lookup::Quarantined { .. } => Ok(()),
    }
}
