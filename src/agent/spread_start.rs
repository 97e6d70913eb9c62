//! The random wait before the agent's first requests.
//!
//! The agents of all nodes may start at the same time, for example after a power failure. Without
//! the wait, all agents would send their list requests to the API server in the same second.

use std::cell::Cell;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// The wait before the first requests. It ends early if a plugin asks about a pod.
#[derive(Debug)]
pub(super) struct SpreadStart {
    until: Instant,
    is_over: Cell<bool>,
    ended: Notify,
}

impl SpreadStart {
    /// Begins a wait. The length of the wait is random, and at most `longest`.
    pub(super) fn within(longest: Duration) -> SpreadStart {
        SpreadStart {
            until: Instant::now() + longest.mul_f32(fastrand::f32()),
            is_over: Cell::new(longest.is_zero()),
            ended: Notify::new(),
        }
    }

    /// Ends the wait.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        self.ended.notify_waiters();
    }

    /// Returns at the end of the wait.
    pub(super) async fn wait(&self) {
        if !self.is_over.get() {
            tokio::select! {
                () = self.ended.notified() => {}
                () = tokio::time::sleep_until(self.until) => self.is_over.set(true),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let in_time = async { tokio::time::timeout(Duration::from_secs(60), test).await };
        runtime.block_on(in_time).unwrap();
    }

    #[test]
    fn agents_that_start_at_once_wait_for_different_times() {
        let now = Instant::now();
        let waits = (0..200).map(|_| SpreadStart::within(LONG).until - now);
        let mut quarters = [0; 4];
        for wait in waits {
            quarters[(wait.as_secs() / 901) as usize] += 1;
        }
        assert!(
            quarters.iter().all(|it| (20..=90).contains(it)),
            "{quarters:?}"
        );
    }

    #[test]
    fn the_end_of_the_spread_start_wakes_every_waiter() {
        run(async {
            let start = SpreadStart {
                until: Instant::now() + LONG,
                ..SpreadStart::within(LONG)
            };
            let end = async {
                tokio::task::yield_now().await;
                start.end();
            };
            tokio::join!(start.wait(), start.wait(), end);
            start.wait().await;
            SpreadStart::within(Duration::ZERO).wait().await;
        });
    }
}
