//! Retries the restoration of devices that an earlier DEL could not restore. If the retry fails, a
//! device may still have a network identity (MAC, GUID or VLAN) of its previous pod. If neither the
//! new pod's request nor the network's definition replaces that identity, Jackfield refuses the
//! device. A request can replace a MAC or GUID. A definition can replace a MAC or VLAN.

use super::Restoring;
use super::left::Left;
use crate::baseline::{DeviceState, PodIdentity};
use crate::journal::Header;
use crate::operation::devices::problem::DeviceProblem;
use crate::operation::{Context, Failure};
use crate::plan::{Attachment, PlanError};
use crate::verify::IntendedFunction;

/// Retries the restoration of each device in `states` that the journal lists as unrestored. Then
/// replaces the device's entry in `states` with the original state from the journal's list, because
/// the new pod's DEL must restore the original state. If the node rebooted or the device was
/// recreated after the earlier DEL, retries nothing and removes the device from the journal's list.
/// `header` is the header of the sandbox that now gets the devices.
///
/// # Errors
/// - Code 104 if [`refuse_anothers`] refuses a device. The message contains the device, the
///   remaining identity of the previous pod, and the remedy.
/// - If the kernel does not answer, or if the journal cannot be written.
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
            // The interface of the new driver is a new interface, which no pod has changed. So
            // replace the driver and the interface in `kept.before`.
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

/// Refuses a device that still has a network identity of the previous pod, if neither this pod's
/// request nor the network's definition replaces that identity.
fn refuse_anothers(header: &Header, left: &Left<'_>) -> Result<(), PlanError> {
    for (device, identity, line) in &left.identities {
        let has = |attachment: &&Attachment| attachment.pci() == Some(device.device);
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

/// Whether the new pod's request or the network's definition replaces this identity. Only a
/// request can replace a GUID, and only a definition can replace a VLAN.
fn is_set_anew(attachment: &Attachment, identity: PodIdentity) -> bool {
    let requested = &attachment.requested;
    let set = IntendedFunction::of(&attachment.config, requested);
    match identity {
        PodIdentity::Mac => requested.mac.is_some() || set.sets("mac"),
        PodIdentity::Guid => requested.guid.is_some(),
        PodIdentity::Vlan => set.sets("vlan"),
    }
}
