//! The fault matrix: walks the stories, runs the cells on several labs, and counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::cells::{self, Walk};
use crate::lab::{self, Lab};
use crate::steps::Step;
use crate::table::call::Verb;
use crate::table::matrix::{Counts, Matrix};
use crate::table::stories::{End, STORIES, Story};

/// The number of labs for each processor.
const LABS: usize = 4;

/// Runs the wanted cells and prints the counts. Returns them unless single cells are wanted.
///
/// # Panics
/// If a cell is not clean.
pub(crate) fn run() -> Option<Counts> {
    let mut matrix = Matrix::new();
    let dir = tempfile::tempdir().unwrap();
    let program = lab::stripped_program(dir.path());
    let stories = STORIES.iter().filter(|story| matrix.wants_story(story));
    let stories: Vec<&Story> = stories.collect();
    let walks = Mutex::new(BTreeMap::new());
    in_labs(&program, &stories, |lab, story| {
        // The first walk makes directories that the second finds.
        walk(story, lab);
        let walk = walk(story, lab);
        walks.lock().unwrap().insert(story.name, walk);
    });
    cells::add(&mut matrix, &walks.into_inner().unwrap());
    let cells = matrix.cells();
    in_labs(&program, &cells, |lab, cell| {
        if !matrix.run(cell, |cell| cell.run(lab)) {
            lab.start_anew();
        }
    });
    matrix.end()
}

/// Does `work` for every item, on several labs for each processor: most of the time, a lab waits for
/// the kernel.
fn in_labs<T: Sync>(program: &Path, items: &[T], work: impl Fn(&mut Lab, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..items.len().min(LABS * processors) {
            scope.spawn(|| {
                let mut lab = Lab::set_up(program);
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(&mut lab, item);
                }
            });
        }
    });
}

/// Walks a story without a fault.
fn walk(story: &Story, lab: &Lab) -> Walk {
    story.before.iter().for_each(|verb| lab.act(*verb));
    lab.watch_delegates();
    let options = ["-e".to_owned(), Step::trace()];
    let since = Instant::now();
    lab.traced(story.walked, &options).output().unwrap();
    let took = since.elapsed();
    let steps = Step::all(&lab.trace());
    let delegates = lab.watched_delegates();
    story.repair.iter().for_each(|verb| lab.act(*verb));
    match story.end {
        End::Uninstalled => lab.act(Verb::Uninstall),
        End::Detached | End::DetachedBesideWorker => lab.act(Verb::Del),
    }
    let left = lab.leftovers(true);
    assert!(left.is_empty(), "{} without a fault: {left:?}", story.name);
    Walk {
        steps,
        delegates,
        took,
    }
}
