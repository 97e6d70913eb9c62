//! Deterministic simulation of the CNI verbs. The code of the verbs runs unchanged on a simulated
//! machine with a simulated kernel, delegates, cluster, kubelet, clocks and disk. A world is one
//! run of such a machine. Each world has a number, the seed, which determines everything that
//! happens in the world. Up to 30 pods exist at a time. Their calls run in an order that depends
//! only on the seed. A call may be killed at any step.
//!
//! A rule is a property that every world must have. A [`Mutant`] is a defect in the journal or
//! the locks. To test the simulation, a test adds the defect to worlds until a world breaks a rule.
//!
//! ```text
//! # simulates a million pods, from seed 1; the build is optimised and has debug assertions
//! JACKFIELD_SIMULATION_PODS=1000000 JACKFIELD_SIMULATION_FIRST=1 \
//!     cargo test --profile fuzz --lib no_seed_breaks_a_rule -- --nocapture
//! # replays one world and prints every step
//! JACKFIELD_SIMULATION_SEED=7 cargo test --lib no_seed_breaks_a_rule -- --nocapture
//! ```

mod baton;
mod call;
mod cluster;
mod conditions;
mod delegates;
mod disk;
mod history;
mod housekeeping;
mod invariants;
mod kernel;
mod machine;
mod mutants;
mod place;
mod plugins;
mod pool;
mod records;
mod running_pod;
mod scheduler;
mod simulated;
mod virtual_function;
mod work;
mod workload;
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use conditions::Conditions;
use mutants::Mutant;
use place::Place;
use pool::Pool;
use scheduler::Scheduler;
use simulated::Simulation;
use world::Figures;

/// Runs one world after another in the same directories.
struct Runner {
    place: Arc<Place>,
    pool: Pool,
}

/// The outcome of one world.
struct Ran {
    figures: Figures,
    wrong: Vec<String>,
    trace: u64,
}

impl Runner {
    /// Makes a runner that runs its worlds on one processor. All threads of the runner stay on this
    /// processor, because switching to a thread on another processor is several times slower.
    fn on_processor(number: usize) -> Runner {
        let this = Pid::from_raw(0);
        let allowed = sched_getaffinity(this).unwrap();
        let allowed = (0..CpuSet::count()).filter(|it| allowed.is_set(*it).unwrap_or(false));
        let allowed: Vec<usize> = allowed.collect();
        let mut only = CpuSet::new();
        only.set(allowed[number % allowed.len()]).unwrap();
        sched_setaffinity(this, &only).unwrap();
        Runner {
            place: Arc::new(Place::new()),
            pool: Pool::default(),
        }
    }

    fn run(&self, seed: u64, mutant: Option<Mutant>, is_verbose: bool) -> Ran {
        self.run_in(seed, mutant, mutant, is_verbose)
    }

    /// Runs a world. If `mutant` is given, the world has this defect. If `favoured` is given, the
    /// world has conditions under which `favoured` is more likely to break a rule
    /// ([`Mutant::favour`]). To show that these conditions alone break no rule, a test passes
    /// `None` as `mutant`.
    fn run_in(
        &self,
        seed: u64,
        favoured: Option<Mutant>,
        mutant: Option<Mutant>,
        is_verbose: bool,
    ) -> Ran {
        self.place.clear();
        let conditions = Conditions::of(&mut fastrand::Rng::with_seed(seed));
        let conditions = match favoured {
            Some(mutant) => mutant.favour(conditions),
            None => conditions,
        };
        if is_verbose {
            println!("seed {seed}: {conditions:?}");
        }
        let scheduler = Scheduler::new(self.pool.clone(), seed, &conditions);
        let scheduler = Arc::new(scheduler);
        let place = Arc::clone(&self.place);
        let sim = Simulation::new(
            Arc::clone(&scheduler),
            place,
            conditions,
            mutant,
            is_verbose,
        );
        let sim = Arc::new(sim);
        let own = Arc::clone(&sim);
        scheduler.spawn(move |task| housekeeping::run_world(&own, task));
        scheduler.run();
        let (trace, steps) = scheduler.trace();
        let mut world = sim.world();
        let mut figures = world.figures;
        (figures.worlds, figures.steps) = (1, steps);
        Ran {
            figures,
            wrong: std::mem::take(&mut world.wrong),
            trace,
        }
    }
}

/// The number of pods between two progress lines.
const PROGRESS: u64 = 20_000;

