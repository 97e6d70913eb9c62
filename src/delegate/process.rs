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

/// The maximum size of an answer in bytes: ten times the size of a result with a thousand
/// addresses.
pub(super) const STDOUT_CAP: usize = 1024 * 1024;
/// How many bytes of a delegate's standard error Jackfield keeps and passes on.
pub(super) const STDERR_CAP: usize = 64 * 1024;
/// How long to wait after SIGTERM before SIGKILL. A delegate gets SIGTERM at its deadline.
pub(super) const TERM_GRACE: Duration = Duration::from_millis(200);
/// How long to wait for a process to end after SIGKILL. A process takes longer only if it hangs in
/// the kernel.
const KILL_GRACE: Duration = Duration::from_secs(1);
/// How long to wait for the rest of an answer after the delegate ended. A child of the delegate may
/// still write the rest, for example if the delegate is a wrapper script that pipes its output
/// through `tee`.
pub(super) const ORPHAN_GRACE: Duration = Duration::from_millis(250);
/// On a kernel without pidfds, Jackfield checks at this interval whether a process has exited.
const TICK: Duration = Duration::from_millis(1);

/// How a process ended, and what it wrote.
pub(super) struct ProcessOutput {
    /// How the process ended.
    pub(super) ending: Ending,
    /// The standard output, at most [`STDOUT_CAP`] bytes.
    pub(super) stdout: Vec<u8>,
    /// The standard error, at most [`STDERR_CAP`] bytes.
    pub(super) stderr: Vec<u8>,
    /// Whether the standard error was longer than [`STDERR_CAP`].
    pub(super) stderr_cut: bool,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// It was ended by a signal that Jackfield did not send, such as SIGSEGV.
    Signalled(i32),
    /// It wrote more than [`STDOUT_CAP`] bytes to its standard output. Jackfield killed it and its
    /// children if they were still running.
    Flooded,
    /// It was still running at its deadline. Jackfield killed it and its children.
    Hung,
    /// Jackfield sent SIGKILL, but the process did not end, since it hangs in the kernel.
    Unkillable,
    /// The kernel discarded the exit status. It does so if Jackfield's parent process ignores
    /// SIGCHLD, because Jackfield inherits this setting.
    Lost,
}

/// A running process with its pipes.
struct RunningProcess<'a> {
    /// The CNI operation. It determines when an answer is complete.
    verb: Verb,
    child: Child,
    pid: Pid,
    /// A descriptor that becomes readable when the process exits. `None` on kernels before 5.3 and
    /// under some seccomp filters.
    pidfd: Option<OwnedFd>,
    feed: Feed<'a, ChildStdin>,
    stdout: Intake<ChildStdout>,
    stderr: Intake<ChildStderr>,
}

/// Runs a command as the leader of its own process group. Returns when the process has ended, or
/// [`KILL_GRACE`] after SIGKILL.
///
/// If the process has ended with an incomplete answer, but one of its children still has the output
/// open, this function waits up to [`ORPHAN_GRACE`] for the rest of the answer.
///
/// After a failure, this function kills the rest of the process group. [`Ending::Lost`] is an
/// exception, because a new process may already have the group's ID. After a success, this function
/// does not kill children, since a plugin may have started a daemon.
///
/// The command must not use `pre_exec`, `uid`, `gid` or `groups`. Each of them makes the standard
/// library use `fork` instead of the cheaper `posix_spawn`.
///
/// # Errors
///
/// The kernel's error if the process cannot be started. An [`Ending`] reports every later failure.
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

    /// Waits until the process ends. Kills it at the deadline, or if it writes too much.
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

    /// Waits for the rest of the answer, at most [`ORPHAN_GRACE`] and not past `deadline`. Stops
    /// earlier if the answer is complete or too long, or if no process has the output open.
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

    /// Kills the delegate and its descendants, and waits up to [`KILL_GRACE`] until the delegate
    /// has ended. A delegate that missed its deadline gets SIGTERM first.
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

    /// Waits for an event, at most until `until`, and moves bytes through the pipes. Returns how
    /// the process ended, or `None` if it still runs.
    fn pump(&mut self, until: Instant) -> Option<Ending> {
        let watched = [
            (self.pidfd.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (self.feed.fd(), PollFlags::OUT),
            (self.stdout.fd(), PollFlags::IN),
            (self.stderr.fd(), PollFlags::IN),
        ];
        let open = |(fd, events): (Option<_>, _)| Some(PollFd::from_borrowed_fd(fd?, events));
        let mut fds: Vec<PollFd<'_>> = watched.into_iter().filter_map(open).collect();
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

    /// Returns how the process ended, or `None` if it still runs. Does not reap the process, so
    /// that the kernel cannot reuse its process ID.
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

    /// Reaps the process if it has ended. After a failure, first kills the rest of its group.
    fn end(mut self, ending: Ending) -> ProcessOutput {
        match ending {
            // Send no signal. An unkillable process already got SIGKILL. If the exit status is
            // lost, the kernel also freed the process ID, so a new process may have the ID.
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

/// The time until an instant, as a timeout for `poll`.
fn timeout(until: Instant) -> Option<Timespec> {
    Timespec::try_from(until.saturating_duration_since(Instant::now())).ok()
}

#[cfg(test)]
mod tests;
