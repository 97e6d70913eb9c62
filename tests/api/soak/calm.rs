//! Whether the API server and the agent work.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long the agent takes to recover.
const RECOVERS_WITHIN: Duration = Duration::from_secs(5);

/// Since when nothing disturbs the API server and the agent. Pods that need them may fail otherwise.
pub(super) struct Calm(Mutex<Option<Instant>>);

impl Default for Calm {
    fn default() -> Calm {
        Calm(Mutex::new(Some(Instant::now() - RECOVERS_WITHIN)))
    }
}

impl Calm {
    /// A disturbance begins.
    pub(super) fn ends(&self) {
        *self.0.lock().unwrap() = None;
    }

    /// The disturbance is over.
    pub(super) fn begins(&self) {
        *self.0.lock().unwrap() = Some(Instant::now());
    }

    /// Whether everything has worked since `time`, and long enough before.
    pub(super) fn was_there_since(&self, time: Instant) -> bool {
        let calm = *self.0.lock().unwrap();
        calm.is_some_and(|since| since + RECOVERS_WITHIN <= time)
    }
}
