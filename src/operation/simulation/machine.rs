//! A simulated process of Jackfield, and the machine that it runs on.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::call::Job;
use super::disk;
use super::scheduler::TaskId;
use super::simulated::Simulation;
use super::work::Work;
use super::world::Orphan;
use crate::machine::{Machine, Operation, Verdict};

/// The maximum number of milliseconds by which a sleeping process wakes late.
const LATEST: u64 = 60;

/// The panic payload that unwinds the thread of a killed process.
pub(super) struct Killed;

/// A simulated process.
pub(super) struct Process {
    pub(super) sim: Arc<Simulation>,
    pub(super) task: TaskId,
    pub(super) pid: i32,
    pub(super) began: Duration,
    /// Whether the process is a GC.
    pub(super) is_gc: bool,
    /// The number of steps ([`Process::step`]) after which the process is killed; `None` if only a
    /// power loss kills it.
    kill_after: Option<u32>,
    steps: Cell<u32>,
    is_dead: Cell<bool>,
    /// The delegate that the process runs now.
    pub(super) delegate: RefCell<Option<Work>>,
    /// For each container, the time at which this process ran its first delegate for the container.
    pub(super) begun: RefCell<Vec<(String, Duration)>>,
    /// When the process took its first lock.
    pub(super) locked: Cell<Option<Duration>>,
    /// The locks of this process, which its delegates inherit.
    pub(super) locks: RefCell<Vec<(u64, File)>>,
}

impl Process {
    /// Starts a process in a task.
    pub(super) fn start(sim: &Arc<Simulation>, task: TaskId, job: &Job) -> Process {
        let is_calm = sim.world().is_calm;
        let is_killed = !is_calm && sim.happens(sim.conditions.kills, 100);
        let kill_after = is_killed.then(|| {
            let longest = [8, 40, 120, 400][sim.below(4) as usize];
            sim.below(longest)
        });
        let mut world = sim.world();
        let pid = i32::try_from(world.number() + 1000).unwrap();
        world.processes.insert(pid, task);
        world.figures.calls += 1;
        drop(world);
        Process {
            sim: Arc::clone(sim),
            task,
            pid,
            began: sim.scheduler.now(),
            is_gc: matches!(job, Job::Collect(_)),
            kill_after,
            steps: Cell::default(),
            is_dead: Cell::default(),
            delegate: RefCell::default(),
            begun: RefCell::default(),
            locked: Cell::default(),
            locks: RefCell::default(),
        }
    }

    /// Ends the process and closes its descriptors.
    pub(super) fn end(&self) {
        self.sim.world().processes.remove(&self.pid);
        self.locks.borrow_mut().clear();
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.get()
    }

    /// Whether this process is to be killed after some steps, unless it ends earlier. Its delegates
    /// may outlive it.
    pub(super) fn is_doomed(&self) -> bool {
        self.kill_after.is_some()
    }

    /// Begins a step: one operation of the process, for example on the disk or on a lock. Lets
    /// other processes run. Unwinds the thread if this process is killed at this step.
    pub(super) fn step(&self, what: u64) {
        if self.is_dead.get() {
            return;
        }
        self.sim.scheduler.step(self.task, what);
        self.survive();
    }

    pub(super) fn pause(&self, pause: Duration) {
        if self.is_dead.get() {
            return;
        }
        self.sim.scheduler.sleep(self.task, pause);
        self.survive();
    }

    fn survive(&self) {
        if self.sim.scheduler.is_killed(self.task) {
            self.sim
                .say(|| format!("[{}] dies in the power loss", self.pid));
            self.die();
        }
        self.steps.set(self.steps.get() + 1);
        if self.kill_after.is_some_and(|last| self.steps.get() > last) {
            self.kill();
        }
    }

    /// Kills this process. Its delegate may live on.
    pub(super) fn kill(&self) -> ! {
        self.sim.say(|| format!("[{}] is killed", self.pid));
        self.sim.world().figures.kills += 1;
        if let Some(work) = self.delegate.borrow_mut().take() {
            work.outlive(self);
        }
        self.die();
    }

    fn die(&self) -> ! {
        self.is_dead.set(true);
        resume_unwind(Box::new(Killed));
    }

    /// Starts an orphan: a delegate that outlives its killed process. The orphan holds the
    /// container's lock if the delegate has inherited the lock.
    pub(super) fn leave_orphan(&self, work: Work) {
        let lock = self.locks.borrow_mut().pop();
        let (lock, file) = lock.map_or((0, None), |(lock, file)| (lock, Some(file)));
        let sim = Arc::clone(&self.sim);
        let mut world = sim.world();
        let pid = i32::try_from(world.number() + 1000).unwrap();
        world.figures.orphans += 1;
        world.delegates.insert(work.container.clone(), pid);
        world.orphans.insert(pid, Orphan { lock, _file: file });
        drop(world);
        let sim = Arc::clone(&self.sim);
        sim.say(|| format!("[{pid}] is the orphan of [{}]: {work:?}", self.pid));
        let scheduler = Arc::clone(&sim.scheduler);
        scheduler.spawn(move |task| {
            let pause = sim.milliseconds([5, 100, 1500][sim.below(3) as usize]);
            sim.scheduler.sleep(task, pause);
            let mut world = sim.world();
            // An orphan that was killed in the meantime does nothing more.
            if world.orphans.remove(&pid).is_some() {
                world.delegates.remove(&work.container);
                let rest = work.rest();
                for part in rest {
                    let _ = work.apply(&mut world, *part);
                }
                drop(world);
                sim.say(|| format!("[{pid}] has finished"));
            }
        });
    }
}

impl Machine for Process {
    fn now(&self) -> Instant {
        self.sim.instant()
    }

    fn time_of_day(&self) -> SystemTime {
        self.sim.time_of_day()
    }

    /// Wakes the process late, as a busy machine does. Most sleeps are pauses between attempts to
    /// take a lock. Late waking reduces the number of these attempts, which are slow to simulate.
    fn sleep(&self, pause: Duration) {
        self.pause(pause + self.sim.milliseconds(LATEST));
    }

    fn boot_id(&self) -> String {
        format!("boot-{}", self.sim.world().boot)
    }

    fn disk(&self, operation: Operation<'_>) -> Verdict {
        disk::judge(self, operation)
    }

    fn netns(&self, path: &Path) -> Option<u64> {
        let name = path.file_name()?.to_str()?;
        Some(self.sim.world().netns.get(name)?.inode)
    }

    fn process_id(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    fn is_running(&self, pid: i32) -> bool {
        self.sim.world().processes.contains_key(&pid)
    }

    fn orphans(&self, file: &File) -> Vec<i32> {
        let lock = file.metadata().map_or(0, |it| it.ino());
        let world = self.sim.world();
        let orphans = world.orphans.iter().filter(|(_, it)| it.lock == lock);
        orphans.map(|(pid, _)| *pid).collect()
    }

    fn kill(&self, orphans: &[i32]) {
        let mut world = self.sim.world();
        for pid in orphans {
            if world.orphans.remove(pid).is_some() {
                world.delegates.retain(|_, running| running != pid);
                self.sim
                    .say(|| format!("[{}] kills the orphan [{pid}]", self.pid));
            }
        }
    }
}
