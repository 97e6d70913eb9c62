//! What happens while pods come and go: STATUS and GC, changes of the clock, a full disk and a
//! power loss.

use std::sync::Arc;
use std::time::Duration;

use super::call::{Job, Outcome, run};
use super::invariants;
use super::scheduler::TaskId;
use super::simulated::Simulation;
use super::workload::{Life, TROUBLED};
use crate::cni::Verb;

/// The maximum number of STATUS calls that `finish` makes while detachments are owed. Also the
/// maximum number of pauses that `finish` makes while processes are running.
const MOST_ROUNDS: u32 = 60;
/// The maximum number of GCs that may fail after the faults have ended.
const MOST_COLLECTIONS: u32 = 5;

/// Runs the simulated node until all its pods have ended, and checks that nothing is left.
pub(super) fn run_world(sim: &Arc<Simulation>, task: TaskId) {
    let slots = sim.conditions.at_once.min(sim.conditions.pods);
    sim.world().lives = slots as usize;
    let mut tasks = Vec::new();
    for slot in 0..slots {
        let own = Arc::clone(sim);
        let pods = (slot..sim.conditions.pods).step_by(slots as usize).count();
        tasks.push(sim.scheduler.spawn(move |task| {
            let pause = own.milliseconds(1000);
            own.scheduler.sleep(task, pause);
            for _ in 0..pods {
                Life { sim: &own, task }.live();
            }
            own.world().lives -= 1;
        }));
    }
    if let Some(after) = sim.conditions.power_loss {
        let own = Arc::clone(sim);
        tasks.push(sim.scheduler.spawn(move |task| {
            own.scheduler.sleep(task, after);
            lose_power(&own);
        }));
    }
    keep_house(sim, task);
    for other in tasks {
        sim.scheduler.join(task, other);
    }
    finish(sim, task);
}

/// Calls STATUS and GC, changes the clock, and fills the disk, until all pods have ended.
fn keep_house(sim: &Arc<Simulation>, task: TaskId) {
    let refuses_from = sim.milliseconds(30_000);
    let refuses_until = refuses_from + sim.milliseconds(20_000);
    while sim.world().lives > 0 {
        let pause = sim.milliseconds(4000);
        sim.scheduler.sleep(task, pause);
        let now = sim.scheduler.now();
        let is_full = sim.conditions.has_full_disk && (refuses_from..refuses_until).contains(&now);
        {
            let mut world = sim.world();
            world.is_calm |= now > TROUBLED;
            world.disk_refuses = is_full;
        }
        if sim.conditions.clock_jumps && sim.happens(1, 10) {
            let by = i64::from(sim.below(4000)) - 2000;
            sim.world().clock_change += by;
        }
        status(sim, task);
        if sim.happens(sim.conditions.collections, 100) {
            collect(sim, task);
        }
    }
}

fn status(sim: &Arc<Simulation>, task: TaskId) -> Outcome {
    let job = Job::Verb {
        verb: Verb::Status,
        container: String::new(),
        netns: None,
    };
    run(sim, task, &job)
}

/// Calls GC with the sandboxes that are attached or are being attached.
fn collect(sim: &Arc<Simulation>, task: TaskId) -> Outcome {
    let kept = {
        let mut world = sim.world();
        world.is_listing = true;
        let kept = world.sandboxes.iter();
        let kept = kept.filter(|(_, it)| it.attached_since.is_some() || it.is_adding);
        kept.map(|(container, _)| container.clone()).collect()
    };
    let outcome = run(sim, task, &Job::Collect(kept));
    sim.world().is_listing = false;
    outcome
}

fn lose_power(sim: &Arc<Simulation>) {
    sim.say(|| "the power is lost".to_owned());
    let processes: Vec<TaskId> = {
        let mut world = sim.world();
        let place = Arc::clone(&sim.place);
        world.lose_power(&place);
        for view in world.sandboxes.values_mut() {
            view.attached_since = None;
        }
        std::mem::take(&mut world.processes).into_values().collect()
    };
    sim.scheduler.kill(&processes);
    sim.history.lock().unwrap().lose_power(sim);
}

/// Ends all faults, lets Jackfield retry the owed detachments, calls GC and checks that nothing is
/// left.
fn finish(sim: &Arc<Simulation>, task: TaskId) {
    {
        let mut world = sim.world();
        (world.is_calm, world.disk_refuses) = (true, false);
    }
    for _ in 0..MOST_ROUNDS {
        if invariants::is_settled(sim) {
            break;
        }
        sim.scheduler.sleep(task, Duration::from_secs(120));
        status(sim, task);
    }
    invariants::after_retries(sim);
    // The last STATUS may have started workers, and a killed call may have left a plugin that is
    // still running.
    for _ in 0..MOST_ROUNDS {
        let has_ended = {
            let world = sim.world();
            world.processes.is_empty() && world.orphans.is_empty()
        };
        if has_ended {
            break;
        }
        sim.scheduler.sleep(task, Duration::from_secs(10));
    }
    for round in 0.. {
        match collect(sim, task) {
            Outcome::Success => break,
            outcome if round == MOST_COLLECTIONS => {
                sim.world().breaks(format!("GC still fails: {outcome:?}"));
                break;
            }
            _ => sim.scheduler.sleep(task, Duration::from_secs(30)),
        }
    }
    invariants::at_the_end(sim);
}
