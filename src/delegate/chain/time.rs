//! Divides the time of a chain among its plugins.

use std::time::{Duration, Instant};

use crate::clock;

/// The time limits of a chain and of each call in the chain.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// The deadline of the chain.
    pub until: Instant,
    /// The time limit of one call: `deadlines.delegate`.
    pub per_call: Duration,
}

impl Time {
    /// Returns the deadline of the next call, for a verb that stops at the first failure: ADD,
    /// CHECK or STATUS.
    pub(super) fn next(self) -> Instant {
        self.until.min(clock::now() + self.per_call)
    }

    /// Returns the deadline of the next call, for a verb that continues after a failure: DEL or
    /// GC. `plugins` is the number of remaining plugins, including the next one. These plugins
    /// share the remaining time equally, so a plugin that hangs leaves time for the others.
    pub(super) fn share(self, plugins: usize) -> Instant {
        let now = clock::now();
        let share = self.until.saturating_duration_since(now)
            / u32::try_from(plugins.max(1)).unwrap_or(u32::MAX);
        now + share.min(self.per_call)
    }
}
