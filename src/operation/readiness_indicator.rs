//! The alternate readiness method (NPWG 1.3 §6.1.2): a file that the cluster network creates when
//! it is ready.

use std::path::Path;
use std::time::Duration;

use super::{Context, Failure};

use crate::clock;

/// The longest time that ADD and DEL wait for the file.
const WAIT: Duration = Duration::from_secs(45);
/// The pause between two checks for the file.
const PAUSE: Duration = Duration::from_millis(100);

/// Checks that the file exists, if one is configured.
///
/// # Errors
/// [`Failure::NotReady`] if the file is missing.
pub fn is_there(indicator: Option<&Path>) -> Result<(), Failure> {
    match indicator {
        Some(file) if !file.exists() => Err(Failure::NotReady(file.to_owned())),
        _ => Ok(()),
    }
}

/// Waits for the file.
///
/// # Errors
/// [`Failure::NotReady`] if the file is still missing after 45 seconds or at the deadline.
pub(super) fn wait(context: &Context<'_>) -> Result<(), Failure> {
    let until = context.deadline.min(clock::now() + WAIT);
    loop {
        let is_there = is_there(context.request.config.readiness_indicator.as_deref());
        let left = until.saturating_duration_since(clock::now());
        if is_there.is_ok() || left.is_zero() {
            return is_there;
        }
        clock::sleep(PAUSE.min(left));
    }
}
