//! Retries the restoration of devices that an earlier DEL left changed. Keeps a device from the
//! next pod while others would mistake that pod for the previous one.

use super::Restoring;
use super::left::Left;
use crate::baseline::{DeviceState, PodIdentity};
use crate::journal::Header;
use crate::operation::devices::problem::DeviceProblem;
use crate::operation::{Context, Failure};
use crate::plan::{Attachment, PlanError};
use crate::verify::IntendedFunction;

/// Retries the restorations that the journal records for the devices in `states`, which belong to
/// the sandbox of `header`. A device that stays changed gets its recorded state in `states`,
/// because that is the state to restore after this pod.
///
/// # Errors
/// Code 104 with the device, what the previous pod left on it, and the remedy.
pub(super) fn settle(
    context: &Context<'_>,
    header: &Header,
    states: &mut [DeviceState],
) -> Result<(), Failure> {
    let journal = &context.host.journal;
    for state in states {
        let Some(mut kept) = journal.unrestored(state.device) else {
            continue;
        };
        if !kept.is_about(state) {
            journal.forget_unrestored(state.device);
            continue;
        }
        if kept.before.driver != state.driver {
            // Bound to another driver it has another interface, which no pod had.
            kept.before.driver.clone_from(&state.driver);
            kept.before.netdev.clone_from(&state.netdev);
        }
        let left = Restoring::new(context, header, vec![&kept.before]).run()?;
        refuse_anothers(header, &left)?;
        let causes = left.note_causes(context, &kept.before);
        *state = kept.before.clone();
        if !causes.is_empty() {
            kept.causes = causes;
            journal.keep_unrestored(&kept)?;
        } else if left.owed.is_empty() {
            journal.forget_unrestored(state.device);
        }
    }
    Ok(())
}

/// Refuses a device by which others would mistake the pod for the previous one, unless the pod or
/// its definition sets that identity itself.
fn refuse_anothers(header: &Header, left: &Left<'_>) -> Result<(), PlanError> {
    for (device, identity, line) in &left.identities {
        let has = |attachment: &&Attachment| {
            let own = attachment.device.as_ref().and_then(|it| it.pci());
            own == Some(device.device)
        };
        let Some(attachment) = header.attachments.iter().find(has) else {
            continue;
        };
        if is_set_anew(attachment, *identity) {
            continue;
        }
        let problem = DeviceProblem::PreviousIdentity {
            device: device.to_string(),
            identity: *identity,
            line: line.clone(),
            driver: device.driver.clone(),
        };
        return Err(attachment.problem(problem.into()));
    }
    Ok(())
}

fn is_set_anew(attachment: &Attachment, identity: PodIdentity) -> bool {
    let requested = &attachment.requested;
    let set = IntendedFunction::of(&attachment.config, requested);
    match identity {
        PodIdentity::Mac => requested.mac.is_some() || set.sets("mac"),
        PodIdentity::Guid => requested.guid.is_some(),
        PodIdentity::Vlan => set.sets("vlan"),
    }
}
