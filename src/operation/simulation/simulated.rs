//! One run of the simulated machine: its scheduler, its conditions and its node.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::conditions::Conditions;
use super::history::History;
use super::mutants::Mutant;
use super::place::Place;
use super::scheduler::Scheduler;
use super::world::World;

/// The time of day at which each run begins.
const BEGINNING: Duration = Duration::from_secs(1_750_000_000);

thread_local! {
    /// The monotonic time at which every simulation on this thread begins. The value has no
    /// influence on a simulation, because Jackfield only compares such times with each other.
    static ORIGIN: Cell<Option<Instant>> = const { Cell::new(None) };
}

pub(super) struct Simulation {
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) place: Arc<Place>,
    pub(super) conditions: Conditions,
    /// The defect that this run has on purpose.
    pub(super) mutant: Option<Mutant>,
    pub(super) is_verbose: bool,
    pub(super) origin: Instant,
    /// The state of the node.
    world: Mutex<World>,
    pub(super) history: Mutex<History>,
}

impl Simulation {
    pub(super) fn new(
        scheduler: Arc<Scheduler>,
        place: Arc<Place>,
        conditions: Conditions,
        mutant: Option<Mutant>,
        is_verbose: bool,
    ) -> Simulation {
        let origin = ORIGIN.get().unwrap_or_else(Instant::now);
        ORIGIN.set(Some(origin));
        Simulation {
            scheduler,
            world: Mutex::new(World::new(&place)),
            history: Mutex::new(History::new(conditions.power_loss.is_some())),
            place,
            conditions,
            mutant,
            is_verbose,
            origin,
        }
    }

    /// Locks the state of the node. The caller must drop the lock before the scheduler runs another
    /// task. Otherwise a task that needs the lock would wait forever.
    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    pub(super) fn instant(&self) -> Instant {
        self.origin + self.scheduler.now()
    }

    pub(super) fn time_of_day(&self) -> SystemTime {
        let time = UNIX_EPOCH + BEGINNING + self.scheduler.now();
        let change = self.world().clock_change;
        let by = Duration::from_secs(change.unsigned_abs());
        if change < 0 { time - by } else { time + by }
    }

    /// Draws whether an event with the probability `chance` / `of` happens.
    pub(super) fn happens(&self, chance: u32, of: u32) -> bool {
        chance > 0 && self.scheduler.draw(|rng| rng.u32(0..of) < chance)
    }

    /// Draws a number below `end`.
    pub(super) fn below(&self, end: u32) -> u32 {
        self.scheduler.draw(|rng| rng.u32(0..end))
    }

    pub(super) fn milliseconds(&self, most: u64) -> Duration {
        Duration::from_micros(self.scheduler.draw(|rng| rng.u64(1..=most * 1000)))
    }

    /// Prints a line if `is_verbose` is set.
    pub(super) fn say(&self, line: impl FnOnce() -> String) {
        if self.is_verbose {
            let now = self.scheduler.now();
            println!("{:>12.6} {}", now.as_secs_f64(), line());
        }
    }
}
