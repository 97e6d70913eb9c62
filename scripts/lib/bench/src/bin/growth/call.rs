//! One call of the program under test, and what it took.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::Outcome;

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// CNI ADD.
    Add,
    /// CNI CHECK.
    Check,
    /// CNI STATUS.
    Status,
    /// CNI GC, with every sandbox of the node as valid.
    Gc,
    /// `jackfield doctor`.
    Doctor,
    /// CNI DEL.
    Del,
}

impl Verb {
    /// All of them, in the order of one round.
    pub(crate) const ALL: [Verb; 6] = [
        Verb::Add,
        Verb::Gc,
        Verb::Doctor,
        Verb::Status,
        Verb::Check,
        Verb::Del,
    ];

    /// The value of `CNI_COMMAND`, or the command.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Add => "ADD",
            Verb::Check => "CHECK",
            Verb::Status => "STATUS",
            Verb::Gc => "GC",
            Verb::Doctor => "doctor",
            Verb::Del => "DEL",
        }
    }
}

/// What one call took and answered.
#[derive(Debug)]
pub(crate) struct Called {
    /// From before the start of the program to after its end.
    pub(crate) took: Duration,
    /// Page faults without I/O, of the program and of the delegates.
    pub(crate) faults: u64,
    /// What it wrote to stdout.
    pub(crate) answer: Vec<u8>,
}

/// Runs a command with `stdin` and waits for its end. The exit statuses of a success are in `good`.
///
/// # Errors
/// If the command cannot be run, or if its exit status is not in `good`.
pub(crate) fn run(command: &mut Command, stdin: &[u8], good: &[i32]) -> Outcome<Called> {
    let before = faults()?;
    let since = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(stdin)?;
    }
    let mut answer = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut answer)?;
    }
    let status = child.wait()?;
    let took = since.elapsed();
    if !status.code().is_some_and(|code| good.contains(&code)) {
        let said = String::from_utf8_lossy(&answer);
        return Err(format!("{command:?}: {status}: {said}").into());
    }
    Ok(Called {
        took,
        faults: faults()?.saturating_sub(before),
        answer,
    })
}

/// The page faults of all children that have ended.
fn faults() -> Outcome<u64> {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok(u64::try_from(used.minor_page_faults())?)
}
