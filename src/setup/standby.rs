//! A node whose network is Multus, under an installer that keeps running: it waits, takes over once
//! no pod would fail, or gives the node back.
//!
//! Each attempt to take over is a process of its own, which asks the agent about every pod. This
//! process goes on, however the attempt ends.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::binary::OURSELVES;
use super::directory::Directory;
use super::error::FileAction;
use super::install::Options;
use super::install_lock::InstallLock;
use super::manifest::Manifest;
use super::notify::{Notify, Wake};
use super::report::Report;
use super::takeover;
use super::uninstall;
use super::{HostPaths, LINE_PREFIX, Notice, Say, SetupError};
use crate::cluster::InstallationState;
use crate::diagnostic::{self, Problem};

/// The first and the longest pause between two attempts while nothing changes.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How often the installer looks at the directory and reports to the agent.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The pause after a change. An attempt itself changes files.
const SOON: Duration = Duration::from_secs(2);
/// How often the installer polls a running attempt.
const PAUSE: Duration = Duration::from_millis(100);

/// How the wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The node's network is not Multus, so the installer goes on.
    GoOn,
    /// Jackfield has taken over from Multus.
    TookOver,
    /// A signal ends this process.
    End,
}

/// Waits as long as the node's network is Multus.
pub(super) fn wait(
    options: &Options,
    report: &mut Report,
    say: Say<'_>,
) -> Result<Outcome, SetupError> {
    let paths = &options.paths;
    let mut notify = None;
    let mut last = String::new();
    let mut attempts = Attempts::default();
    loop {
        let Some(standing) = of_multus(options, say)? else {
            return Ok(Outcome::GoOn);
        };
        let Some(notify) = &mut notify else {
            // Look again: a change before the watch began wakes nothing.
            notify = Some(Notify::new(vec![paths.here(&paths.conf_dir)])?);
            continue;
        };
        let mut limit = LOOK_EVERY;
        let (state, reason): (_, Box<dyn Problem>) = match standing {
            MultusStanding::Stays(reason) => (InstallationState::Multus, reason),
            MultusStanding::Blocked(error) => (InstallationState::MigrationWaits, Box::new(error)),
            MultusStanding::Ready => {
                if attempts.is_due() {
                    match attempt(notify, &last, say)? {
                        Attempt::Done => return Ok(Outcome::TookOver),
                        Attempt::Ended => return Ok(Outcome::End),
                        Attempt::Failed(line) => attempts.failed(line),
                    }
                }
                limit = limit.min(attempts.pause());
                let line = attempts.last_line.clone();
                (
                    InstallationState::MigrationWaits,
                    Box::new(Notice::Attempt(line)),
                )
            }
        };
        let line = diagnostic::line(&*reason);
        if last != line {
            say(&*reason);
            last = line;
        }
        report.send(state, &*reason);
        match notify.wait(limit) {
            Wake::End => return Ok(Outcome::End),
            Wake::Changed => attempts.soon(),
            Wake::Quiet => {}
        }
    }
}

/// When the next attempt begins, and why the last one failed.
#[derive(Default)]
struct Attempts {
    /// The last line of the last attempt.
    last_line: String,
    backoff: Option<Duration>,
    next: Option<Instant>,
}

impl Attempts {
    fn pause(&self) -> Duration {
        let next = self.next.unwrap_or_else(Instant::now);
        next.saturating_duration_since(Instant::now())
    }

    fn is_due(&self) -> bool {
        self.pause().is_zero()
    }

    fn failed(&mut self, last_line: String) {
        let pause = self.backoff.map_or(FIRST_PAUSE, |pause| pause * 2);
        let pause = pause.min(LONGEST_PAUSE);
        self.backoff = Some(pause);
        self.next = Some(Instant::now() + pause);
        self.last_line = last_line;
    }

    /// Brings the next attempt forward, after a change.
    fn soon(&mut self) {
        let soon = Instant::now() + SOON;
        self.next = self.next.map(|next| next.min(soon));
    }
}

/// What is to become of a node whose network is Multus.
enum MultusStanding {
    /// Multus stays, for this reason.
    Stays(Box<dyn Problem>),
    /// The takeover can be attempted.
    Ready,
    /// The takeover needs this corrected first.
    Blocked(SetupError),
}

