//! What a computation costs, for tests that hold it to be linear.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Runs `act` and fails when it takes ten seconds of this thread's processor time: many times what
/// a linear algorithm needs for the largest input, and a fraction of what a quadratic one needs.
#[track_caller]
pub(crate) fn linear<T>(act: impl FnOnce() -> T) -> T {
    let spent = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let begun = spent();
    let made = act();
    let took = spent() - begun;
    assert!(took < Duration::from_secs(10), "{took:?}");
    made
}
