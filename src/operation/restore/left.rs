//! What stays otherwise than it was: it is said, or owed.

use super::failure;
use super::refused::{Refused, may_work_later};
use crate::baseline::{Comparison, DeviceState};
use crate::operation::hardware::States;
use crate::operation::{Context, Failure};

/// Says what cannot be put back; what may work later comes back, to be owed.
pub(super) fn tell(
    context: &Context<'_>,
    left: &[(&DeviceState, Comparison)],
    refused: &[Refused<'_>],
) -> Vec<Failure> {
    let mut owed = Vec::new();
    for (before, comparison) in left {
        for remark in &comparison.remarks {
            context.note(&format!("{before}: {remark}"));
        }
        if comparison.lacks_interface {
            let name = before.netdev.as_ref().map_or("", |netdev| &netdev.name);
            owed.push(Failure::Restoring {
                device: before.to_string(),
                what: format!("interface {name}"),
                cause: "it is in no network namespace that is known; see jackfield doctor"
                    .to_owned(),
            });
        }
        for repair in &comparison.repairs {
            let cause = refused
                .iter()
                .find(|it| it.device == *before && it.repair == *repair);
            match cause {
                Some(it) if may_work_later(&it.cause) => {
                    owed.push(failure(before, &repair.to_string(), &it.cause));
                }
                Some(it) => context.note(&format!(
                    "{before}: {repair} cannot be put back: {}",
                    it.cause
                )),
                None => context.note(&format!(
                    "{before}: {repair} was put back, and its driver changed it again; set it \
                     by hand"
                )),
            }
        }
    }
    owed
}

/// Likewise of settings on a physical function that could be read before and cannot now.
pub(super) fn tell_unknown(
    context: &Context<'_>,
    before: &[&DeviceState],
    now: &States,
) -> Vec<Failure> {
    let mut owed = Vec::new();
    for before in before {
        let is = now.devices.iter().find(|is| is.device == before.device);
        let is_unknown =
            is.is_some_and(|is| is.function.is_none() && is.generation == before.generation);
        if before.function.is_none() || !is_unknown {
            continue;
        }
        match now.remarks.first() {
            Some(cause) => owed.push(Failure::Restoring {
                device: before.to_string(),
                what: "what its physical function has set".to_owned(),
                cause: cause.clone(),
            }),
            None => context.note(&format!(
                "{before}: its physical function says nothing of it any more: nothing is put \
                 back there"
            )),
        }
    }
    owed
}
