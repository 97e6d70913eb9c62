//! For tests: checks that an algorithm takes linear time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Runs `act` and panics if it takes ten seconds of CPU time or more. The caller must choose an
/// input for which a quadratic algorithm needs more than ten seconds, and a linear algorithm much
/// less.
#[track_caller]
pub(crate) fn linear<T>(act: impl FnOnce() -> T) -> T {
    let spent = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let begun = spent();
    let made = act();
    let took = spent() - begun;
    assert!(took < Duration::from_secs(10), "{took:?}");
    made
}
