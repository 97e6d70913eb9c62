//! What could not be restored: some of it is owed, the rest is recorded with the device.

use std::sync::Arc;

use super::refused::{Refused, may_work_later};
use super::{RestoreError, failure};
use crate::baseline::{Comparison, DeviceState, PodIdentity};
use crate::operation::devices::hardware::States;
use crate::operation::{Context, Failure, Note};

/// The differences that remain after all repairs.
pub(super) struct Left<'a> {
    /// Failures that may work later.
    pub(super) owed: Vec<Failure>,
    /// Failures that will not, with their device, one line each.
    wrong: Vec<(&'a DeviceState, String)>,
    /// Leftovers by which others would mistake the next pod for the previous one, and why they
    /// stay.
    pub(super) identities: Vec<(&'a DeviceState, PodIdentity, String)>,
    /// Remarks for the log only.
    remarks: Vec<String>,
}

impl<'a> Left<'a> {
    /// Collects what is left once no repair is open.
    pub(super) fn of(
        compared: &[(&'a DeviceState, Comparison)],
        refused: &[Refused<'_>],
        now: &States,
    ) -> Left<'a> {
        let mut left = Left {
            owed: Vec::new(),
            wrong: Vec::new(),
            identities: Vec::new(),
            remarks: Vec::new(),
        };
        for (before, comparison) in compared {
            left.add(before, comparison, refused, now);
        }
        left
    }

    fn add(
        &mut self,
        before: &'a DeviceState,
        comparison: &Comparison,
        refused: &[Refused<'_>],
        now: &States,
    ) {
        let another = comparison.replacement;
        let remark = another.map(|remark| format!("{before}: {remark}"));
        self.remarks.extend(remark);
        let remarks = comparison.remarks.iter().map(ToString::to_string);
        self.wrong.extend(remarks.map(|remark| (before, remark)));
        if comparison.lacks_interface {
            let name = before.netdev.as_ref().map_or("", |netdev| &netdev.name);
            let what = format!("interface {name}");
            self.owed
                .push(failure(before, what, RestoreError::NoNamespace));
        }
        let is = now.devices.iter().find(|is| is.device == before.device);
        for repair in &comparison.repairs {
            let mut causes = refused.iter();
            let cause = causes.find(|it| it.device == before && it.repair == *repair);
            let line = match cause {
                Some(it) => format!("{repair} cannot be restored: {}", it.cause),
                None => format!(
                    "{repair} was restored, but the driver changed it again; set it by hand"
                ),
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

    /// Reports the settings on a physical function that could be read before ADD and cannot be read
    /// now.
    pub(super) fn tell_unknown(
        &mut self,
        context: &Context<'_>,
        before: &[&DeviceState],
        now: &States,
    ) {
        for before in before {
            let is = now.devices.iter().find(|is| is.device == before.device);
            let is_unknown =
                is.is_some_and(|is| is.function.is_none() && is.generation == before.generation);
            if before.function.is_none() || !is_unknown {
                continue;
            }
            match now.unreadable.first() {
                Some(error) => {
                    let what = "its settings on the physical function";
                    self.owed
                        .push(failure(before, what, Arc::clone(error).into()));
                }
                None => self.remarks.push(format!(
                    "{before}: its physical function no longer reports it, so its settings there \
                     are not restored"
                )),
            }
        }
        let remarks = std::mem::take(&mut self.remarks).into_iter();
        remarks.for_each(|remark| context.note(Note::Uncompared(remark)));
    }

    /// The lines about settings of `device` that cannot be restored.
    pub(super) fn lines_on(&self, device: &DeviceState) -> impl Iterator<Item = &str> {
        let of_device = move |it: &&(&DeviceState, String)| it.0.device == device.device;
        let wrong = self.wrong.iter().filter(of_device);
        wrong.map(|(_, line)| line.as_str())
    }
}
