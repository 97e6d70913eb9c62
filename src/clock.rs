//! The clocks, and sleeping. In unit tests, a simulated [machine](crate::machine) can replace them.

use std::time::{Duration, Instant, SystemTime};

use crate::machine::ask_machine;

/// Returns the time of the monotonic clock.
pub(crate) fn now() -> Instant {
    ask_machine!(now());
    Instant::now()
}

/// Returns the time of day. The administrator can set this clock back.
pub(crate) fn time_of_day() -> SystemTime {
    ask_machine!(time_of_day());
    SystemTime::now()
}

/// Blocks the calling thread for `pause`.
pub(crate) fn sleep(pause: Duration) {
    ask_machine!(sleep(pause));
    std::thread::sleep(pause);
}
