//! The alternate readiness method (NPWG 1.3 §6.1.2): a file that the cluster network makes when it
//! is ready.

use std::path::Path;
use std::time::{Duration, Instant};

use super::Failure;

/// How long attaching and detaching wait for it.
const WAIT: Duration = Duration::from_secs(45);
/// How often they look.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether it is there, where there is to be one.
///
/// # Errors
/// [`Failure::NotReady`].
pub fn is_there(indicator: Option<&Path>) -> Result<(), Failure> {
    match indicator {
        Some(file) if !file.exists() => Err(Failure::NotReady(file.to_owned())),
        _ => Ok(()),
    }
}

/// Waits for it.
///
/// # Errors
/// As [`is_there`], 45 seconds later or at the deadline.
pub(super) fn wait(indicator: Option<&Path>, deadline: Instant) -> Result<(), Failure> {
    let until = deadline.min(Instant::now() + WAIT);
    loop {
        let is_there = is_there(indicator);
        let left = until.saturating_duration_since(Instant::now());
        if is_there.is_ok() || left.is_zero() {
            return is_there;
        }
        std::thread::sleep(PAUSE.min(left));
    }
}
