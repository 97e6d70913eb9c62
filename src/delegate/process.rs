//! Runs one process with a deadline and without threads.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};

use super::answer;
use super::family::ProcessFamily;
use super::pipe::{Feed, Intake};
use crate::cni::Verb;

/// The longest answer in bytes, ten times the size of a result with a thousand addresses.
pub(super) const STDOUT_CAP: usize = 1024 * 1024;
/// How many bytes of a delegate's standard error are kept and passed on.
pub(super) const STDERR_CAP: usize = 64 * 1024;
/// How long a delegate past its deadline may take to end after SIGTERM.
pub(super) const TERM_GRACE: Duration = Duration::from_millis(200);
/// How long to wait for a process after SIGKILL, which takes long only if it hangs in the kernel.
const KILL_GRACE: Duration = Duration::from_secs(1);
/// How long to wait for the rest of an answer from a child that outlives the delegate, as in a
/// wrapper script that sends its output through `tee`.
pub(super) const ORPHAN_GRACE: Duration = Duration::from_millis(250);
/// How often to check for the exit on a kernel without process descriptors.
const TICK: Duration = Duration::from_millis(1);

/// The ending of a process, and its output.
pub(super) struct ProcessOutput {
    /// How the process ended.
    pub(super) ending: Ending,
    /// The standard output, at most [`STDOUT_CAP`] bytes.
    pub(super) stdout: Vec<u8>,
    /// The standard error, at most [`STDERR_CAP`] bytes.
    pub(super) stderr: Vec<u8>,
    /// Whether the standard error was longer.
    pub(super) stderr_cut: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// A signal that we did not send ended it.
    Signalled(i32),
    /// We killed it and its children after it wrote more than [`STDOUT_CAP`].
    Flooded,
    /// We killed it and its children at its deadline.
    Hung,
    /// SIGKILL did not end it, since it hangs in the kernel.
    Unkillable,
    /// The kernel discarded the exit status, since our parent made us ignore SIGCHLD.
    Lost,
}

/// A running process with its pipes.
struct RunningProcess<'a> {
    /// The operation, which determines what a complete answer is.
    verb: Verb,
    child: Child,
    pid: Pid,
    /// Readable after the exit; `None` before Linux 5.3 and behind some seccomp filters.
    pidfd: Option<OwnedFd>,
    feed: Feed<'a, ChildStdin>,
    stdout: Intake<ChildStdout>,
    stderr: Intake<ChildStderr>,
}

/// Runs a command as the leader of its own process group, and returns after its end.
///
/// If the answer is not complete, and a child of the delegate still holds the output, this waits for
/// [`ORPHAN_GRACE`].
///
/// After a failure, this kills the rest of the process group. After a success it leaves children
/// alone, since a plugin may have started a daemon.
///
/// The command must not use `pre_exec`, `uid`, `gid` or `groups`, with which the standard library
/// would use `fork` instead of the cheaper `vfork`.
///
/// # Errors
///
/// When the process cannot be started. A failure after the start is an [`Ending`].
pub(super) fn run(
    verb: Verb,
    mut command: Command,
    stdin: &[u8],
    deadline: Instant,
) -> io::Result<ProcessOutput> {
    let child = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut running = RunningProcess::new(verb, child, stdin);
    let ending = running.wait(deadline);
    Ok(running.end(ending))
}

impl<'a> RunningProcess<'a> {
    fn new(verb: Verb, mut child: Child, stdin: &'a [u8]) -> Self {
        let pid = Pid::from_child(&child);
        Self {
            verb,
            pid,
            pidfd: pidfd_open(pid, PidfdFlags::empty()).ok(),
            feed: Feed::new(child.stdin.take(), stdin),
            stdout: Intake::new(child.stdout.take(), STDOUT_CAP),
            stderr: Intake::new(child.stderr.take(), STDERR_CAP),
            child,
        }
    }

    fn is_complete(&self, ending: Ending) -> bool {
        answer::complete(self.verb, ending, &self.stdout.kept)
    }

