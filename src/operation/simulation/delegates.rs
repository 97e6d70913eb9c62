//! The simulated plugins: `bridge` makes a link and takes a lease, `sriov` moves a virtual function
//! into the pod, `tuning` does nothing. The seed decides when the plugins fail, crash, hang or
//! return a wrong result.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::machine::Process;
use super::plugins;
use super::work::{Part, Work};
use crate::cni::{self, Verb};
use crate::delegate::{DelegateCall, DelegateError, DelegateExec, LastLine};

impl Process {
    /// Returns the time at which this process ran its first delegate for `container`. If the
    /// process has run none yet, records and returns the current time.
    pub(super) fn begun(&self, container: &str) -> Duration {
        let mut begun = self.begun.borrow_mut();
        if let Some((_, since)) = begun.iter().find(|(known, _)| known == container) {
            return *since;
        }
        let now = self.sim.scheduler.now();
        begun.push((container.to_owned(), now));
        now
    }
}

/// What goes wrong in one call of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    Refuses,
    FailsHalfway,
    Hangs,
    Lies,
}

/// Runs the simulated plugins for a process.
pub(super) struct Delegates(pub(super) Rc<Process>);

impl Delegates {
    fn trouble(&self, verb: Verb) -> Trouble {
        let sim = &self.0.sim;
        if sim.world().is_calm || !sim.happens(sim.conditions.delegate_faults, 1000) {
            return Trouble::None;
        }
        sim.world().figures.delegate_faults += 1;
        match sim.below(5) {
            0 | 1 => Trouble::Refuses,
            2 => Trouble::FailsHalfway,
            3 => Trouble::Hangs,
            _ if verb == Verb::Add => Trouble::Lies,
            _ => Trouble::Refuses,
        }
    }

    /// Records that a delegate of the container runs. Reports a broken rule if a delegate of
    /// another process runs for the same container.
    fn enter(&self, container: &str) {
        let mut world = self.0.sim.world();
        let other = world.delegates.insert(container.to_owned(), self.0.pid);
        if let Some(other) = other.filter(|other| *other != self.0.pid) {
            let pid = self.0.pid;
            world.breaks(format!(
                "{container}: delegates of the processes {other} and {pid} ran at the same time"
            ));
        }
    }

    fn work(&self, mut work: Work, trouble: Trouble) -> Result<Vec<u8>, DelegateError> {
        let process = &self.0;
        let sim = &process.sim;
        let keep = |work: &Work| {
            *process.delegate.borrow_mut() = Some(work.clone());
        };
        keep(&work);
        process.pause(sim.milliseconds(60));
        if trouble == Trouble::Refuses {
            return refused("busy");
        }
        let attempt = |work: &Work, part| {
            let mut world = sim.world();
            work.apply(&mut world, part)
        };
        attempt(&work, Part::First).map_err(DelegateError::Refused)?;
        work.is_half_done = true;
        keep(&work);
        process.pause(sim.milliseconds(60));
        if trouble == Trouble::FailsHalfway {
            return match sim.happens(1, 2) {
                true => refused("halfway"),
                false => Err(DelegateError::Crashed(11, LastLine::default())),
            };
        }
        attempt(&work, Part::Second).map_err(DelegateError::Refused)?;
        process.delegate.take();
        if work.verb != Verb::Add {
            return Ok(Vec::new());
        }
        let answer = plugins::answer(&work, &sim.world());
        Ok(match trouble {
            Trouble::Lies => lie(answer, sim.below(4)),
            _ => answer.to_string().into_bytes(),
        })
    }
}

/// Returns a false answer of a plugin. The answer contradicts the kernel, or is not a CNI result.
fn lie(mut answer: Value, kind: u32) -> Vec<u8> {
    match kind {
        0 => return b"{\"ips\":7}".to_vec(),
        1 => answer["ips"] = json!([{"address": "10.99.99.99/16", "interface": 0}]),
        2 => answer["interfaces"][0]["mac"] = "02:aa:aa:aa:aa:aa".into(),
        _ => answer["interfaces"][0]["name"] = "other0".into(),
    }
    answer.to_string().into_bytes()
}

fn refused<T>(msg: &str) -> Result<T, DelegateError> {
    Err(DelegateError::Refused(cni::Error::new(7, msg)))
}

impl DelegateExec for Delegates {
    fn exec(&self, call: &DelegateCall<'_>) -> Result<Vec<u8>, DelegateError> {
        let (process, sim) = (&self.0, &self.0.sim);
        process.step(100 + call.verb as u64);
        let now = sim.instant();
        if now >= call.deadline {
            return Err(DelegateError::NoTime);
        }
        let trouble = self.trouble(call.verb);
        let work = Work::of(process, call);
        sim.say(|| {
            let (
                pid,
                Work {
                    verb,
                    plugin,
                    network,
                    container,
                    ifname,
                    netns,
                    ..
                },
            ) = (process.pid, &work);
            format!("[{pid}] {plugin} {verb} {network} {container} {ifname} {netns:?}: {trouble:?}")
        });
        if call.attachment.is_none() {
            process.pause(sim.milliseconds(5));
            if trouble != Trouble::None {
                return refused("no");
            }
            if call.verb == Verb::Gc {
                plugins::collect(&work, &mut sim.world());
            }
            return Ok(Vec::new());
        }
        if call.verb == Verb::Check {
            process.pause(sim.milliseconds(5));
            return match trouble {
                Trouble::None => Ok(Vec::new()),
                _ => refused("no"),
            };
        }
        let container = work.container.clone();
        self.enter(&container);
        let outcome = match trouble {
            Trouble::Hangs => {
                *process.delegate.borrow_mut() = Some(work);
                process.pause(call.deadline - now);
                Err(DelegateError::Hung(
                    call.deadline - now,
                    LastLine::default(),
                ))
            }
            _ => self.work(work, trouble),
        };
        process.delegate.take();
        let mut world = sim.world();
        if world.delegates.get(&container) == Some(&process.pid) {
            world.delegates.remove(&container);
        }
        drop(world);
        sim.say(|| match &outcome {
            Ok(_) => format!("[{}] the plugin succeeded", process.pid),
            Err(error) => format!("[{}] the plugin failed: {error}", process.pid),
        });
        outcome
    }
}
