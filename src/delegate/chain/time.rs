//! How the time of a chain is divided among its plugins.

use std::time::{Duration, Instant};

/// How long a chain, and each plugin in it, may take.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// When all of them have to be done.
    pub until: Instant,
    /// What one call may take (`deadlines.delegate`).
    pub per_call: Duration,
}

impl Time {
    /// The deadline of the next call, when a failure ends the chain.
    pub(super) fn next(self) -> Instant {
        self.until.min(Instant::now() + self.per_call)
    }

    /// The deadline of the next call when the others run in any case: one that hangs must leave
    /// each of them its share.
    pub(super) fn share(self, left: usize) -> Instant {
        let now = Instant::now();
        let share = self.until.saturating_duration_since(now)
            / u32::try_from(left.max(1)).unwrap_or(u32::MAX);
        now + share.min(self.per_call)
    }
}
