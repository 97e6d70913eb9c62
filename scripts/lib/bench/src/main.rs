//! Measures what Jackfield costs over the delegates that it runs, and prints it beside what is
//! promised. `scripts/bench` prepares the node and calls it.
//!
//! ```text
//! bench FOLDER CONTENDER=PROGRAM:CONF …    the whole measurement
//! bench real FOLDER CONTENDER=PROGRAM:CONF …    times with real plugins
//! bench memory PROGRAM CONF …              one call's peak memory, from a process that is small
//! bench idle PID                           what an agent that has nothing to do has in memory
//! bench peak PID                           what it had at most
//! bench pods                               how many pods each contender attaches
//! ```
//!
//! Each round calls every contender once, in random order, ADD and then DEL; before each call the
//! processor is kept busy until what the call before left to do in the background is done, since
//! sleeping would let it cool down. The bare delegates, called by this program one after the other
//! as a plugin would call them, are a contender like the others.

mod background;
mod burst;
mod contender;
mod figures;
mod report;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use background::Background;
use contender::{Contender, Verb};
use figures::{Figures, Random};

/// Rounds that count, after those that fill the caches.
const ROUNDS: usize = 100;
const WARM_UP: usize = 10;
/// Rounds with real plugins, which take about twenty times as long.
const REAL_ROUNDS: usize = 30;
/// How long the processor is kept busy before each call.
const PAUSE: Duration = Duration::from_millis(60);
/// What is done in the background has come to its end after so long without a request.
const QUIET: Duration = Duration::from_millis(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((word, rest)) if word == "memory" => report::memory_of_one_call(rest),
        Some((word, [pid])) if word == "idle" => report::idle_agent(pid),
        Some((word, [pid])) if word == "peak" => report::peak_of_agent(pid),
        Some((word, [])) if word == "pods" => Ok(format!(
            "{}\n",
            2 * WARM_UP + ROUNDS + REAL_ROUNDS + burst::TIMES * burst::PODS
        )),
        Some((word, [folder, contenders @ ..])) if word == "real" => real(folder, contenders),
        Some((folder, contenders)) if !contenders.is_empty() => measure(folder, contenders),
        _ => Err("usage: bench FOLDER CONTENDER=PROGRAM:CONF …".to_owned()),
    };
    match done {
        Ok(text) => {
            report::print(&text);
            ExitCode::SUCCESS
        }
        Err(cause) => {
            report::complain(&cause);
            ExitCode::FAILURE
        }
    }
}

fn measure(folder: &str, contenders: &[String]) -> Result<String, String> {
    let all = contenders_of(Contender::bare(folder), folder, contenders)?;
    let mut random = Random::seeded();
    let figures = rounds(&all, ROUNDS, &mut random)?;
    let bursts = burst::measure(&all, &mut random);
    report::whole(&all, &figures, &bursts)
}

fn real(folder: &str, contenders: &[String]) -> Result<String, String> {
    let all = contenders_of(Contender::real(folder)?, folder, contenders)?;
    let figures = rounds(&all, REAL_ROUNDS, &mut Random::seeded())?;
    Ok(report::real(&all, &figures))
}

fn contenders_of(
    bare: Contender,
    folder: &str,
    contenders: &[String],
) -> Result<Vec<Contender>, String> {
    let others = contenders.iter().map(|it| Contender::parse(folder, it));
    std::iter::once(Ok(bare)).chain(others).collect()
}

/// Calls all contenders in random order, `count` times.
fn rounds(all: &[Contender], count: usize, random: &mut Random) -> Result<Vec<Figures>, String> {
    let mut figures: Vec<Figures> = all.iter().map(|_| Figures::default()).collect();
    let background = Background::of_environment();
    for round in 0..WARM_UP + count {
        for at in random.order(all.len()) {
            let (Some(contender), Some(figures)) = (all.get(at), figures.get_mut(at)) else {
                continue;
            };
            keep_busy(&background);
            for verb in [Verb::Version, Verb::Add, Verb::Del] {
                let before = background.now();
                let called = contender.call(verb, 0)?;
                keep_busy(&background);
                let after = background.now();
                if round < WARM_UP {
                    continue;
                }
                figures.add(verb, called);
                let requests = background.requests(before, after)?;
                match verb {
                    Verb::Add => {
                        figures.add_agent(after.cpu.saturating_sub(before.cpu));
                        figures.requests_of_adds.add(requests);
                    }
                    Verb::Del => figures.requests_of_dels.add(requests),
                    Verb::Version => {}
                }
            }
        }
    }
    Ok(figures)
}

/// Keeps the processor busy for a while, and until nothing is owed and no request has come to its
/// end for a moment.
fn keep_busy(background: &Background) {
    let since = Instant::now();
    let (mut length, mut quiet) = (background.log_length(), since);
    while since.elapsed() < PAUSE || (quiet.elapsed() < QUIET && since.elapsed() < LONGEST_PAUSE) {
        for _ in 0..10_000 {
            std::hint::spin_loop();
        }
        let now = background.log_length();
        if now != length || background.owes() {
            (length, quiet) = (now, Instant::now());
        }
    }
}
