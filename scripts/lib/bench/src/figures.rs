//! What was measured.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::background::Requests;
use crate::contender::{Called, Verb};

/// The calls of one contender.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    add: Vec<Duration>,
    del: Vec<Duration>,
    start: Vec<Duration>,
    cpu: Vec<Duration>,
    agent: Vec<Duration>,
    /// What ADDs have asked of the API server, all together.
    pub(crate) requests_of_adds: Requests,
    /// The same for DELs.
    pub(crate) requests_of_dels: Requests,
}

impl Figures {
    /// Takes one call in.
    pub(crate) fn add(&mut self, verb: Verb, called: Called) {
        match verb {
            Verb::Add => {
                self.add.push(called.took);
                self.cpu.push(called.cpu);
            }
            Verb::Del => self.del.push(called.took),
            Verb::Version => self.start.push(called.took),
        }
    }

    /// Half of the calls took at most this many milliseconds.
    pub(crate) fn median(&self, verb: Verb) -> f64 {
        quantile(self.of(verb), 0.5)
    }

    /// Nine of ten calls took at most this many milliseconds.
    pub(crate) fn ninth_decile(&self, verb: Verb) -> f64 {
        quantile(self.of(verb), 0.9)
    }

    /// Processor time of an ADD with all its processes, the mean in milliseconds: the kernel
    /// counts it in steps, so single values mean little.
    pub(crate) fn cpu(&self) -> f64 {
        let sum: Duration = self.cpu.iter().sum();
        let calls = u32::try_from(self.cpu.len().max(1)).unwrap_or(u32::MAX);
        milliseconds(sum / calls)
    }

    /// Takes in what an agent did for an ADD beside the call.
    pub(crate) fn add_agent(&mut self, cpu: Duration) {
        self.agent.push(cpu);
    }

    /// The agent's processor time for an ADD, the mean in milliseconds.
    pub(crate) fn agent_cpu(&self) -> f64 {
        let sum: Duration = self.agent.iter().sum();
        let calls = u32::try_from(self.agent.len().max(1)).unwrap_or(u32::MAX);
        milliseconds(sum / calls)
    }

    /// How many ADDs were measured.
    pub(crate) fn calls(&self) -> usize {
        self.add.len()
    }

    fn of(&self, verb: Verb) -> &[Duration] {
        match verb {
            Verb::Add => &self.add,
            Verb::Del => &self.del,
            Verb::Version => &self.start,
        }
    }
}

/// A duration in milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn quantile(values: &[Duration], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a list of some hundred"
    )]
    let place = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(place).copied().map_or(f64::NAN, milliseconds)
}

/// Chance enough for an order (xorshift).
pub(crate) struct Random(u64);

impl Random {
    /// Another one in each run.
    pub(crate) fn seeded() -> Random {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seed = now.map_or(1, |now| u64::from(now.subsec_nanos()));
        Random(seed * 2 + 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The places of a list in random order.
    pub(crate) fn order(&mut self, length: usize) -> Vec<usize> {
        let mut places: Vec<(u64, usize)> = (0..length).map(|place| (self.next(), place)).collect();
        places.sort_unstable();
        places.into_iter().map(|(_, place)| place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_deciles_are_of_the_sorted_calls() {
        let mut figures = Figures::default();
        for took in [5, 1, 3, 2, 4] {
            let took = Duration::from_millis(took);
            figures.add(Verb::Add, Called { took, cpu: took });
        }
        assert_eq!(figures.median(Verb::Add), 3.0);
        assert_eq!(figures.ninth_decile(Verb::Add), 5.0);
        assert_eq!(figures.cpu(), 3.0);
        assert!(figures.median(Verb::Del).is_nan());
    }

    #[test]
    fn an_order_has_every_place_once() {
        let mut order = Random::seeded().order(20);
        order.sort_unstable();
        assert_eq!(order, (0..20).collect::<Vec<_>>());
    }
}
