//! Runs the tasks of a simulation, one at a time, in an order that depends only on the seed.
//!
//! A task is an activity with its own thread. For example, a task simulates several pods, one pod
//! after another. A simulated process of Jackfield runs in a task. No task runs two processes at
//! the same time.
//!
//! The baton is the permission to run. Only one task has the baton at a time. At each step, such as
//! an operation on the disk, the task with the baton lets the scheduler choose the next task. Time
//! is virtual: it passes a little with each step. If no task can run, the time jumps to the moment
//! at which the first task wakes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::baton::Baton;
use super::conditions::Conditions;
use super::pool::Pool;

/// The number of a task.
pub(super) type TaskId = usize;

pub(super) struct Scheduler {
    state: Mutex<State>,
    pool: Pool,
    finished: Condvar,
}

struct State {
    rng: fastrand::Rng,
    now: Duration,
    tasks: Vec<Task>,
    /// The tasks that can run, except for the running one.
    ready: Vec<TaskId>,
    /// When each sleeping task wakes. Also contains entries of sleeps that have ended early.
    /// `first_wake` drops such entries.
    sleeping: BinaryHeap<Reverse<(Duration, u64, TaskId)>>,
    sleeps: u64,
    /// The tasks that [`Scheduler::kill`] has marked and that have not run since. They run before
    /// all other tasks, so that their processes end at once.
    dying: Vec<TaskId>,
    alive: usize,
    /// The chance, in percent, that the running task simply continues after a step. Otherwise the
    /// scheduler draws the next task at random, and may draw the running task again.
    steadiness: u32,
    /// The virtual time that one step takes.
    step: Duration,
    trace: u64,
    steps: u64,
}

struct Task {
    baton: Arc<Baton>,
    status: Status,
    is_killed: bool,
    waiting: Vec<TaskId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    Sleeping(u64),
    Waiting,
    Done,
}

impl State {
    /// Chooses the next task. `current` is the running task if it can continue.
    fn next(&mut self, current: Option<TaskId>) -> Option<TaskId> {
        if let Some(dying) = self.dying.pop() {
            self.ready.extend(current);
            self.ready.retain(|id| *id != dying);
            return Some(dying);
        }
        self.wake();
        if let Some(current) = current {
            if self.ready.is_empty() || self.rng.u32(0..100) < self.steadiness {
                return Some(current);
            }
            let at = self.rng.usize(0..=self.ready.len());
            if at == self.ready.len() {
                return Some(current);
            }
            return Some(std::mem::replace(&mut self.ready[at], current));
        }
        if self.ready.is_empty() {
            self.now = self.first_wake()?.max(self.now);
            self.wake();
        }
        let at = self.rng.usize(0..self.ready.len());
        Some(self.ready.swap_remove(at))
    }

    /// The time at which the first sleeping task wakes.
    fn first_wake(&mut self) -> Option<Duration> {
        loop {
            let Reverse((until, sleep, id)) = *self.sleeping.peek()?;
            if self.tasks[id].status == Status::Sleeping(sleep) {
                return Some(until);
            }
            self.sleeping.pop();
        }
    }

    /// Makes ready every task that has slept long enough.
    fn wake(&mut self) {
        while self.first_wake().is_some_and(|until| until <= self.now) {
            if let Some(Reverse((_, _, id))) = self.sleeping.pop() {
                self.make_ready(id);
            }
        }
    }

    fn make_ready(&mut self, id: TaskId) {
        self.tasks[id].status = Status::Ready;
        self.ready.push(id);
    }

    fn note(&mut self, number: u64) {
        self.trace = (self.trace ^ number).wrapping_mul(0x0100_0000_01b3);
        self.trace ^= self.trace >> 29;
    }
}

impl Scheduler {
    pub(super) fn new(pool: Pool, seed: u64, conditions: &Conditions) -> Scheduler {
        Scheduler {
            state: Mutex::new(State {
                rng: fastrand::Rng::with_seed(seed),
                now: Duration::ZERO,
                tasks: Vec::new(),
                ready: Vec::new(),
                sleeping: BinaryHeap::new(),
                sleeps: 0,
                dying: Vec::new(),
                alive: 0,
                steadiness: conditions.steadiness,
                step: conditions.step,
                trace: seed,
                steps: 0,
            }),
            pool,
            finished: Condvar::new(),
        }
    }

