//! Collects the repairs that failed, and decides which of them may succeed later. If a repair may
//! succeed later, the DEL fails, and its retry repeats the repair. Otherwise the journal lists the
//! device as unrestored.

use std::sync::Arc;

use nix::libc::{EAGAIN, EBUSY, EINTR, EIO, ENETDOWN, ENOBUFS, ENODEV, ENOMEM, ETIMEDOUT};

use super::{RestoreError, failure};
use crate::baseline::{Comparison, DeviceState, PodIdentity, Repair};
use crate::kernel::{KernelError, NetlinkError};
use crate::operation::devices::hardware::States;
use crate::operation::{Context, Failure, Note};

/// The error numbers after which a retry of a repair may succeed.
const PASSING: [i32; 9] = [
    EBUSY, EAGAIN, EINTR, ENOMEM, ENOBUFS, EIO, ETIMEDOUT, ENETDOWN, ENODEV,
];

/// The differences that remain after all repairs.
pub(super) struct Left<'a> {
    /// Failures that a retry may resolve.
    pub(super) owed: Vec<Failure>,
    /// Repairs that the kernel refused for good, repairs that the driver undid, and devices that
    /// now have another driver. Each entry consists of the device and a line for the user.
    wrong: Vec<(&'a DeviceState, String)>,
    /// Network identities (MAC, GUID or VLAN) that a device still has from the pod that used it
    /// last. Each entry consists of the device, the identity, and a line that says why Jackfield
    /// could not remove the identity. Jackfield attaches the device to the next pod only if that
    /// pod's request or the network's definition replaces the identity. A DEL ignores the list.
    pub(super) identities: Vec<(&'a DeviceState, PodIdentity, String)>,
}

impl<'a> Left<'a> {
    /// Collects the remaining differences after the last round of repairs. `owed` contains the
    /// failures to move interfaces back from the pod's network namespace. Adds a note for each
    /// device that is missing or was recreated.
    pub(super) fn of(
        context: &Context<'_>,
        owed: Vec<Failure>,
        compared: &[(&'a DeviceState, Comparison)],
        refused: &[Refused<'_>],
        now: &States,
    ) -> Left<'a> {
        let mut left = Left {
            owed,
            wrong: Vec::new(),
            identities: Vec::new(),
        };
        for (before, comparison) in compared {
            if let Some(remark) = comparison.replacement {
                context.note(Note::Device(format!("{before}: {remark}")));
            }
            let is = now.of(before.device);
            left.add(before, comparison, refused, is);
            let is_unknown =
                is.is_some_and(|is| is.function.is_none() && is.generation == before.generation);
            if before.function.is_some() && is_unknown {
                left.add_unknown(context, before, now);
            }
        }
        left
    }

    fn add(
        &mut self,
        before: &'a DeviceState,
        comparison: &Comparison,
        refused: &[Refused<'_>],
        is: Option<&DeviceState>,
    ) {
        let other_driver = comparison.other_driver.as_ref();
        self.wrong
            .extend(other_driver.map(|other| (before, other.to_string())));
        if comparison.lacks_interface {
            let name = before.netdev.as_ref().map_or("", |netdev| &netdev.name);
            let what = format!("interface {name}");
            let cause = RestoreError::NoNamespace;
            self.owed.push(failure(before, what, cause));
        }
        for repair in &comparison.repairs {
            let mut causes = refused.iter();
            let cause = causes.find(|it| it.device == before && it.repair == *repair);
            let line = match cause {
                Some(it) => format!("{repair} cannot be restored: {}", it.cause),
                None => format!("{repair} was set, but the driver did not keep it; set it by hand"),
            };
            if let Some(identity) = is.and_then(|is| repair.identity(before, is)) {
                self.identities.push((before, identity, line.clone()));
            }
            match cause {
                Some(it) if may_work_later(&it.cause) => {
                    let cause = Arc::clone(&it.cause).into();
                    self.owed.push(failure(before, repair, cause));
                }
                _ => self.wrong.push((before, line)),
            }
        }
    }

    /// Reports a VF if Jackfield read the VF's settings on the physical function before ADD, but
    /// cannot read them now. If reading them failed, adds an owed failure. If the physical function
    /// no longer reports the VF, adds a note.
    fn add_unknown(&mut self, context: &Context<'_>, before: &DeviceState, now: &States) {
        if let Some(error) = now.error_of(before.device) {
            let what = "its settings on the physical function";
            let cause = Arc::clone(error).into();
            self.owed.push(failure(before, what, cause));
            return;
        }
        context.note(Note::Device(format!(
            "{before}: the physical function no longer reports this VF, so the VF's settings on \
             the physical function are not restored"
        )));
    }

    /// Adds a note for each line in `wrong` about `device`. Returns these lines.
    pub(super) fn note_causes(&self, context: &Context<'_>, device: &DeviceState) -> Vec<String> {
        let wrong = self.wrong.iter();
        let wrong = wrong.filter(|(of, _)| of.device == device.device);
        let causes: Vec<String> = wrong.map(|(_, line)| line.clone()).collect();
        for line in &causes {
            context.note(Note::Device(format!("{device}: {line}")));
        }
        causes
    }
}

/// A repair that the kernel refused. The next rounds skip the repair until [`forgive`] drops the
/// refusal.
pub(super) struct Refused<'a> {
    pub(super) device: &'a DeviceState,
    pub(super) repair: Repair,
    pub(super) cause: Arc<KernelError>,
}

/// Returns the repairs that are still necessary and were not refused.
pub(super) fn open<'a>(
    left: &[(&'a DeviceState, Comparison)],
    refused: &[Refused<'a>],
) -> Vec<(&'a DeviceState, Repair)> {
    let all = left.iter().flat_map(|(before, comparison)| {
        let repairs = comparison.repairs.iter().cloned();
        repairs.map(|repair| (*before, repair))
    });
    let is_open = |(before, repair): &(&DeviceState, Repair)| {
        let is_it = |it: &Refused<'_>| it.device == *before && it.repair == *repair;
        !refused.iter().any(is_it)
    };
    all.filter(is_open).collect()
}

/// Drops the refusals of repairs that may succeed later. Returns whether it dropped any refusal.
pub(super) fn forgive(refused: &mut Vec<Refused<'_>>) -> bool {
    let before = refused.len();
    refused.retain(|it| !may_work_later(&it.cause));
    refused.len() < before
}

/// Whether a retry may succeed. If the kernel refused the change, the error number decides. After
/// any other error, a retry may succeed.
fn may_work_later(cause: &KernelError) -> bool {
    match cause {
        KernelError::Request {
            source: NetlinkError::Refused { source, .. },
            ..
        } => source
            .raw_os_error()
            .is_some_and(|number| PASSING.contains(&number)),
        _ => true,
    }
}