/// What is to become of the node; `None` where its network is not Multus.
fn of_multus(options: &Options, say: Say<'_>) -> Result<Option<MultusStanding>, SetupError> {
    let paths = &options.paths;
    let from = options.from_multus.as_ref();
    if from.is_some_and(|from| from.back) {
        return go_back(paths, say);
    }
    let runtime = match Directory::read(paths, &paths.conf_dir) {
        // The installer creates a directory of its own when it needs it.
        Err(SetupError::NoConfDir { .. }) if paths.is_apart() => return Ok(None),
        runtime => runtime?,
    };
    let is_ours = runtime.ours().is_some()
        || Manifest::read(paths)?.is_some_and(|manifest| !manifest.is_leaving);
    let Some(multus) = runtime.multus().filter(|_| !is_ours) else {
        return Ok(None);
    };
    let Some(from) = from else {
        let file = runtime.file(&multus.name);
        let reason = SetupError::Multus { file };
        return Ok(Some(MultusStanding::Stays(Box::new(reason))));
    };
    Ok(Some(
        match takeover::read(paths, from, options.template.as_ref()) {
            Ok(_) => MultusStanding::Ready,
            Err(error) => MultusStanding::Blocked(error),
        },
    ))
}

/// Gives the node back to Multus, if the node has a configuration of Multus.
fn go_back(paths: &HostPaths, say: Say<'_>) -> Result<Option<MultusStanding>, SetupError> {
    let _lock = InstallLock::take(paths)?;
    let runtime = Directory::read(paths, &paths.conf_dir)?;
    let manifest = Manifest::read(paths)?;
    let Some(manifest) = manifest else {
        return Ok(Some(MultusStanding::Stays(Box::new(Notice::NotInstalled))));
    };
    if manifest.taken_over.is_none() && runtime.multus().is_none() {
        say(&Notice::NoMultusToGoBackTo);
        return Ok(None);
    }
    if !manifest.is_leaving || runtime.ours().is_some() {
        uninstall::give_back(paths, &manifest, say)?;
    }
    Ok(Some(MultusStanding::Stays(Box::new(
        Notice::MultusIsBack {
            binary: manifest.binary,
        },
    ))))
}

/// How an attempt ended.
enum Attempt {
    /// Jackfield has taken over.
    Done,
    /// It has not; this is the last line of the attempt's log.
    Failed(String),
    /// A signal ends this process.
    Ended,
}

/// Takes over in a process of its own. Passes on the log of an attempt whose last line is not
/// `last`, the one before.
fn attempt(notify: &mut Notify, last: &str, say: Say<'_>) -> Result<Attempt, SetupError> {
    let failed = |cause| SetupError::io(OURSELVES.as_ref(), FileAction::Start, cause);
    let arguments = std::env::args_os().skip(1).filter(|it| it != "--watch");
    let mut child = Command::new(OURSELVES)
        .args(arguments)
        .args(["--pods-alone", "--wait", "0s"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let lines = child.stderr.take().map(|stderr| {
        std::thread::spawn(move || std::io::read_to_string(stderr).unwrap_or_default())
    });
    let Some(succeeded) = ended(&mut child, notify) else {
        return Ok(Attempt::Ended);
    };
    let text = lines
        .and_then(|lines| lines.join().ok())
        .unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.strip_prefix(LINE_PREFIX).unwrap_or(line))
        .collect();
    let last_line = lines.last().copied().unwrap_or("it was ended");
    if succeeded || last_line != last {
        // The caller reports the last line of a failure.
        let before = lines.len() - usize::from(!succeeded && !lines.is_empty());
        let lines = lines.iter().take(before);
        lines.for_each(|line| say(&Notice::Attempt((*line).to_owned())));
    }
    Ok(match succeeded {
        true => Attempt::Done,
        false => Attempt::Failed(last_line.to_owned()),
    })
}

/// Waits for a process and returns whether it succeeded. When a signal ends this process, kills the
/// other and returns `None`.
fn ended(child: &mut Child, notify: &mut Notify) -> Option<bool> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.success());
        }
        if notify.is_to_end(PAUSE) {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
    }
}
