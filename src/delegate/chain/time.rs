//! Divides the time of a chain among its plugins.

use std::time::{Duration, Instant};

/// How long a chain and each call in it may take.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// The deadline of the chain.
    pub until: Instant,
    /// The time limit of one call: `deadlines.delegate`.
    pub per_call: Duration,
}

impl Time {
    /// The deadline of the next call, if a failure ends the chain.
    pub(super) fn next(self) -> Instant {
        self.until.min(Instant::now() + self.per_call)
    }

    /// The deadline of the next of `plugins`, if all of them run after a failure. A plugin that hangs
    /// leaves each of the others its share of the time.
    pub(super) fn share(self, plugins: usize) -> Instant {
        let now = Instant::now();
        let share = self.until.saturating_duration_since(now)
            / u32::try_from(plugins.max(1)).unwrap_or(u32::MAX);
        now + share.min(self.per_call)
    }
}
