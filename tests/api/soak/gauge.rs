//! The agent's memory and descriptors all along.

use std::fmt;
use std::fs;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::disturbances::Disturbances;
use crate::lab::AgentProcess;

/// A quarter of the samples needs so many to say something.
const FEWEST: usize = 4;
/// By how much the last quarter may exceed the first in memory, in KiB: the allocator's slack.
const MORE_MEMORY: u64 = 1024;
/// By how much it may in descriptors: plugins ask at the same time, up to 30 of them.
const MORE_DESCRIPTORS: u64 = 8;
/// By how much an idle agent may exceed itself before the first pod in descriptors: connections to the API
/// server that it keeps for a while.
const MORE_IDLE_DESCRIPTORS: u64 = 3;
/// How long the agent may take to become idle.
const IDLE_WITHIN: Duration = Duration::from_secs(60);

/// What an agent has at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pid: u32,
    /// Resident memory, in KiB.
    resident: u64,
    /// What of it is no file, in KiB: the program's pages come in as it runs.
    own: u64,
    descriptors: u64,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} KiB, {} of them its own, {} descriptors",
            self.resident, self.own, self.descriptors
        )
    }
}

/// The samples of the agent that lives now.
#[derive(Default)]
pub(super) struct Gauge(Mutex<Vec<Sample>>);

impl Gauge {
    /// Takes a sample. Another agent begins anew.
    pub(super) fn read(&self, agent: &Disturbances<'_>) -> Sample {
        let sample = agent.with_agent(|agent| {
            let number = |field: &str| agent.status(field).parse().unwrap();
            Sample {
                pid: agent.pid(),
                resident: number("VmRSS"),
                own: number("RssAnon"),
                descriptors: descriptors(agent).len() as u64,
            }
        });
        let mut samples = self.0.lock().unwrap();
        samples.retain(|it| it.pid == sample.pid);
        samples.push(sample);
        sample
    }

    /// Compares the first quarter with the last one: the verdict, and whether it is one that fails.
    pub(super) fn verdict(&self) -> Result<String, String> {
        let samples = self.0.lock().unwrap();
        let quarter = samples.len() / 4;
        if quarter < FEWEST {
            return Ok(format!(
                "{} samples of the agent are too few",
                samples.len()
            ));
        }
        let (first, last) = (&samples[..quarter], &samples[samples.len() - quarter..]);
        let memory = [first, last].map(|it| median(it.iter().map(|it| it.own)));
        let descriptors = [first, last].map(|it| median(it.iter().map(|it| it.descriptors)));
        let text = format!(
            "the agent's own memory, first and last quarter: {} and {} KiB; descriptors: {} and {}",
            memory[0], memory[1], descriptors[0], descriptors[1]
        );
        let is_flat = memory[1] <= memory[0] + MORE_MEMORY
            && descriptors[1] <= descriptors[0] + MORE_DESCRIPTORS;
        if is_flat { Ok(text) } else { Err(text) }
    }
}

/// Compares the idle agent after the last pod with the one before the first.
pub(super) fn compare_idle(before: Sample, agent: &Disturbances<'_>) -> Result<(), String> {
    let until = Instant::now() + IDLE_WITHIN;
    loop {
        let open = agent.with_agent(descriptors);
        if open.len() as u64 <= before.descriptors + MORE_IDLE_DESCRIPTORS {
            return Ok(());
        }
        if Instant::now() > until {
            let had = before.descriptors;
            return Err(format!(
                "before the first pod the agent had {had} descriptors, now {open:?}"
            ));
        }
        thread::sleep(Duration::from_millis(500));
    }
}

/// What the agent has open.
fn descriptors(agent: &AgentProcess) -> Vec<String> {
    let open = fs::read_dir(format!("/proc/{}/fd", agent.pid())).unwrap();
    // One may be closed meanwhile.
    let names = open
        .flatten()
        .filter_map(|it| fs::read_link(it.path()).ok());
    names.map(|it| it.display().to_string()).collect()
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values[values.len() / 2]
}
