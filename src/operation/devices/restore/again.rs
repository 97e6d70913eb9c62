//! Devices that an earlier DEL left otherwise are put right before another pod gets them, or kept
//! from it while others would take it for the pod before.

use super::Restoring;
use super::left::Left;
use crate::baseline::{DeviceState, PodIdentity};
use crate::journal::Header;
use crate::operation::{Context, Failure, Note};
use crate::plan::{Attachment, PlanError, Reason};
use crate::verify::IntendedFunction;

/// Tries again what the journal keeps of the devices in `states`, which are those of the sandbox of
/// `header`. One that stays otherwise is in `states` as it was before, since that is how it goes
/// back.
///
/// # Errors
/// Code 104 with the device, what is left of the pod before, and the remedy.
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
            // By another driver it has another interface, which no pod had.
            kept.before.driver.clone_from(&state.driver);
            kept.before.netdev.clone_from(&state.netdev);
        }
        let left = Restoring::new(context, header, vec![&kept.before]).run()?;
        refuse_anothers(header, &left)?;
        let causes: Vec<String> = left.lines_on(&kept.before).map(str::to_owned).collect();
        for line in &causes {
            context.note(Note::unrestored(&kept.before, line));
        }
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

/// Refuses a device by which others would take the pod for the one before, unless what they know
/// that one by is set anew for this one.
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
        let (what, remedy) = match identity {
            PodIdentity::Mac => ("hardware address", "ask for a MAC"),
            PodIdentity::Guid => ("GUID", "ask for an infiniband-guid"),
            PodIdentity::Vlan => ("VLAN", "set vlan in the definition"),
        };
        let driver = device.driver.as_deref().unwrap_or("DRIVER");
        return Err(attachment.problem(Reason::Devices(format!(
            "{device} still has the {what} of the pod that had it before: {line}; bind it anew by \
             /sys/bus/pci/drivers/{driver}/unbind and bind, or {remedy}"
        ))));
    }
    Ok(())
}

fn is_set_anew(attachment: &Attachment, identity: PodIdentity) -> bool {
    let requested = &attachment.requested;
    let set = IntendedFunction::of(&attachment.config, requested);
    match identity {
        PodIdentity::Mac => requested.mac.is_some() || set.mac().is_some(),
        PodIdentity::Guid => requested.guid.is_some(),
        PodIdentity::Vlan => set.vlan().is_some(),
    }
}
