//! What only one sandbox may have is taken before anything runs.

use std::time::{Duration, Instant};

use device_info::PciAddress;

use super::hardware::Hardware;
use crate::allocation::Checkpoint;
use crate::boot::boot_id;
use crate::journal::{Exclusive, Header, JournalError, Key, Lock, Lookup, Sandbox, Turn};
use crate::operation::detach::{self, Detachment};
use crate::operation::prepare::Prepared;
use crate::operation::{Context, Failure};
use crate::plan::{Attachment, PlanError, Reason, Segment};

/// How long somebody else's work on the sandbox that has it is waited for.
const BUSY: Duration = Duration::from_secs(1);

/// Takes every device, and every MAC and GUID that is asked for, for the sandbox of `header`.
///
/// A sandbox that is only waiting for its DEL is detached first: one of an earlier boot, an older
/// one of the same pod, and one whose device kubelet has given to this pod by now.
///
/// # Errors
/// Code 104 for a device, 101 for an address; nothing has run then. The holder is named where it
/// is of the pod's own namespace.
pub(in crate::operation) fn take(context: &Context<'_>, header: &Header) -> Result<(), Failure> {
    for attachment in &header.attachments {
        for what in Exclusive::of(attachment) {
            take_one(context, header, attachment, &what)?;
        }
    }
    Ok(())
}

/// What an ADD would be refused, with nothing taken.
pub fn foresee(context: &Context<'_>, prepared: &Prepared) -> Vec<PlanError> {
    let Ok((container, ifname)) = context.request.call.attachment() else {
        return Vec::new();
    };
    let key = Key { container, ifname };
    let attachments = prepared.attachments.iter();
    let attachments = attachments.map(|(attachment, _)| attachment.clone());
    let (unknown, pod) = (String::new, prepared.pod.clone());
    let header = Header::new(
        boot_id(),
        &key,
        unknown(),
        unknown(),
        unknown(),
        pod,
        attachments.collect(),
    );
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
                !is_same_pod(&header, &holder.header) && !is_over(context, &header, holder, &what)
            });
            refusals.extend(holder.map(|holder| refused(&header, attachment, &what, &holder)));
        }
        if !is_held {
            free.push(attachment);
        }
    }
    refusals.extend(foresee_devices(context, &free).err());
    refusals
}

/// Of attachments whose devices nobody has: whether their plugins would find them.
fn foresee_devices(context: &Context<'_>, free: &[&Attachment]) -> Result<(), PlanError> {
    let devices = free.iter().filter_map(|it| it.device.as_ref()?.pci());
    let addresses: Vec<PciAddress> = devices.collect();
    let hardware = Hardware::of(&context.request.config);
    let states = (context.host.devices)(None)
        .and_then(|mut links| hardware.states(&addresses, links.as_mut()));
    match states {
        Ok(states) => hardware.are_at_home(free.iter().copied(), &states.devices),
        // An ADD would say so.
        Err(_) => Ok(()),
    }
}

/// Whether both are of one and the same pod, as far as its UID is known.
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
    if !is_over(context, header, &holder, what) {
        return Err(refused(header, attachment, what, &holder).into());
    }
    if let Err(cause) = settle(context, &holder.header.key()) {
        return Err(match (what, cause) {
            (Exclusive::Device(_), cause @ Failure::Owed(_)) => attachment
                .problem(Reason::Devices(format!(
                    "{what} is still that of an earlier sandbox, which cannot be detached: {cause}"
                )))
                .into(),
            (_, cause) => cause,
        });
    }
    match take()? {
        None => Ok(()),
        Some(holder) => Err(refused(header, attachment, what, &holder).into()),
    }
}

/// The sandbox that the previous release attached with the same address on the same segment: its
/// record names no segment, so the node is asked for it.
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
        let all = &holder.header.attachments;
        let mut places = (0..).zip(all);
        places.any(|(index, other)| {
            let earlier = all.get(..index).unwrap_or_default();
            Exclusive::of(other).contains(&unnamed) && hardware.segment(other, earlier) == *segment
        })
    }))
}

/// Whether the holder is a sandbox that nobody uses any more, its DEL being late.
fn is_over(context: &Context<'_>, header: &Header, holder: &Sandbox, what: &Exclusive) -> bool {
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

/// Detaches what an earlier sandbox still has. Its own DEL will find nothing left to do.
fn settle(context: &Context<'_>, key: &Key) -> Result<(), Failure> {
    let until = context.deadline.min(Instant::now() + BUSY);
    let _lock = Lock::take(&context.host.lock_dir, &key.container, until)?;
    match context.host.journal.find(key)? {
        Lookup::Found(sandbox) => detach::detach(context, *sandbox, Detachment::Earlier),
        Lookup::Absent | Lookup::CutOff | Lookup::Quarantined { .. } => Ok(()),
    }
}

fn refused(
    header: &Header,
    attachment: &Attachment,
    what: &Exclusive,
    holder: &Sandbox,
) -> PlanError {
    let named = holder.header.named_for(header.pod.as_ref());
    let whose = match &named {
        Some(name) => {
            let of_holder = holder.header.attachments.iter();
            let mut of_holder = of_holder.filter(|other| {
                let has = Exclusive::of(other);
                has.contains(what) || what.without_segment().is_some_and(|it| has.contains(&it))
            });
            let place = of_holder.next().map(|other| other.place().to_string());
            place.map_or_else(|| name.clone(), |place| format!("{name}, {place}"))
        }
        None => "a pod of another namespace".to_owned(),
    };
    attachment.problem(match what {
        Exclusive::Device(_) => Reason::Devices(format!(
            "{what} is in use by {whose}; wait until that one is deleted, or see with jackfield \
             doctor why it stays"
        )),
        Exclusive::Mac(..) | Exclusive::Guid(..) => {
            let segment = what.segment().map_or("this node", Segment::as_str);
            Reason::Duplicate(format!(
                "{what} is already that of {whose} on {segment}; ask for another"
            ))
        }
    })
}
