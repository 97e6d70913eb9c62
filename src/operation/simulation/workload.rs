//! The actions of the runtime, kubelet and users: creating pods, changing annotations, and checking
//! and deleting sandboxes. Calls for different pods overlap. Calls for one sandbox may overlap too,
//! for example an ADD and a DEL.

use std::sync::Arc;
use std::time::Duration;

use super::call::{Job, Outcome, run};
use super::cluster::write_checkpoint;
use super::plugins::GATEWAY;
use super::scheduler::TaskId;
use super::simulated::Simulation;
use super::world::{SandboxView, SimulatedPod, World};
use crate::cni::Verb;

/// The simulation causes faults only for a limited time ([`TROUBLED`]). After that time, at most
/// this many DELs of a sandbox may fail.
const MOST_DELS: u32 = 8;
/// CNI's code for `try again later`.
pub(super) const AGAIN: u32 = 11;

/// The workload of one task, which simulates one pod after another.
pub(super) struct Life<'a> {
    pub(super) sim: &'a Arc<Simulation>,
    pub(super) task: TaskId,
}

impl Life<'_> {
    pub(super) fn sleep(&self, most: u64) {
        self.sim
            .scheduler
            .sleep(self.task, self.sim.milliseconds(most));
    }

    pub(super) fn world<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.sim.world())
    }

    pub(super) fn chance(&self, percent: u32) -> bool {
        self.sim.happens(percent, 100)
    }

    pub(super) fn call(&self, verb: Verb, container: &str, netns: Option<&str>) -> Outcome {
        let job = Job::Verb {
            verb,
            container: container.to_owned(),
            netns: netns.map(str::to_owned),
        };
        run(self.sim, self.task, &job)
    }

    /// Runs a process in another task, after a short pause.
    fn beside(&self, job: Job) -> TaskId {
        let sim = Arc::clone(self.sim);
        self.sim.scheduler.spawn(move |task| {
            let pause = sim.milliseconds(200);
            sim.scheduler.sleep(task, pause);
            run(&sim, task, &job);
        })
    }

    /// Simulates one pod from its creation to its deletion.
    pub(super) fn live(&self) {
        let uid = self.world(World::number).to_string();
        self.create_pod(&uid);
        let last = self.sim.below(2);
        for round in 0..=last {
            let container = format!("c{}", self.world(World::number));
            let is_running = self.create_sandbox(&uid, &container);
            if is_running {
                self.use_sandbox(&uid, &container);
            }
            if round == last && self.chance(50) {
                self.free_devices(&uid);
            }
            self.delete_sandbox(&container);
        }
        self.free_devices(&uid);
        self.world(|world| {
            world.pods.remove(&uid);
            world.figures.pods += 1;
        });
    }

    fn create_pod(&self, uid: &str) {
        let wants_device = self.sim.conditions.has_devices && self.chance(40);
        let has_device = wants_device && self.give_device(uid);
        let networks = self.networks(has_device);
        let pod = SimulatedPod {
            stale: networks.clone(),
            networks,
            wants_device: has_device,
        };
        self.sim
            .say(|| format!("pod {uid} selects {}", pod.networks));
        self.world(|world| world.pods.insert(uid.to_owned(), pod));
    }

    /// Lets kubelet allocate a free device to the pod.
    fn give_device(&self, uid: &str) -> bool {
        let mut world = self.sim.world();
        let free = world.functions.iter_mut().find(|it| it.given_to.is_none());
        let Some(free) = free else { return false };
        free.given_to = Some(uid.to_owned());
        write_checkpoint(&world, &self.sim.place.checkpoint());
        true
    }

    fn free_devices(&self, uid: &str) {
        let mut world = self.sim.world();
        let mut functions = world.functions.iter_mut();
        if let Some(given) = functions.find(|it| it.given_to.as_deref() == Some(uid)) {
            given.given_to = None;
            write_checkpoint(&world, &self.sim.place.checkpoint());
        }
    }

    /// Chooses the networks of a pod.
    pub(super) fn networks(&self, has_device: bool) -> String {
        let count = self.sim.below(4);
        let element = |_| {
            let name = ["net-a", "net-b", "net-c"][self.sim.below(3) as usize];
            let mut element = serde_json::json!({ "name": name });
            let (chance, macs) = match self.sim.conditions.has_one_mac {
                true => (80, 1),
                false => (20, 4),
            };
            if self.chance(chance) {
                element["mac"] = format!("02:00:00:00:00:0{}", self.sim.below(macs)).into();
            }
            if self.chance(20) {
                element["default-route"] = serde_json::json!([GATEWAY]);
            }
            element
        };
        let mut elements: Vec<_> = (0..count).map(element).collect();
        if has_device {
            let at = self.sim.below(count + 1) as usize;
            elements.insert(at, serde_json::json!({"name": "vf"}));
        }
        match elements.is_empty() {
            true => String::new(),
            false => serde_json::Value::Array(elements).to_string(),
        }
    }

    /// Creates a sandbox and calls ADD at most three times. Returns whether an ADD attached the
    /// sandbox.
    fn create_sandbox(&self, uid: &str, container: &str) -> bool {
        let boot = self.world(|world| world.boot);
        let netns = self.world(|world| {
            let netns = world.create_netns(&self.sim.place, container);
            let view = SandboxView {
                uid: uid.to_owned(),
                netns: netns.clone(),
                ..SandboxView::default()
            };
            world.sandboxes.insert(container.to_owned(), view);
            netns
        });
        for _ in 0..3 {
            // CNI forbids an ADD during a GC. But Jackfield tolerates an ADD that begins after the
            // GC has first read the journal. So wait only until the GC has read the journal.
            while self.world(|world| world.is_listing) {
                self.sleep(5);
            }
            let racing = self.chance(5).then(|| {
                self.beside(Job::Verb {
                    verb: Verb::Del,
                    container: container.to_owned(),
                    netns: Some(netns.clone()),
                })
            });
            self.view(container, |view| {
                view.is_adding = true;
                view.is_raced |= racing.is_some();
            });
            let outcome = self.call(Verb::Add, container, Some(&netns));
            if let Some(racing) = racing {
                self.sim.scheduler.join(self.task, racing);
            }
            let is_same_boot = self.world(|world| world.boot) == boot;
            let is_attached = outcome == Outcome::Success && racing.is_none() && is_same_boot;
            let now = self.sim.scheduler.now();
            self.view(container, |view| {
                view.is_adding = false;
                view.attached_since = is_attached.then_some(now);
            });
            self.judge_add(uid, container, &outcome, racing.is_some());
            if is_attached {
                return true;
            }
            if !is_same_boot || racing.is_some() || self.chance(60) {
                return false;
            }
            if self.chance(50) {
                self.call(Verb::Del, container, Some(&netns));
            }
            self.sleep(500);
        }
        false
    }

    /// Checks that an ADD without faults succeeds. Does not check an ADD during which a DEL ran.
    /// Does not check the ADD of a pod that requests a MAC either, because the MAC may already be
    /// in use.
    fn judge_add(&self, uid: &str, container: &str, outcome: &Outcome, is_raced: bool) {
        let Outcome::Failure(code, message) = outcome else {
            return;
        };
        let networks = self.world(|world| world.pods[uid].networks.clone());
        if self.sim.conditions.are_clean() && !is_raced && !networks.contains("mac") {
            let rule = format!("{container}: ADD failed without a fault: {code} {message}");
            self.world(|world| world.breaks(rule));
        }
    }

    pub(super) fn view(&self, container: &str, change: impl FnOnce(&mut SandboxView)) {
        if let Some(view) = self.sim.world().sandboxes.get_mut(container) {
            change(view);
        }
    }

    /// Calls DEL until it succeeds, as containerd does, and removes the network namespace. If
    /// `runtime_gives_up` is set, stops after two failures. Failures with code 11 and killed calls
    /// do not count.
    fn delete_sandbox(&self, container: &str) {
        let netns = self.world(|world| world.sandboxes[container].netns.clone());
        self.view(container, |view| view.attached_since = None);
        if self.chance(10) {
            self.world(|world| world.remove_netns(&self.sim.place, &netns));
        }
        let del = |netns: Option<&str>| Job::Verb {
            verb: Verb::Del,
            container: container.to_owned(),
            netns: netns.map(str::to_owned),
        };
        let twice = self.chance(10).then(|| self.beside(del(Some(&netns))));
        let (mut failed, mut tried) = (0, 0);
        loop {
            let with = (!self.chance(10)).then_some(netns.as_str());
            let is_calm = self.world(|world| world.is_calm);
            match run(self.sim, self.task, &del(with)) {
                Outcome::Success => break,
                Outcome::Failure(AGAIN, _) | Outcome::Killed => {}
                Outcome::Failure(code, message) => {
                    failed += u32::from(is_calm);
                    tried += 1;
                    if failed > MOST_DELS {
                        let rule = format!("{container}: DEL still fails: {code} {message}");
                        self.world(|world| world.breaks(rule));
                        break;
                    }
                }
            }
            if self.sim.conditions.runtime_gives_up && tried > 1 {
                break;
            }
            self.sleep(10_000);
        }
        if let Some(twice) = twice {
            self.sim.scheduler.join(self.task, twice);
        }
        if self.chance(5) {
            run(self.sim, self.task, &del(None));
        }
        self.world(|world| {
            world.remove_netns(&self.sim.place, &netns);
            world.sandboxes.remove(container);
        });
    }
}

/// The virtual time after which the simulation causes no more faults.
pub(super) const TROUBLED: Duration = Duration::from_secs(90);
