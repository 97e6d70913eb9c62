//! The clocks, and sleeping. In unit tests, a [machine](crate::machine) can replace them.

use std::time::{Duration, Instant, SystemTime};

/// Returns the time of the monotonic clock.
pub(crate) fn now() -> Instant {
    #[cfg(test)]
    if let Some(machine) = crate::machine::current() {
        return machine.now();
    }
    Instant::now()
}

/// Returns the time of day. The administrator can set this clock back.
pub(crate) fn time_of_day() -> SystemTime {
    #[cfg(test)]
    if let Some(machine) = crate::machine::current() {
        return machine.time_of_day();
    }
    SystemTime::now()
}

/// Blocks the calling thread for `pause`.
pub(crate) fn sleep(pause: Duration) {
    #[cfg(test)]
    if let Some(machine) = crate::machine::current() {
        return machine.sleep(pause);
    }
    std::thread::sleep(pause);
}
