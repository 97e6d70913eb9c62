//! Prints the fault matrix.

use std::time::Duration;

use crate::faults::FAULTS;
use crate::matrix::Counts;
use crate::say;
use crate::stories::STORIES;

/// Prints the run cells and the clean cells of each story and fault, and the total.
pub(crate) fn print(counts: &Counts, took: Duration) {
    for story in STORIES {
        for fault in FAULTS {
            if let Some(count) = counts.get(&(story.name, fault.name)) {
                let (story, fault) = (story.name, fault.name);
                say(&format!(
                    "{story} × {fault}: {} run, {} clean",
                    count.run, count.clean
                ));
            }
        }
    }
    let run: usize = counts.values().map(|count| count.run).sum();
    let clean: usize = counts.values().map(|count| count.clean).sum();
    let took = took.as_secs_f32();
    say(&format!("{run} cells run, {clean} clean, {took:.0} s"));
}
