//! Runs one process with a deadline and without threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};

use super::family::ProcessFamily;
use super::pipe::{Feed, Intake};

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
const ORPHAN_GRACE: Duration = Duration::from_millis(250);
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
/// `complete` decides from the exit status and the output whether the answer is complete. If it is
/// not, and a child of the delegate still holds the output, this waits for [`ORPHAN_GRACE`].
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
    mut command: Command,
    stdin: &[u8],
    deadline: Instant,
    complete: impl Fn(Ending, &[u8]) -> bool,
) -> io::Result<ProcessOutput> {
    let child = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut running = RunningProcess::new(child, stdin);
    let ending = running.wait(deadline, &complete);
    Ok(running.end(ending, &complete))
}

impl<'a> RunningProcess<'a> {
    fn new(mut child: Child, stdin: &'a [u8]) -> Self {
        let pid = Pid::from_child(&child);
        Self {
            pid,
            pidfd: pidfd_open(pid, PidfdFlags::empty()).ok(),
            feed: Feed::new(child.stdin.take(), stdin),
            stdout: Intake::new(child.stdout.take(), STDOUT_CAP),
            stderr: Intake::new(child.stderr.take(), STDERR_CAP),
            child,
        }
    }

    /// Waits for the end of the process, and enforces it at the deadline.
    fn wait(&mut self, deadline: Instant, complete: &impl Fn(Ending, &[u8]) -> bool) -> Ending {
        self.feed.push();
        loop {
            if let Some(ending) = self.pump(deadline) {
                self.stdout.drain();
                self.stderr.drain();
                if self.stdout.open() && !complete(ending, self.stdout.kept()) {
                    self.wait_for_orphans(ending, deadline, complete);
                }
                return if self.stdout.over() {
                    Ending::Flooded
                } else {
                    ending
                };
            }
            if self.stdout.over() {
                return self.kill(Ending::Flooded);
            }
            if Instant::now() >= deadline {
                return self.terminate();
            }
        }
    }

    /// Waits until the answer is complete, no process holds the output, or the time is up.
    fn wait_for_orphans(
        &mut self,
        ending: Ending,
        deadline: Instant,
        complete: &impl Fn(Ending, &[u8]) -> bool,
    ) {
        let until = deadline.min(Instant::now() + ORPHAN_GRACE);
        while self.stdout.open() && !self.stdout.over() && Instant::now() < until {
            if let Some(fd) = self.stdout.fd() {
                let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
                let _interrupted = poll(&mut fds, timeout(until).as_ref());
            }
            self.stdout.drain();
            if complete(ending, self.stdout.kept()) {
                return;
            }
        }
    }

    /// Sends SIGTERM to the whole family, then SIGKILL, and waits for the delegate.
    fn terminate(&mut self) -> Ending {
        let mut family = ProcessFamily::of(self.pid);
        family.add_descendants();
        family.signal(Signal::TERM);
        let until = Instant::now() + TERM_GRACE;
        while self.pump(until).is_none() && Instant::now() < until {}
        family.add_descendants();
        family.signal(Signal::KILL);
        self.wait_for_death(Ending::Hung)
    }

    /// Kills the whole family and waits for the delegate.
    fn kill(&mut self, ending: Ending) -> Ending {
        let mut family = ProcessFamily::of(self.pid);
        family.add_descendants();
        family.signal(Signal::KILL);
        self.wait_for_death(ending)
    }

    fn wait_for_death(&mut self, ending: Ending) -> Ending {
        let until = Instant::now() + KILL_GRACE;
        loop {
            if self.pump(until).is_some() {
                return ending;
            }
            if Instant::now() >= until {
                return Ending::Unkillable;
            }
        }
    }

    /// Waits for an event or for `until`, moves bytes through the pipes, and returns how the process
    /// ended, if it has.
    fn pump(&mut self, until: Instant) -> Option<Ending> {
        let mut fds = Vec::with_capacity(4);
        let exit = watch(
            &mut fds,
            self.pidfd.as_ref().map(AsFd::as_fd),
            PollFlags::IN,
        );
        let feed = watch(&mut fds, self.feed.fd(), PollFlags::OUT);
        let stdout = watch(&mut fds, self.stdout.fd(), PollFlags::IN);
        let stderr = watch(&mut fds, self.stderr.fd(), PollFlags::IN);
        let until = if exit.is_some() {
            until
        } else {
            until.min(Instant::now() + TICK)
        };
        let _interrupted = poll(&mut fds, timeout(until).as_ref());
        let ready = |at: Option<usize>| {
            at.and_then(|at| fds.get(at))
                .is_some_and(|fd| !fd.revents().is_empty())
        };
        let (exit, feed, stdout, stderr) = (
            exit.is_none() || ready(exit),
            ready(feed),
            ready(stdout),
            ready(stderr),
        );
        if feed {
            self.feed.push();
        }
        if stdout {
            self.stdout.drain();
        }
        if stderr {
            self.stderr.drain();
        }
        if exit { self.ending() } else { None }
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
    fn end(mut self, ending: Ending, complete: &impl Fn(Ending, &[u8]) -> bool) -> ProcessOutput {
        match ending {
            // The kernel may have reused the process ID if it discarded the status.
            Ending::Unkillable | Ending::Lost => {}
            Ending::Exited(0) if complete(ending, self.stdout.kept()) => {}
            _ => ProcessFamily::of(self.pid).signal(Signal::KILL),
        }
        if ending != Ending::Unkillable {
            let _reaped = self.child.try_wait();
        }
        let (stdout, _) = self.stdout.into_kept();
        let (stderr, stderr_cut) = self.stderr.into_kept();
        ProcessOutput {
            ending,
            stdout,
            stderr,
            stderr_cut,
        }
    }
}

/// Adds a descriptor to those to wait for, and returns its index.
fn watch<'a>(
    fds: &mut Vec<PollFd<'a>>,
    fd: Option<BorrowedFd<'a>>,
    events: PollFlags,
) -> Option<usize> {
    fds.push(PollFd::from_borrowed_fd(fd?, events));
    Some(fds.len() - 1)
}

/// The time until an instant, for the kernel.
fn timeout(until: Instant) -> Option<Timespec> {
    Timespec::try_from(until.saturating_duration_since(Instant::now())).ok()
}

#[cfg(test)]
mod tests;