/// Runs worlds on all processors until `is_enough` accepts the number of pods so far, or until a
/// world breaks a rule. Returns the figures. If a world broke a rule, also returns its seed and the
/// rules that it broke. If several worlds broke rules, chooses the world with the lowest seed.
fn run_worlds(
    first: u64,
    mutant: Option<Mutant>,
    is_enough: impl Fn(u64) -> bool + Sync,
) -> (Figures, Option<(u64, Vec<String>)>) {
    let next = AtomicU64::new(first);
    let pods = AtomicU64::new(0);
    let is_over = AtomicU64::new(u64::MAX);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = |number: usize| {
        let runner = Runner::on_processor(number);
        let (mut figures, mut found) = (Figures::default(), None);
        while !is_enough(pods.load(Ordering::Relaxed)) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > is_over.load(Ordering::Relaxed) {
                break;
            }
            let ran = runner.run(seed, mutant, false);
            let before = pods.fetch_add(ran.figures.pods, Ordering::Relaxed);
            let now = before + ran.figures.pods;
            if before / PROGRESS != now / PROGRESS {
                println!("{now} pods, seeds {first} to {seed}");
            }
            figures.add(&ran.figures);
            if !ran.wrong.is_empty() {
                is_over.fetch_min(seed, Ordering::Relaxed);
                found = Some((seed, ran.wrong));
                break;
            }
        }
        (figures, found)
    };
    let work = &work;
    std::thread::scope(|scope| {
        let running = (0..threads).map(|number| scope.spawn(move || work(number)));
        let running: Vec<_> = running.collect();
        let mut all = Figures::default();
        let mut found: Option<(u64, Vec<String>)> = None;
        for one in running {
            let (figures, wrong) = one.join().unwrap();
            all.add(&figures);
            let is_first = |(seed, _): &(u64, _)| found.as_ref().is_none_or(|it| seed < &it.0);
            if let Some(wrong) = wrong.filter(is_first) {
                found = Some(wrong);
            }
        }
        (all, found)
    })
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}

fn report(seed: u64, wrong: &[String]) -> String {
    format!(
        "seed {seed}: {}\nreplay: JACKFIELD_SIMULATION_SEED={seed} cargo test --lib no_seed_breaks_a_rule -- --nocapture",
        wrong.join("\n")
    )
}

#[test]
fn no_seed_breaks_a_rule() {
    if let Some(seed) = variable("JACKFIELD_SIMULATION_SEED") {
        let ran = Runner::on_processor(0).run(seed, None, true);
        assert!(ran.wrong.is_empty(), "{}", report(seed, &ran.wrong));
        return;
    }
    let wanted = variable("JACKFIELD_SIMULATION_PODS");
    let first = variable("JACKFIELD_SIMULATION_FIRST").unwrap_or(1);
    let begun = Instant::now();
    let is_enough = |pods: u64| match wanted {
        Some(wanted) => pods >= wanted,
        None => begun.elapsed() > Duration::from_secs(30),
    };
    let (figures, found) = run_worlds(first, None, is_enough);
    let took = begun.elapsed().as_secs_f64();
    let Figures {
        pods,
        worlds,
        calls,
        kills,
        orphans,
        power_losses,
        disk_faults,
        delegate_faults,
        steps,
        ..
    } = figures;
    println!(
        "{pods} pods in {worlds} worlds, first seed {first}, {took:.1} s ({:.0} pods/s): {calls} calls, {steps} steps, \
         {kills} kills, {orphans} orphans, {power_losses} power losses, {disk_faults} disk faults, \
         {delegate_faults} delegate faults",
        pods as f64 / took
    );
    if let Some((seed, wrong)) = found {
        panic!("{}", report(seed, &wrong));
    }
}

#[test]
fn two_runs_of_a_seed_are_identical() {
    let runner = Runner::on_processor(0);
    for seed in 1..=15 {
        let (one, other) = (runner.run(seed, None, false), runner.run(seed, None, false));
        assert_eq!(one.trace, other.trace, "seed {seed}");
    }
}

/// The simulation must detect each mutant within this number of worlds.
const FOUND_WITHIN: u64 = 150;

#[test]
fn the_simulation_finds_each_deliberately_broken_rule() {
    let next = AtomicUsize::new(0);
    let work = |number: usize| {
        let runner = Runner::on_processor(number);
        let mut missed = Vec::new();
        while let Some(&mutant) = Mutant::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut seeds = 1..=FOUND_WITHIN;
            let found = seeds.find_map(|seed| {
                let wrong = runner.run(seed, Some(mutant), false).wrong;
                Some((seed, wrong.into_iter().next()?))
            });
            match found {
                Some((seed, rule)) => {
                    println!("{mutant:?}: seed {seed}: {rule}");
                    let intact = runner.run_in(seed, Some(mutant), None, false).wrong;
                    assert!(intact.is_empty(), "{mutant:?}: seed {seed}: {intact:?}");
                }
                None => missed.push(mutant),
            }
        }
        missed
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let missed: Vec<Mutant> = std::thread::scope(|scope| {
        let work = &work;
        let running = (0..threads).map(|number| scope.spawn(move || work(number)));
        let running: Vec<_> = running.collect();
        let missed = running.into_iter().map(|one| one.join().unwrap());
        missed.flatten().collect()
    });
    assert!(missed.is_empty(), "the simulation does not find {missed:?}");
}
