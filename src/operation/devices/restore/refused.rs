//! Refused repairs, and which of them are worth another try.

use std::sync::Arc;

use nix::libc;

use crate::baseline::{Comparison, DeviceState, Repair};
use crate::kernel::{KernelError, NetlinkError};

/// A repair that was refused, kept so that it is not tried again in the same run.
pub(super) struct Refused<'a> {
    pub(super) device: &'a DeviceState,
    pub(super) repair: Repair,
    pub(super) cause: Arc<KernelError>,
}

/// The repairs that are still open and were not refused.
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

/// Drops refusals worth retrying and returns whether it dropped any.
pub(super) fn forgive(refused: &mut Vec<Refused<'_>>) -> bool {
    let before = refused.len();
    refused.retain(|it| !may_work_later(&it.cause));
    refused.len() < before
}

/// Whether a retry can help: not if the kernel refuses the change for good.
pub(super) fn may_work_later(cause: &KernelError) -> bool {
    match cause {
        KernelError::Request {
            source: NetlinkError::Refused { source, .. },
            ..
        } => matches!(
            source.raw_os_error(),
            Some(
                libc::EBUSY
                    | libc::EAGAIN
                    | libc::EINTR
                    | libc::ENOMEM
                    | libc::ENOBUFS
                    | libc::EIO
                    | libc::ETIMEDOUT
                    | libc::ENETDOWN
                    | libc::ENODEV
            )
        ),
        _ => true,
    }
}
