//! Reserves devices, MACs and GUIDs for one sandbox before any delegate runs.

use std::time::Duration;

use device_info::PciAddress;

use super::hardware::Hardware;
use super::problem::DeviceProblem;
use crate::allocation::Checkpoint;
use crate::boot::boot_id;
use crate::clock;
use crate::journal::{Exclusive, Header, JournalError, Key, Lock, Lookup, Sandbox, Turn};
use crate::operation::detach::{self, Detachment};
use crate::operation::prepare::Prepared;
use crate::operation::{Context, Failure};
use crate::plan::{Attachment, PlanError};

/// How long to wait for the lock of an obsolete sandbox's container. If another process still holds
/// the lock after this time, the call fails.
const BUSY: Duration = Duration::from_secs(1);

/// Reserves the devices and the requested MACs and GUIDs of `attachments` for the sandbox of
/// `header`.
///
/// The holder is the sandbox that has already reserved one of these devices or addresses. If the
/// holder is obsolete, `take` detaches it first. A holder is obsolete if it is from an earlier
/// boot, if it is another sandbox of the pod in `header`, or if kubelet has meanwhile taken the
/// device from the holder's pod and allocated it to the pod in `header`.
///
/// # Errors
/// - If a holder is not obsolete: code 104 for a device, 101 for a MAC or GUID. The message names
///   the holder only if both pods are in one Kubernetes namespace.
/// - If an obsolete holder cannot be detached, or if the journal or a lock cannot be used.
pub(in crate::operation) fn take(
    context: &Context<'_>,
    header: &Header,
    attachments: &[Attachment],
) -> Result<(), Failure> {
    for attachment in attachments {
        for what in Exclusive::of(attachment) {
            take_one(context, header, attachment, &what)?;
        }
    }
    Ok(())
}

/// Returns the reasons why an ADD would refuse the devices and addresses of `prepared`. Reserves
/// nothing.
pub fn foresee(context: &Context<'_>, prepared: &Prepared) -> Vec<PlanError> {
    let Ok(key) = context.key() else {
        return Vec::new();
    };
    let header = Header {
        pod: prepared.pod.clone(),
        ..Header::new(&key, prepared.attachments().cloned().collect())
    };
    let mut refusals = Vec::new();
    let mut free = Vec::new();
    for attachment in &header.attachments {
        let mut is_held = false;
        for what in Exclusive::of(attachment) {
            let holder = match context.host.journal.other_holder(&key, &what) {
                Ok(None) => earlier_holder(context, &key, &what),
                holder => holder,
            };
            is_held |= !matches!(holder, Ok(None));
            let holder = holder.ok().flatten().filter(|holder| {
                !is_same_pod(&header, &holder.header)
                    && !is_obsolete(context, &header, holder, &what)
            });
            refusals.extend(holder.map(|holder| refused(&header, attachment, &what, &holder)));
        }
        if !is_held {
            free.push(attachment);
        }
    }
    // Check that plugins can attach the devices that no other sandbox holds. For example, the
    // interface of a VF must be in the host's network namespace. If the kernel does not answer,
    // skip this check. An ADD repeats the check and reports the kernel's error.
    let addresses: Vec<PciAddress> = free.iter().filter_map(|it| it.pci()).collect();
    let hardware = Hardware::of(&context.request.config);
    let states = (context.host.devices)(None)
        .and_then(|mut links| hardware.states(&addresses, links.as_mut()));
    if let Ok(states) = states {
        refusals.extend(hardware.are_at_home(free, &states).err());
    }
    refusals
}

/// Whether two sandboxes belong to the same pod. Compares the pods' UIDs only if both are known.
fn is_same_pod(ours: &Header, theirs: &Header) -> bool {
    let (Some(ours), Some(theirs)) = (&ours.pod, &theirs.pod) else {
        return false;
    };
    let is_known = ours.uid.is_some() && theirs.uid.is_some();
    (&ours.namespace, &ours.name) == (&theirs.namespace, &theirs.name)
        && (!is_known || ours.uid == theirs.uid)
}

