//! The cells that a test runs, and their counts.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::sync::Mutex;
use std::time::Instant;

use super::cell::{Cell, Visit};
use super::faults::{FAULTS, Fault};
use super::stories::{STORIES, Story};
use super::wanted::Wanted;

/// The cells of a test.
#[derive(Debug)]
pub(crate) struct Matrix<P> {
    wanted: Wanted,
    since: Instant,
    cells: Vec<Cell<P>>,
    counts: Mutex<Counts>,
    unclean: Mutex<Vec<String>>,
}

/// The counts, by story and fault.
pub(crate) type Counts = BTreeMap<(&'static str, &'static str), Count>;

/// The counts of one story and fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    /// The places at which the fault can happen.
    pub(crate) places: usize,
    /// The cells in which the fault happened.
    pub(crate) run: usize,
    /// The cells of these that left nothing behind.
    pub(crate) clean: usize,
}

/// Prints a line even if the test runner captures the output of tests.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "fault matrix: {line}");
}

impl<P: Clone + Display> Matrix<P> {
    /// A matrix without cells. The environment decides which cells are wanted.
    pub(crate) fn new() -> Matrix<P> {
        let wanted = Wanted::of_environment();
        say(&wanted.to_string());
        Matrix {
            wanted,
            since: Instant::now(),
            cells: Vec::new(),
            counts: Mutex::default(),
            unclean: Mutex::default(),
        }
    }

    /// Whether any cell of the story is wanted.
    pub(crate) fn wants_story(&self, story: &Story) -> bool {
        self.wanted.wants_story(story)
    }

    /// Adds the wanted cells of a story and a fault that can happen at these places.
    pub(crate) fn add(&mut self, story: &'static Story, fault: &'static Fault, places: Vec<P>) {
        if places.is_empty() {
            return;
        }
        let mut counts = self.counts.lock().unwrap();
        let count = counts.entry((story.name, fault.name)).or_default();
        count.places = places.len();
        let cells = places.into_iter().map(|place| Cell {
            story,
            fault,
            place,
            spare: Vec::new(),
        });
        self.cells.extend(self.wanted.choose(cells.collect()));
    }

    /// Takes the cells, those first that take long because they wait.
    pub(crate) fn cells(&mut self) -> Vec<Cell<P>> {
        let mut cells = std::mem::take(&mut self.cells);
        fastrand::Rng::with_seed(1).shuffle(&mut cells);
        cells.sort_by_key(|cell| !cell.fault.waits());
        say(&format!("{} cells", cells.len()));
        cells
    }

    /// Runs a cell at its place, or at the first spare place at which the fault happens. Counts the
    /// runs and prints what is wrong. Returns whether nothing is.
    pub(crate) fn run(&self, cell: &Cell<P>, mut run: impl FnMut(&Cell<P>) -> Visit) -> bool {
        for place in std::iter::once(&cell.place).chain(&cell.spare) {
            let cell = Cell {
                place: place.clone(),
                ..cell.clone()
            };
            let visit = run(&cell);
            self.count(&cell, &visit);
            if visit.happened || !visit.findings.is_empty() {
                return visit.findings.is_empty();
            }
        }
        true
    }

    fn count(&self, cell: &Cell<P>, visit: &Visit) {
        let is_clean = visit.findings.is_empty();
        let mut counts = self.counts.lock().unwrap();
        let count = counts
            .entry((cell.story.name, cell.fault.name))
            .or_default();
        count.run += usize::from(visit.happened);
        count.clean += usize::from(visit.happened && is_clean);
        drop(counts);
        if !is_clean {
            visit.findings.iter().for_each(|finding| say(finding));
            self.unclean.lock().unwrap().push(cell.to_string());
        }
    }

    /// Prints the counts. Returns them unless single cells are wanted.
    ///
    /// # Panics
    /// If a cell is not clean.
    pub(crate) fn end(self) -> Option<Counts> {
        let counts = self.counts.into_inner().unwrap();
        for (story, fault) in STORIES
            .iter()
            .flat_map(|it| FAULTS.iter().map(move |to| (it, to)))
        {
            let names = (story.name, fault.name);
            if let Some(Count { places, run, clean }) = counts.get(&names) {
                let (story, fault) = names;
                say(&format!(
                    "{story} × {fault}: {run} of {places} run, {clean} clean"
                ));
            }
        }
        let sum = |of: fn(&Count) -> usize| counts.values().map(of).sum::<usize>();
        say(&format!(
            "{} of {} cells run, {} clean, {:.0} s",
            sum(|it| it.run),
            sum(|it| it.places),
            sum(|it| it.clean),
            self.since.elapsed().as_secs_f32()
        ));
        let never = counts.values().filter(|it| it.run == 0).count();
        say(&format!(
            "{} of {} pairs of story and fault had a cell",
            counts.len() - never,
            counts.len()
        ));
        let unclean = self.unclean.into_inner().unwrap();
        assert!(
            unclean.is_empty(),
            "{} cells are not clean; repeat one with JACKFIELD_CELL:\n{}",
            unclean.len(),
            unclean.join("\n")
        );
        let has_all_pairs = !matches!(self.wanted, Wanted::Named(_));
        has_all_pairs.then_some(counts)
    }
}