    /// Waits for the end of the process, and enforces it at the deadline.
    fn wait(&mut self, deadline: Instant) -> Ending {
        self.feed.push();
        loop {
            if let Some(ending) = self.pump(deadline) {
                self.stdout.drain();
                self.stderr.drain();
                self.wait_for_orphans(ending, deadline);
                return match self.stdout.is_over {
                    true => Ending::Flooded,
                    false => ending,
                };
            }
            if self.stdout.is_over {
                return self.kill(Ending::Flooded);
            }
            if Instant::now() >= deadline {
                return self.kill(Ending::Hung);
            }
        }
    }

    /// Waits until the answer is complete, no process holds the output, or the time is up.
    fn wait_for_orphans(&mut self, ending: Ending, deadline: Instant) {
        let until = deadline.min(Instant::now() + ORPHAN_GRACE);
        while let Some(fd) = self.stdout.fd() {
            if self.stdout.is_over || self.is_complete(ending) || Instant::now() >= until {
                return;
            }
            let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
            let _interrupted = poll(&mut fds, timeout(until).as_ref());
            self.stdout.drain();
        }
    }

    /// Kills the whole family and waits for the delegate. One past its deadline gets a SIGTERM
    /// first.
    fn kill(&mut self, ending: Ending) -> Ending {
        let mut family = ProcessFamily::of(self.pid);
        family.add_descendants();
        if ending == Ending::Hung {
            family.signal(Signal::TERM);
            let until = Instant::now() + TERM_GRACE;
            while self.pump(until).is_none() && Instant::now() < until {}
            family.add_descendants();
        }
        family.signal(Signal::KILL);
        let until = Instant::now() + KILL_GRACE;
        while self.pump(until).is_none() {
            if Instant::now() >= until {
                return Ending::Unkillable;
            }
        }
        ending
    }

    /// Waits for an event or for `until`, moves bytes through the pipes, and returns how the process
    /// ended, if it has.
    fn pump(&mut self, until: Instant) -> Option<Ending> {
        let watched = [
            (self.pidfd.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.feed.fd(), PollFlags::OUT),
            (self.stdout.fd(), PollFlags::IN),
            (self.stderr.fd(), PollFlags::IN),
        ];
        let open = watched
            .iter()
            .filter_map(|(fd, events)| Some(((*fd)?, *events)));
        let fds = open.map(|(fd, events)| PollFd::from_borrowed_fd(fd, events));
        let mut fds: Vec<PollFd<'_>> = fds.collect();
        let until = match self.pidfd {
            Some(_) => until,
            None => until.min(Instant::now() + TICK),
        };
        let _interrupted = poll(&mut fds, timeout(until).as_ref());
        let mut polled = fds.iter().map(|fd| !fd.revents().is_empty());
        let [exit, feed, stdout, stderr] =
            watched.map(|(fd, _)| fd.is_some() && polled.next() == Some(true));
        if feed {
            self.feed.push();
        }
        if stdout {
            self.stdout.drain();
        }
        if stderr {
            self.stderr.drain();
        }
        (exit || self.pidfd.is_none()).then(|| self.ending())?
    }

    /// How the process ended, if it has. It stays a zombie, so that the kernel cannot reuse its
    /// process ID.
    fn ending(&self) -> Option<Ending> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.pid), options) {
            Ok(status) => {
                let status = status?;
                let exited = status.exit_status().map(Ending::Exited);
                exited.or_else(|| status.terminating_signal().map(Ending::Signalled))
            }
            Err(Errno::INTR) => None,
            Err(_) => Some(Ending::Lost),
        }
    }

    /// Kills the rest of the group after a failure, and reaps the process.
    fn end(mut self, ending: Ending) -> ProcessOutput {
        match ending {
            // The kernel may have reused the process ID if it discarded the status.
            Ending::Unkillable | Ending::Lost => {}
            Ending::Exited(0) if self.is_complete(ending) => {}
            _ => ProcessFamily::of(self.pid).signal(Signal::KILL),
        }
        if ending != Ending::Unkillable {
            let _reaped = self.child.try_wait();
        }
        ProcessOutput {
            ending,
            stdout: self.stdout.kept,
            stderr: self.stderr.kept,
            stderr_cut: self.stderr.is_over,
        }
    }
}

/// The time until an instant, for the kernel.
fn timeout(until: Instant) -> Option<Timespec> {
    Timespec::try_from(until.saturating_duration_since(Instant::now())).ok()
}

#[cfg(test)]
mod tests;
