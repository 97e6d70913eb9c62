//! The walk itself: count the points of a run, then kill it at each.

use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::call::{Call, Verb};
use crate::lab::Lab;
use crate::points::{CHANGING, Point};
use crate::say;

/// What is walked, and what comes before it.
pub(crate) struct Story<'a> {
    /// What it is called.
    pub(crate) name: &'static str,
    /// What is done to the sandbox before.
    pub(crate) before: &'a [Call],
    /// The call that is killed.
    pub(crate) walked: Call,
    /// What is done before the DEL that has to clean up.
    pub(crate) repair: &'a [Call],
    /// Whether an ADD comes before the walked call that is itself killed, each time at another
    /// of its points.
    pub(crate) after_killed_add: bool,
}

/// Walks, and says at how many points the run was killed.
///
/// # Panics
/// When anything is left anywhere.
pub(crate) fn walk(story: &Story<'_>) -> usize {
    let since = Instant::now();
    let (points, add) = std::thread::scope(|scope| {
        let count = || {
            let lab = Lab::set_up();
            count_both(story, &lab)
        };
        scope.spawn(count).join().unwrap()
    });
    let killed = AtomicUsize::new(0);
    let numbered: Vec<(usize, Point)> = points.into_iter().enumerate().collect();
    in_parallel(&numbered, |lab, (number, point)| {
        let (was_killed, findings) = visit(story, lab, &add, *number, point);
        killed.fetch_add(usize::from(was_killed), Ordering::Relaxed);
        findings
    });
    let killed = killed.into_inner();
    let took = since.elapsed().as_secs_f32();
    say(&format!(
        "{}: killed at {killed} of {} points, {took:.1} s",
        story.name,
        numbered.len()
    ));
    killed
}

/// Does `work` for every item, on as many labs as there are processors.
///
/// # Panics
/// When there are findings.
pub(crate) fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&Lab, &T) -> Vec<String> + Sync) {
    let next = AtomicUsize::new(0);
    let findings = Mutex::new(Vec::new());
    let labs = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(items.len());
    std::thread::scope(|scope| {
        for _ in 0..labs {
            let (next, findings, work) = (&next, &findings, &work);
            scope.spawn(move || {
                let mut lab = Lab::set_up();
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = work(&lab, item);
                    if !found.is_empty() {
                        lab.start_anew();
                    }
                    findings.lock().unwrap().extend(found);
                }
            });
        }
    });
    let findings = findings.into_inner().unwrap();
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// The points of a call, by a run that nobody disturbs.
fn count(lab: &Lab, before: &[Call], call: Call) -> Vec<Point> {
    before.iter().for_each(|call| lab.act(*call));
    let options = ["-e".to_owned(), format!("trace={CHANGING}")];
    lab.traced(call, &options).output().unwrap();
    Point::all(&std::fs::read_to_string(lab.record_path()).unwrap())
}

/// The points of the walked call, and where an ADD is killed before it.
fn count_both(story: &Story<'_>, lab: &Lab) -> (Vec<Point>, Vec<Point>) {
    let add = if story.after_killed_add {
        count(lab, &[], Call::of(Verb::Add))
    } else {
        Vec::new()
    };
    (count(lab, story.before, story.walked), add)
}

/// Kills the run at one point, detaches, and looks; by turns with and without network namespace.
fn visit(
    story: &Story<'_>,
    lab: &Lab,
    add: &[Point],
    turn: usize,
    point: &Point,
) -> (bool, Vec<String>) {
    let with_netns = turn.is_multiple_of(2);
    let mut what = format!(
        "{} killed at {point} ({} netns)",
        story.name,
        if with_netns { "with" } else { "without" }
    );
    story.before.iter().for_each(|call| lab.act(*call));
    // A stride that has nothing in common with most lengths reaches all parts of the ADD.
    if let Some(point) = add.get((turn * 7) % add.len().max(1)) {
        what.push_str(&format!(", its ADD at {point}"));
        lab.traced(Call::of(Verb::Add), &point.injection())
            .output()
            .unwrap();
    }
    let done = lab
        .traced(story.walked, &point.injection())
        .output()
        .unwrap();
    story.repair.iter().for_each(|call| lab.act(*call));
    (
        done.status.signal() == Some(9),
        lab.detach(&what, with_netns),
    )
}
