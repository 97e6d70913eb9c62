//! Executes plugins as processes.

use std::env;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::answer::judge;
use super::call::{DelegateCall, DelegateExec};
use super::depth::Depth;
use super::environment::Environment;
use super::error::DelegateError;
use super::process::{self, ProcessOutput, STDERR_CAP};
use crate::console;

/// How long to retry the start of a binary while an installer writes to the file.
const BUSY_PATIENCE: Duration = Duration::from_secs(5);
/// The first pause between retries. The pause doubles, up to one second.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// How long to wait until Jackfield's standard error accepts the output of a delegate.
const STDERR_PATIENCE: Duration = Duration::from_millis(50);
/// How many bytes a writable pipe accepts without blocking (`PIPE_BUF`).
const STDERR_CHUNK: usize = 4096;

/// Executes plugins as child processes, each in its own process group.
#[derive(Debug)]
pub struct Processes {
    environment: Environment,
}

impl Processes {
    /// Selects the variables that delegates inherit from this process' environment. Delegates get
    /// `depth` in the variable [`DEPTH_VARIABLE`](super::DEPTH_VARIABLE).
    #[must_use]
    pub fn new(depth: Depth) -> Self {
        Self {
            environment: Environment::new(env::vars_os(), depth),
        }
    }

    /// Runs the plugin. While another process has the binary open for writing, retries the start
    /// for up to [`BUSY_PATIENCE`], but not past the call's deadline.
    fn run(&self, call: &DelegateCall<'_>) -> Result<ProcessOutput, DelegateError> {
        let give_up = call.deadline.min(Instant::now() + BUSY_PATIENCE);
        let mut pause = BUSY_PAUSE;
        loop {
            let command = self.environment.command(call);
            let output = process::run(call.verb, command, call.stdin.as_bytes(), call.deadline);
            let path = || call.binary.path().to_owned();
            let cause = match output {
                Ok(output) => return Ok(output),
                Err(cause) => cause,
            };
            match cause.raw_os_error().map(Errno::from_raw) {
                Some(Errno::ETXTBSY) if Instant::now() + pause < give_up => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
                Some(Errno::ETXTBSY) => return Err(DelegateError::Busy(path())),
                // The binary is not the cause: the node is out of process IDs or memory.
                Some(Errno::EAGAIN | Errno::ENOMEM) => return Err(DelegateError::NoRoom(cause)),
                _ => return Err(DelegateError::NotStarted(path(), cause)),
            }
        }
    }
}

impl DelegateExec for Processes {
    fn exec(&self, call: &DelegateCall<'_>) -> Result<Vec<u8>, DelegateError> {
        let after = call.deadline.saturating_duration_since(Instant::now());
        if after.is_zero() {
            return Err(DelegateError::NoTime);
        }
        let output = self.run(call)?;
        pass_on(&output);
        // Round the time, so that a message contains 60s instead of 59.9998s.
        let after = (after + Duration::from_micros(500)).as_millis();
        let after = Duration::from_millis(u64::try_from(after).unwrap_or(u64::MAX));
        judge(call.verb, after, output)
    }
}

/// Copies a delegate's standard error to Jackfield's standard error: CNI 1.1.0 §4 "Delegated plugin
/// execution procedure".
///
/// Escapes control characters, since a plugin's log may quote text from pods. If the runtime does
/// not read Jackfield's standard error, a write could block. So after [`STDERR_PATIENCE`] this
/// function drops the text that is not yet written.
fn pass_on(output: &ProcessOutput) {
    if output.stderr.is_empty() {
        return;
    }
    let lines = console::lines(&String::from_utf8_lossy(&output.stderr));
    let note = match output.stderr_cut {
        true => format!("jackfield: the plugin's stderr is dropped after {STDERR_CAP} bytes\n"),
        false => String::new(),
    };
    #[allow(clippy::disallowed_methods, reason = "the text is escaped above")]
    let stderr = io::stderr();
    let until = Instant::now() + STDERR_PATIENCE;
    let chunks = lines.as_bytes().chunks(STDERR_CHUNK);
    for chunk in chunks.chain([note.as_bytes()]) {
        let time = until.saturating_duration_since(Instant::now());
        let mut fds = [PollFd::from_borrowed_fd(stderr.as_fd(), PollFlags::OUT)];
        let ready = poll(&mut fds, Timespec::try_from(time).ok().as_ref());
        if !matches!(ready, Ok(1..)) || stderr.lock().write_all(chunk).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
