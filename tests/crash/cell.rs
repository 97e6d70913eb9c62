//! One cell of the fault matrix: a story that meets a fault at one place.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::time::{Duration, Instant};

use crate::lab::{Lab, NETWORKS, bad_end};
use crate::power::Snapshot;
use crate::steps::Step;
use crate::table::call::{Call, Verb};
use crate::table::cell::{Cell, Visit};
use crate::table::faults::{Kind, Loss};

/// How long the sleeping delegate sleeps.
const SLEEP: Duration = Duration::from_secs(4);

/// Where the fault happens.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// At a step of the walked call.
    Step(Step),
    /// At a time of the walked call, with a number.
    Moment(usize, Duration),
    /// In the delegate of a network, by its number in [`NETWORKS`].
    Delegate(usize),
    /// During the whole walked call.
    Everywhere,
}

/// The walked call that met the fault.
pub(crate) struct Met {
    pub(crate) done: Output,
    happened: bool,
    /// Whether the record has lost its header.
    pub(crate) lost_header: bool,
    /// When the sleeping delegate would wake up.
    asleep_until: Option<Instant>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Step(step) => write!(f, "{}", step.name()),
            Place::Moment(number, _) | Place::Delegate(number) => write!(f, "{number}"),
            Place::Everywhere => f.write_str("everywhere"),
        }
    }
}

impl Cell<Place> {
    /// A number that differs from that of the next cell. It decides how the cell is cleaned up, so
    /// it must not depend on what happened before the step.
    pub(crate) fn number(&self) -> usize {
        match &self.place {
            Place::Step(step) => step.number(),
            Place::Moment(number, _) | Place::Delegate(number) => *number,
            Place::Everywhere => 0,
        }
    }

    /// Runs the cell: the story up to the fault, the clean-up, and a look at everything.
    pub(crate) fn run(&self, lab: &mut Lab) -> Visit {
        self.story.before.iter().for_each(|verb| lab.act(*verb));
        let met = self.meet(lab);
        let mut findings = Vec::new();
        if met.done.status.signal() != Some(9) {
            findings.extend(bad_end(self.story.walked, &met.done));
        }
        if !self.fault.destroys() {
            let again = self.story.again.iter();
            findings.extend(again.filter_map(|verb| lab.attempt(Call::of(*verb)).err()));
        }
        self.story.repair.iter().for_each(|verb| lab.act(*verb));
        findings.extend(self.clean_up(lab, &met));
        if !met.happened && matches!(self.fault.kind, Kind::Errno(..)) {
            // Another system call than the intended one may have failed.
            lab.start_anew();
            findings.clear();
        }
        if let Some(until) = met.asleep_until {
            if Instant::now() > until {
                findings.push("the clean-up waited for the sleeper".to_owned());
            }
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            std::thread::sleep(Duration::from_secs(1));
            findings.extend(lab.leftovers(false));
        }
        let place = match &self.place {
            Place::Step(step) => step.to_string(),
            Place::Moment(_, moment) => format!("{moment:?}"),
            Place::Delegate(number) => format!("the delegate of {}", NETWORKS[*number]),
            Place::Everywhere => "no step".to_owned(),
        };
        let findings = findings.into_iter();
        Visit {
            happened: met.happened,
            findings: findings
                .map(|finding| format!("{self}: {finding}\n    at {place}"))
                .collect(),
        }
    }

    fn meet(&self, lab: &Lab) -> Met {
        let verb = self.story.walked;
        let (mut lost_header, mut asleep_until) = (false, None);
        let (done, happened) = match (&self.fault.kind, &self.place) {
            (Kind::Kill, Place::Step(step)) => killed(lab, verb, step),
            (Kind::KillAtSomeTime, Place::Moment(_, moment)) => {
                let mut call = lab.command(Call::of(verb)).spawn().unwrap();
                std::thread::sleep(*moment);
                call.kill().unwrap();
                with_end(call.wait_with_output().unwrap())
            }
            (Kind::KillBesideSleeper, Place::Delegate(network)) => {
                let (call, is_asleep) = lab.beside_sleeper(verb, NETWORKS[*network], SLEEP);
                asleep_until = is_asleep.then(|| Instant::now() + SLEEP);
                with_end(call)
            }
            (Kind::Errno(errno, syscalls), Place::Step(step)) => {
                let options = step.injection(&format!("error={errno}"));
                let done = lab.traced(verb, &options).output().unwrap();
                let trace = lab.trace();
                let mut hit = trace.lines().filter(|line| line.contains("(INJECTED)"));
                // The counts of two runs may differ, and then the step is another.
                let hit = hit.any(|line| Step::all(line).iter().any(|hit| hit.is_of(*syscalls)));
                (done, hit)
            }
            (Kind::Meanwhile(event), Place::Step(step)) => lab.stopped(verb, step, *event),
            (Kind::Delegate(script), Place::Delegate(network)) => {
                lab.disturb(NETWORKS[*network], script, Some("1s"));
                let done = lab.command(Call::of(verb)).output().unwrap();
                (done, lab.heal())
            }
            (Kind::PowerLoss(loss), Place::Step(step)) => {
                let before = Snapshot::of(&lab.journal());
                let killed = killed(lab, verb, step);
                lab.boot();
                if *loss == Loss::Call {
                    before.restore();
                }
                let keeps_header = matches!(verb, Verb::Change | Verb::Reconcile);
                lost_header = loss.damage(&lab.record(), self.number(), keeps_header);
                killed
            }
            (Kind::BootClockAhead(seconds), Place::Everywhere) => {
                let done = lab.in_time_namespace(verb, *seconds).output().unwrap();
                (done, true)
            }
            (kind, place) => unreachable!("{kind:?} at {place:?}"),
        };
        Met {
            done,
            happened,
            lost_header,
            asleep_until,
        }
    }
}

fn killed(lab: &Lab, verb: Verb, step: &Step) -> (Output, bool) {
    let options = step.injection("signal=KILL");
    with_end(lab.traced(verb, &options).output().unwrap())
}

/// The end of a call that is to be killed, and whether it was.
fn with_end(done: Output) -> (Output, bool) {
    let happened = done.status.signal() == Some(9);
    (done, happened)
}
