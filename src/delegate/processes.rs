//! Plugins as real processes.

use std::env;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::answer::{complete, judge};
use super::call::{DelegateCall, DelegateExec};
use super::depth::Depth;
use super::environment::Environment;
use super::error::DelegateError;
use super::process::{self, ProcessOutput, STDERR_CAP};
use crate::console;

/// How long a binary may be busy: an installer that writes it in place takes this long at most.
const BUSY_PATIENCE: Duration = Duration::from_secs(5);
/// The first pause before it is tried again; each is twice the one before, up to a second.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// How long our own standard error may take to accept what a delegate wrote.
const STDERR_PATIENCE: Duration = Duration::from_millis(50);
/// A pipe that is ready takes this many bytes without blocking (PIPE_BUF).
const STDERR_CHUNK: usize = 4096;

/// Executes plugins as child processes, each in its own process group.
#[derive(Debug)]
pub struct Processes {
    environment: Environment,
}

impl Processes {
    /// Takes from our environment what delegates may see.
    #[must_use]
    pub fn new(depth: Depth) -> Self {
        Self {
            environment: Environment::new(env::vars_os(), depth),
        }
    }

    /// Starts the plugin, again and again while its binary is being written.
    fn run(&self, call: &DelegateCall<'_>) -> Result<ProcessOutput, DelegateError> {
        let give_up = call.deadline.min(Instant::now() + BUSY_PATIENCE);
        let mut pause = BUSY_PAUSE;
        loop {
            let command = self.environment.command(call);
            let ended = process::run(command, call.stdin.as_bytes(), call.deadline, |how, out| {
                complete(call.verb, how, out)
            });
            let path = || call.binary.path().to_owned();
            match ended {
                Ok(ended) => return Ok(ended),
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    let now = Instant::now();
                    if now + pause >= give_up {
                        return Err(DelegateError::Busy { path: path() });
                    }
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
                Err(source) if is_want_of_room(&source) => {
                    return Err(DelegateError::NoRoom { source });
                }
                Err(source) => {
                    return Err(DelegateError::NotStarted {
                        path: path(),
                        source,
                    });
                }
            }
        }
    }
}

/// Whether the kernel lacks process numbers or memory, which has nothing to do with the program.
fn is_want_of_room(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw),
        Some(Errno::EAGAIN | Errno::ENOMEM)
    )
}

impl DelegateExec for Processes {
    fn exec(&self, call: &DelegateCall<'_>) -> Result<Vec<u8>, DelegateError> {
        let after = call.deadline.saturating_duration_since(Instant::now());
        if after.is_zero() {
            return Err(DelegateError::NoTime);
        }
        let ended = self.run(call)?;
        pass_on(&ended);
        // Nobody sets a deadline by the microsecond: 60 s are to be called 60 s.
        let after = (after + Duration::from_micros(500)).as_millis();
        let after = Duration::from_millis(u64::try_from(after).unwrap_or(u64::MAX));
        judge(call.verb, after, ended)
    }
}

/// Passes a delegate's standard error on to ours: CNI 1.1.0 §4 "Delegated plugin execution
/// procedure".
///
/// It goes line by line, escaped: a plugin's log quotes what pods ask for. A runtime that does not read would block us, so what it does not take in time is dropped.
fn pass_on(ended: &ProcessOutput) {
    if ended.stderr.is_empty() {
        return;
    }
    let cut = format!("jackfield: the rest is dropped after {STDERR_CAP} bytes\n");
    let cut: &[u8] = if ended.stderr_cut {
        cut.as_bytes()
    } else {
        &[]
    };
    let said = console::lines(&String::from_utf8_lossy(&ended.stderr));
    #[allow(clippy::disallowed_methods, reason = "escaped above")]
    let stderr = io::stderr();
    let until = Instant::now() + STDERR_PATIENCE;
    for chunk in said.as_bytes().chunks(STDERR_CHUNK).chain([cut]) {
        let left = until.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::OUT)];
        let ready = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
        if !matches!(ready, Ok(1..)) || stderr.lock().write_all(chunk).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
