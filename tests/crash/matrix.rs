//! The fault matrix: walks the stories, runs the cells on several labs, and counts.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::call::Verb;
use crate::cell::Cell;
use crate::cells::{Walk, cells_of};
use crate::lab::Lab;
use crate::say;
use crate::steps::Step;
use crate::stories::{End, STORIES, Story};
use crate::wanted::Wanted;

/// The count of one story and fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Count {
    /// The cells in which the fault happened.
    pub(crate) run: usize,
    /// The cells of these that left nothing behind.
    pub(crate) clean: usize,
}

/// The counts, by story and fault.
pub(crate) type Counts = BTreeMap<(&'static str, &'static str), Count>;

/// Runs the wanted cells and prints the counts. Returns them unless single cells are wanted.
///
/// # Panics
/// If a cell is not clean.
pub(crate) fn run() -> Option<Counts> {
    let since = Instant::now();
    let wanted = Wanted::of_environment();
    match &wanted {
        Wanted::Sample(seed) => say(&format!("a sample; repeat it with JACKFIELD_SEED={seed}")),
        wanted => say(&format!("{wanted:?}")),
    }
    let stories: Vec<&Story> = STORIES.iter().filter(|it| wanted.wants_story(it)).collect();
    let walks = Mutex::new(BTreeMap::new());
    in_labs(&stories, |lab, story| {
        // The first walk makes directories that the second finds.
        walk(story, lab);
        let walk = walk(story, lab);
        walks.lock().unwrap().insert(story.name, walk);
    });
    let cells = cells_of(&wanted, &walks.into_inner().unwrap());
    say(&format!("{} cells", cells.len()));
    let (counts, unclean) = (Mutex::new(Counts::new()), Mutex::new(Vec::new()));
    in_labs(&cells, |lab, cell: &Cell| {
        let visit = cell.run(lab);
        let is_clean = visit.findings.is_empty();
        let mut counts = counts.lock().unwrap();
        let count = counts
            .entry((cell.story.name, cell.fault.name))
            .or_default();
        count.run += usize::from(visit.happened);
        count.clean += usize::from(visit.happened && is_clean);
        drop(counts);
        if !is_clean {
            visit.findings.iter().for_each(|finding| say(finding));
            unclean.lock().unwrap().push(cell.to_string());
            lab.start_anew();
        }
    });
    let counts = counts.into_inner().unwrap();
    crate::table::print(&counts, since.elapsed());
    let unclean = unclean.into_inner().unwrap();
    assert!(
        unclean.is_empty(),
        "{} cells are not clean; repeat one with JACKFIELD_CELL:\n{}",
        unclean.len(),
        unclean.join("\n")
    );
    matches!(wanted, Wanted::Sample(_) | Wanted::All).then_some(counts)
}

/// Does `work` for every item, on more labs than there are processors: most of the time, a lab waits
/// for the kernel.
fn in_labs<T: Sync>(items: &[T], work: impl Fn(&mut Lab, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..items.len().min(2 * processors) {
            scope.spawn(|| {
                let mut lab = Lab::set_up();
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
    let options = ["-e".to_owned(), Step::trace()];
    let since = Instant::now();
    lab.traced(story.walked, &options).output().unwrap();
    let took = since.elapsed();
    let steps = Step::all(&lab.trace());
    story.repair.iter().for_each(|verb| lab.act(*verb));
    match story.end {
        End::Uninstalled => lab.act(Verb::Uninstall),
        End::Detached | End::DetachedBesideWorker => lab.act(Verb::Del),
    }
    let left = lab.leftovers(true);
    assert!(left.is_empty(), "{} without a fault: {left:?}", story.name);
    Walk { steps, took }
}
