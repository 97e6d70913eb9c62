//! The cells of the fault matrix: every place at which a fault can happen in a story.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cell::Place;
use crate::steps::Step;
use crate::table::call::Verb;
use crate::table::faults::{Event, FAULTS, Fault, Kind, Loss};
use crate::table::matrix::Matrix;
use crate::table::stories::{End, STORIES, Story};

/// The number of times at which a call is killed.
const MOMENTS: u32 = 60;

/// A walked call without a fault.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) steps: Vec<Step>,
    /// The networks whose delegates ran, by their number in [`NETWORKS`](crate::lab::NETWORKS).
    pub(crate) delegates: Vec<usize>,
    /// How long it took under strace, which is longer than without.
    pub(crate) took: Duration,
}

/// Adds the wanted cells of the walked stories.
pub(crate) fn add(matrix: &mut Matrix<Place>, walks: &BTreeMap<&str, Walk>) {
    for story in STORIES {
        let Some(walk) = walks.get(story.name) else {
            continue;
        };
        for fault in FAULTS.iter().filter(|fault| applies(fault, story)) {
            matrix.add(story, fault, places(fault, walk));
        }
    }
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
        Kind::Delegate(_) | Kind::KillBesideSleeper => walk
            .delegates
            .iter()
            .copied()
            .map(Place::Delegate)
            .collect(),
        Kind::BootClockAhead(_) => vec![Place::Everywhere],
        Kind::Cluster(_) => Vec::new(),
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
        // The links are gone.
        Kind::Meanwhile(Event::PodLinksRenamed) => story.walked != Verb::Retry,
        _ => true,
    }
}