fn take_one(
    context: &Context<'_>,
    header: &Header,
    attachment: &Attachment,
    what: &Exclusive,
) -> Result<(), Failure> {
    let (journal, key) = (&context.host.journal, header.key());
    let take = || -> Result<_, Failure> {
        let turn = Turn::take(&context.host.lock_dir, context.deadline)?;
        Ok(match earlier_holder(context, &key, what)? {
            None => journal.take(&key, what, &turn)?,
            holder => holder,
        })
    };
    let Some(holder) = take()? else {
        return Ok(());
    };
    if !is_obsolete(context, header, &holder, what) {
        return Err(refused(header, attachment, what, &holder).into());
    }
    settle(context, &holder.header.key()).map_err(|cause| match (what, cause) {
        (Exclusive::Device(_), cause @ Failure::Owed(_)) => {
            let problem = DeviceProblem::EarlierSandbox(what.to_string(), Box::new(cause));
            attachment.problem(problem.into()).into()
        }
        (_, cause) => cause,
    })?;
    match take()? {
        None => Ok(()),
        Some(holder) => Err(refused(header, attachment, what, &holder).into()),
    }
}

/// Looks for a reservation that an older version of Jackfield made for the MAC or GUID of `what`.
/// Such a reservation names no segment (the layer-2 network in which addresses must be unique). So
/// `earlier_holder` determines the segment from the current state of the node. Returns the sandbox
/// that holds the reservation, if the reservation is on the segment of `what`. Returns `None` if
/// this sandbox is `key` itself, or if `what` is a device or has no segment.
fn earlier_holder(
    context: &Context<'_>,
    key: &Key,
    what: &Exclusive,
) -> Result<Option<Box<Sandbox>>, JournalError> {
    let (Some(segment), Some(unnamed)) = (what.segment(), what.without_segment()) else {
        return Ok(None);
    };
    let holder = context.host.journal.other_holder(key, &unnamed)?;
    Ok(holder.filter(|holder| {
        let hardware = Hardware::of(&context.request.config);
        let all: Vec<&Attachment> = holder.header.attachments.iter().collect();
        all.iter().enumerate().any(|(index, other)| {
            let is_on = || hardware.segment(other, &all[..index]) == *segment;
            Exclusive::of(other).contains(&unnamed) && is_on()
        })
    }))
}

/// Whether the holder is obsolete (see [`take`]).
fn is_obsolete(context: &Context<'_>, header: &Header, holder: &Sandbox, what: &Exclusive) -> bool {
    let uid = |header: &Header| header.pod.as_ref().and_then(|pod| pod.uid.clone());
    let (ours, theirs) = (uid(header), uid(&holder.header));
    if holder.header.boot != boot_id() {
        return true;
    }
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return false;
    };
    if ours == theirs {
        return holder.header.container != header.container;
    }
    let Exclusive::Device(address) = what else {
        return false;
    };
    let Ok(checkpoint) = Checkpoint::read(&context.request.config.kubelet_checkpoint) else {
        return false;
    };
    let id = address.to_string();
    let is_given_to = |uid: &str| checkpoint.holders(&id).any(|holder| holder == uid);
    is_given_to(&ours) && !is_given_to(&theirs)
}

/// Detaches an obsolete sandbox. A later DEL of that sandbox has nothing left to do.
fn settle(context: &Context<'_>, key: &Key) -> Result<(), Failure> {
    let until = context.deadline.min(clock::now() + BUSY);
    let _lock = Lock::take(&context.host.lock_dir, &key.container, until)?;
    match context.host.journal.find(key)? {
        Lookup::Found(sandbox) => detach::detach(context, *sandbox, Detachment::Earlier),
        Lookup::Absent | Lookup::CutOff | Lookup::Damaged(_) => Ok(()),
    }
}

fn refused(
    header: &Header,
    attachment: &Attachment,
    what: &Exclusive,
    holder: &Sandbox,
) -> PlanError {
    let has_it = |other: &&Attachment| {
        let has = Exclusive::of(other);
        has.contains(what) || what.without_segment().is_some_and(|it| has.contains(&it))
    };
    let whose = match holder.header.named_for(header.pod.as_ref()) {
        Some(name) => match holder.header.attachments.iter().find(has_it) {
            Some(other) => format!("{name}, {}", other.place()),
            None => name,
        },
        None => "a pod of another namespace".to_owned(),
    };
    let problem = match what {
        Exclusive::Device(_) => DeviceProblem::InUse {
            device: what.to_string(),
            holder: whose,
        },
        Exclusive::Mac(..) | Exclusive::Guid(..) => DeviceProblem::AddressUsed {
            address: what.to_string(),
            holder: whose,
            segment: what.segment().map(ToString::to_string),
        },
    };
    attachment.problem(problem.into())
}
