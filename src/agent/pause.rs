//! Back-off after failures.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// The first pause after a failure.
const FIRST: Duration = Duration::from_secs(1);

/// The pause after a failure.
#[derive(Debug, Default)]
pub(super) struct Pause {
    state: Cell<Option<(Instant, Duration)>>,
    /// The end of a pause that the API server asked for with `Retry-After`.
    asked_until: Cell<Option<Instant>>,
}

impl Pause {
    pub(super) fn is_set(&self) -> bool {
        self.state.get().is_some()
    }

    /// Whether the pause still lasts.
    pub(super) fn is_on(&self) -> bool {
        !self.left().is_zero()
    }

    pub(super) fn left(&self) -> Duration {
        self.state.get().map_or(Duration::ZERO, |(until, _)| {
            until.saturating_duration_since(Instant::now())
        })
    }

    pub(super) fn clear(&self) {
        self.state.set(None);
        self.asked_until.set(None);
    }

    /// Ends the pause and returns `true`. If the API server asked for the pause and the pause still
    /// lasts, changes nothing and returns `false`.
    pub(super) fn cut_short(&self) -> bool {
        let is_asked = self.asked_until.get().is_some_and(|it| it > Instant::now());
        if !is_asked {
            self.clear();
        }
        !is_asked
    }

    /// Begins the next pause and returns its length. If the previous pause is over, the new pause
    /// is twice as long, up to `longest`. If the previous pause still lasts, the new pause has the
    /// same length. After [`Pause::clear`], the next pause has the length [`FIRST`]. Every pause
    /// lasts at least `asked`, the time that the API server asks for. Adds a random time of up to a
    /// quarter of the pause, so that the nodes do not all retry at the same moment after an outage
    /// of the API server.
    pub(super) fn lengthen(&self, longest: Duration, asked: Option<Duration>) -> Duration {
        let pause = match self.state.get() {
            None => FIRST,
            Some((_, pause)) if self.is_on() => pause,
            Some((_, pause)) => pause.saturating_mul(2).min(longest),
        };
        let scatter = RandomState::new().hash_one(()) as u8;
        let shortest = pause.max(asked.unwrap_or_default());
        let whole = shortest + shortest.mul_f32(f32::from(scatter) / 1024.0);
        let until = Instant::now() + whole;
        self.state.set(Some((until, pause)));
        self.asked_until.set(asked.map(|_| until));
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(60);

    #[test]
    fn a_failure_after_a_pause_doubles_the_pause_up_to_a_limit() {
        let pause = Pause::default();
        assert!(!pause.is_on() && !pause.is_set());
        let first = pause.lengthen(LONGEST, None);
        assert!(first >= FIRST && first <= FIRST * 5 / 4, "{first:?}");
        assert!(pause.lengthen(LONGEST, None) < FIRST * 2);
        for _ in 0..20 {
            let (_, base) = pause.state.get().unwrap();
            pause
                .state
                .set(Some((Instant::now() - Duration::from_secs(1), base)));
            pause.lengthen(LONGEST, None);
        }
        assert!(pause.left() <= LONGEST * 5 / 4);
        let least = Duration::from_secs(600);
        let scattered = (0..20).map(|_| pause.lengthen(LONGEST, Some(least)));
        let scattered: Vec<Duration> = scattered.collect();
        assert!(
            scattered
                .iter()
                .all(|it| *it >= least && *it <= least * 5 / 4)
        );
        assert!(
            scattered.iter().any(|it| *it > least + LONGEST / 4),
            "{scattered:?}"
        );
        pause.clear();
        assert!(!pause.is_on());
    }

    #[test]
    fn a_pause_that_the_api_server_asks_for_is_not_cut_short() {
        let pause = Pause::default();
        pause.lengthen(LONGEST, None);
        assert!(pause.cut_short() && !pause.is_on());
        pause.lengthen(LONGEST, Some(LONGEST));
        assert!(!pause.cut_short() && pause.is_on());
        pause.lengthen(LONGEST, None);
        assert!(pause.cut_short() && !pause.is_on());
    }
}