    /// Adds a task. It runs when the scheduler chooses it.
    pub(super) fn spawn(self: &Arc<Self>, act: impl FnOnce(TaskId) + Send + 'static) -> TaskId {
        let baton = Arc::<Baton>::default();
        let mut state = self.state.lock().unwrap();
        let id = state.tasks.len();
        state.alive += 1;
        state.tasks.push(Task {
            baton: Arc::clone(&baton),
            status: Status::Ready,
            is_killed: false,
            waiting: Vec::new(),
        });
        state.ready.push(id);
        drop(state);
        let scheduler = Arc::clone(self);
        self.pool.run(move || {
            baton.hold();
            baton.wait();
            act(id);
            scheduler.finish(id);
        });
        id
    }

    /// Starts the first task and waits until all tasks have ended.
    pub(super) fn run(&self) {
        let mut state = self.state.lock().unwrap();
        if let Some(first) = state.next(None) {
            state.tasks[first].baton.pass();
        }
        while state.alive > 0 {
            state = self.finished.wait(state).unwrap();
        }
    }

    fn finish(&self, id: TaskId) {
        let mut state = self.state.lock().unwrap();
        state.tasks[id].status = Status::Done;
        state.alive -= 1;
        for waiting in std::mem::take(&mut state.tasks[id].waiting) {
            state.make_ready(waiting);
        }
        match state.next(None) {
            Some(next) => state.tasks[next].baton.pass(),
            None => self.finished.notify_all(),
        }
    }

    /// Lets the scheduler choose the next task. Returns when the scheduler chooses the task `id`
    /// again.
    pub(super) fn step(&self, id: TaskId, what: u64) {
        let mut state = self.state.lock().unwrap();
        let step = state.step;
        state.now += step;
        state.steps += 1;
        state.note(((id as u64) << 32) ^ what);
        let Some(next) = state.next(Some(id)) else {
            return;
        };
        self.switch(state, id, next);
    }

    pub(super) fn sleep(&self, id: TaskId, pause: Duration) {
        let mut state = self.state.lock().unwrap();
        state.sleeps += 1;
        let (sleep, until) = (state.sleeps, state.now + pause.max(state.step));
        state.tasks[id].status = Status::Sleeping(sleep);
        state.sleeping.push(Reverse((until, sleep, id)));
        if let Some(next) = state.next(None) {
            self.switch(state, id, next);
        }
    }

    /// Waits until another task has ended.
    pub(super) fn join(&self, id: TaskId, other: TaskId) {
        let mut state = self.state.lock().unwrap();
        if state.tasks[other].status == Status::Done {
            return;
        }
        state.tasks[other].waiting.push(id);
        state.tasks[id].status = Status::Waiting;
        if let Some(next) = state.next(None) {
            self.switch(state, id, next);
        }
    }

    fn switch(&self, state: std::sync::MutexGuard<'_, State>, id: TaskId, next: TaskId) {
        if next == id {
            return;
        }
        let own = Arc::clone(&state.tasks[id].baton);
        let other = Arc::clone(&state.tasks[next].baton);
        drop(state);
        other.pass();
        own.wait();
    }

    /// Kills the processes of `tasks`: marks the tasks, and lets them run before all other tasks. A
    /// marked task then ends its process.
    pub(super) fn kill(&self, tasks: &[TaskId]) {
        let mut state = self.state.lock().unwrap();
        for &id in tasks {
            state.tasks[id].is_killed = true;
            state.tasks[id].status = Status::Ready;
            state.dying.push(id);
            state.ready.retain(|ready| *ready != id);
        }
    }

    pub(super) fn is_killed(&self, id: TaskId) -> bool {
        self.state.lock().unwrap().tasks[id].is_killed
    }

    /// Removes the mark of [`kill`](Self::kill) after the task has ended its process. The task
    /// itself continues, because it also simulates the program that started the process, such as
    /// the container runtime.
    pub(super) fn revive(&self, id: TaskId) {
        self.state.lock().unwrap().tasks[id].is_killed = false;
    }

    pub(super) fn now(&self) -> Duration {
        self.state.lock().unwrap().now
    }

    /// Runs `draw` with the random numbers of the seed.
    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.state.lock().unwrap().rng)
    }

    /// A hash of all steps so far, and their number.
    pub(super) fn trace(&self) -> (u64, u64) {
        let state = self.state.lock().unwrap();
        (state.trace, state.steps)
    }
}
