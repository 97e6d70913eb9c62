//! The cells of the fault matrix: every place at which a fault can happen in a story.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::call::Verb;
use crate::cell::{Cell, Place};
use crate::faults::{Event, FAULTS, Fault, Kind};
use crate::lab::NETWORKS;
use crate::power::Loss;
use crate::steps::Step;
use crate::stories::{End, STORIES, Story};
use crate::wanted::Wanted;

/// The number of times at which a call is killed.
const MOMENTS: u32 = 60;

/// A walked call without a fault.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) steps: Vec<Step>,
    /// How long it took under strace, which is longer than without.
    pub(crate) took: Duration,
}

/// The wanted cells, in an order that mixes stories and faults.
pub(crate) fn cells_of(wanted: &Wanted, walks: &BTreeMap<&str, Walk>) -> Vec<Cell> {
    let mut cells = Vec::new();
    for story in STORIES {
        let Some(walk) = walks.get(story.name) else {
            continue;
        };
        for fault in FAULTS.iter().filter(|fault| applies(fault, story)) {
            let all = places(fault, walk);
            let all = all.into_iter().map(|place| Cell {
                story,
                fault,
                place,
            });
            cells.extend(wanted.choose(all.collect()));
        }
    }
    // Cells that wait for something run beside others that do not.
    fastrand::Rng::with_seed(1).shuffle(&mut cells);
    cells
}

fn places(fault: &Fault, walk: &Walk) -> Vec<Place> {
    let at = |is_at: &dyn Fn(&Step) -> bool| {
        let steps = walk.steps.iter().filter(|step| is_at(step));
        steps.cloned().map(Place::Step).collect()
    };
    match fault.kind {
        Kind::Errno(_, syscalls) => at(&|step| step.is_of(syscalls)),
        Kind::Kill | Kind::Meanwhile(_) | Kind::PowerLoss(_) => at(&Step::changes),
        Kind::KillAtSomeTime => {
            let moments = (0..MOMENTS).map(|number| walk.took * number / MOMENTS);
            let numbered = moments.enumerate();
            numbered
                .map(|(number, moment)| Place::Moment(number, moment))
                .collect()
        }
        Kind::Delegate(_) | Kind::KillBesideSleeper => {
            (0..NETWORKS.len()).map(Place::Delegate).collect()
        }
    }
}

/// Whether a fault can happen in a story.
fn applies(fault: &Fault, story: &Story) -> bool {
    let is_about_files = matches!(fault.kind, Kind::Kill | Kind::Errno(..));
    if story.end == End::Uninstalled {
        return is_about_files;
    }
    match fault.kind {
        // STATUS runs no delegate, and its worker is a story of its own.
        Kind::Delegate(_) | Kind::KillAtSomeTime => story.walked != Verb::Status,
        Kind::KillBesideSleeper => story.walked == Verb::Add,
        // A call that takes leases commits the name of its record before.
        Kind::PowerLoss(Loss::Call) => {
            !matches!(story.walked, Verb::Add | Verb::Change | Verb::Reconcile)
        }
        // The calls that read or write times.
        Kind::Meanwhile(Event::ClockSet(_)) => {
            story.end == End::DetachedBesideWorker
                || story.walked == Verb::Retry
                || story.before.contains(&Verb::Break)
                || story.before.contains(&Verb::BreakAdd)
        }
        _ => true,
    }
}
