//! Lists the devices that DEL could not restore, for commands that report on the node.

use super::hardware::Hardware;
use crate::baseline::{Comparison, compare};
use crate::journal::Unrestored;
use crate::operation::Context;

/// Returns the unrestored devices in the journal. Omits devices that are back in their earlier
/// state, were recreated, or no longer exist. If the kernel does not answer, omits none.
#[must_use]
pub fn still_unrestored(context: &Context<'_>) -> Vec<Unrestored> {
    let mut kept = context.host.journal.all_unrestored();
    let addresses: Vec<_> = kept.iter().map(|it| it.before.device).collect();
    if addresses.is_empty() {
        return kept;
    }
    let hardware = Hardware::of(&context.request.config);
    let states = (context.host.devices)(None)
        .and_then(|mut links| hardware.states(&addresses, links.as_mut()));
    if let Ok(states) = states {
        kept.retain(|kept| {
            states.of(kept.before.device).is_some_and(|now| {
                kept.is_about(now) && compare(&kept.before, now) != Comparison::default()
            })
        });
    }
    kept
}
