//! Measures what Jackfield costs over the delegates that it runs, and prints it beside what is
//! promised. `scripts/bench` prepares the node and calls it.
//!
//! ```text
//! bench FOLDER CONTENDER=PROGRAM:CONF …    the whole measurement
//! bench memory PROGRAM CONF …              one call's peak memory, from a process that is small
//! ```
//!
//! Each round calls every contender once, in random order, ADD and then DEL; before each call the
//! processor is kept busy until what the call before left to do in the background is done, since
//! sleeping would let it cool down. The bare delegates, called by this program one after the other
//! as a plugin would call them, are a contender like the others.

mod burst;
mod contender;
mod figures;
mod report;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use contender::{Contender, Verb};
use figures::{Figures, Random};

/// Rounds that count, after those that fill the caches.
const ROUNDS: usize = 100;
const WARM_UP: usize = 10;
/// How long the processor is kept busy before each call.
const PAUSE: Duration = Duration::from_millis(25);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((word, rest)) if word == "memory" => report::memory_of_one_call(rest),
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
    let mut all = vec![Contender::bare(folder)?];
    for contender in contenders {
        all.push(Contender::parse(folder, contender)?);
    }
    let mut figures: Vec<Figures> = all.iter().map(|_| Figures::default()).collect();
    let mut random = Random::seeded();
    for round in 0..WARM_UP + ROUNDS {
        for at in random.order(all.len()) {
            let (Some(contender), Some(figures)) = (all.get(at), figures.get_mut(at)) else {
                continue;
            };
            for verb in [Verb::Add, Verb::Del] {
                keep_busy();
                let called = contender.call(verb, 0)?;
                if round >= WARM_UP {
                    figures.add(verb, called);
                }
            }
        }
    }
    let bursts = burst::measure(&all, &mut random)?;
    report::whole(&all, &figures, &bursts)
}

fn keep_busy() {
    let since = Instant::now();
    while since.elapsed() < PAUSE {
        std::hint::spin_loop();
    }
}
