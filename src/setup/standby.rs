//! `install --watch` on a node whose network is Multus.
//!
//! - Without `--from-multus`, the installer leaves Multus in place and keeps running.
//! - With `--from-multus` alone, the installer waits until no pod would fail because of the
//!   takeover, and then takes the node over.
//! - With `--from-multus --force`, the installer takes the node over even if pods would fail.
//! - With `--from-multus --back`, the installer gives the node back to Multus and keeps running.
//!
//! Each attempt to take over runs in its own thread, so that a signal can end the installer at
//! once.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use super::directory::Directory;
use super::install::{self, Options};
use super::install_lock::InstallLock;
use super::manifest::Manifest;
use super::notify::{Notify, Wake};
use super::report::Report;
use super::{HostPaths, Notice, Say, SetupError, takeover, uninstall};
use crate::cluster::InstallationState;
use crate::diagnostic::{self, Problem};

/// The pause after the first failed attempt to take over. Each further failure doubles the pause. A
/// changed file in the runtime's directory of CNI configurations shortens the pause to [`SOON`].
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause between two attempts to take over.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How often the installer reads the runtime's directory again and reports to the agent, if no file
/// in the directory changes.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// The pause between a change of a file and the next attempt. Without the pause, a failed attempt
/// that itself changed a file would cause the next attempt at once.
const SOON: Duration = Duration::from_secs(2);
/// How often the installer polls a running attempt.
const PAUSE: Duration = Duration::from_millis(100);

/// How the wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is nothing to wait for, so the installer goes on:
    /// - Without `--back`, the node's network is not Multus, or Jackfield is already installed.
    /// - With `--back`, Jackfield is installed, but the node has no configuration of Multus to
    ///   return to.
    GoOn,
    /// Jackfield has taken over from Multus.
    TookOver,
    /// SIGTERM or SIGINT arrived.
    End,
}

/// Waits while the installer leaves Multus in place. The wait ends in one of the ways that
/// [`Outcome`] lists. With `--from-multus` and without `--back`, attempts the takeover until an
/// attempt succeeds.
pub(super) fn wait(
    options: &Options,
    report: &mut Report,
    say: Say<'_>,
) -> Result<Outcome, SetupError> {
    let paths = &options.paths;
    let mut notify = None;
    let mut failed: Option<FailedAttempt> = None;
    loop {
        let Some(standing) = of_multus(options, say)? else {
            return Ok(Outcome::GoOn);
        };
        let Some(notify) = &mut notify else {
            // Read the runtime's directory again, because inotify does not report changes from
            // before the watch began.
            notify = Some(Notify::new(vec![paths.here(&paths.conf_dir)])?);
            continue;
        };
        let mut limit = LOOK_EVERY;
        let (state, reason) = match standing {
            MultusStanding::Waits(state, reason) => (state, reason),
            MultusStanding::Ready => {
                let failure = match failed.take() {
                    Some(failure) if Instant::now() < failure.next => failure,
                    before => match attempt(options, notify, report, say) {
                        None => return Ok(Outcome::End),
                        Some(Ok(())) => return Ok(Outcome::TookOver),
                        Some(Err(error)) => FailedAttempt::new(error, before),
                    },
                };
                let failure = failed.insert(failure);
                limit = limit.min(failure.next.saturating_duration_since(Instant::now()));
                let cause = Rc::clone(&failure.cause);
                (InstallationState::MigrationWaits, cause)
            }
        };
        report.tell(state, &*reason, say);
        match (notify.wait(limit), &mut failed) {
            (Wake::End, _) => return Ok(Outcome::End),
            (Wake::Changed, Some(failed)) => {
                failed.next = failed.next.min(Instant::now() + SOON);
            }
            _ => {}
        }
    }
}

/// A failed attempt to take over.
struct FailedAttempt {
    cause: Rc<dyn Problem>,
    /// The pause before the next attempt, while nothing changes.
    pause: Duration,
    next: Instant,
}

impl FailedAttempt {
    fn new(error: SetupError, before: Option<FailedAttempt>) -> FailedAttempt {
        let pause = before.map_or(FIRST_PAUSE, |it| LONGEST_PAUSE.min(it.pause * 2));
        FailedAttempt {
            cause: Rc::new(error),
            pause,
            next: Instant::now() + pause,
        }
    }
}

/// What the installer should do on a node whose network is Multus.
enum MultusStanding {
    /// Leave Multus in place for this reason. The installer checks again later.
    Waits(InstallationState, Rc<dyn Problem>),
    /// Attempt the takeover.
    Ready,
}

/// Returns the decision to leave Multus in place for this reason. The state is `Multus` and not
/// `MigrationWaits`, because the installer does not intend to take over.
fn stays(reason: impl Problem + 'static) -> MultusStanding {
    MultusStanding::Waits(InstallationState::Multus, Rc::new(reason))
}

/// Decides what to do on this node. With `--back`, also gives the node back to Multus. Returns
/// `None` in the cases of [`Outcome::GoOn`].
fn of_multus(options: &Options, say: Say<'_>) -> Result<Option<MultusStanding>, SetupError> {
    let paths = &options.paths;
    let from = options.from_multus.as_ref();
    if from.is_some_and(|from| from.back) {
        return go_back(paths, say);
    }
    let runtime = match Directory::read(paths, &paths.conf_dir) {
        // The runtime's directory does not exist, so it has no configuration of Multus. If
        // `--cluster-conf-dir` names a separate directory for the cluster network's file, go on:
        // `InstallLock::take` creates the runtime's directory. Otherwise fail: an administrator
        // must create the directory or correct `--conf-dir`.
        Err(SetupError::NoConfDir(_)) if paths.is_apart() => return Ok(None),
        runtime => runtime?,
    };
    let is_ours = runtime.ours().is_some()
        || Manifest::read(paths)?.is_some_and(|manifest| !manifest.is_leaving);
    let Some(multus) = runtime.multus().filter(|_| !is_ours) else {
        return Ok(None);
    };
    let Some(from) = from else {
        return Ok(Some(stays(SetupError::Multus(multus))));
    };
    let taken_over = takeover::read(paths, from, options.template.as_ref());
    Ok(Some(match taken_over {
        Ok(_) => MultusStanding::Ready,
        Err(error) => MultusStanding::Waits(InstallationState::MigrationWaits, Rc::new(error)),
    }))
}

/// Gives the node back to Multus, if the node has a configuration of Multus.
fn go_back(paths: &HostPaths, say: Say<'_>) -> Result<Option<MultusStanding>, SetupError> {
    let _lock = InstallLock::take(paths)?;
    let runtime = Directory::read(paths, &paths.conf_dir)?;
    let Some(manifest) = Manifest::read(paths)? else {
        return Ok(Some(stays(Notice::NotInstalled)));
    };
    if manifest.taken_over.is_none() && runtime.multus().is_none() {
        say(&Notice::NoMultusToGoBackTo);
        return Ok(None);
    }
    if !manifest.is_leaving || runtime.ours().is_some() {
        uninstall::give_back(paths, &manifest, say)?;
    }
    Ok(Some(stays(Notice::MultusIsBack(manifest.binary))))
}

/// Attempts the takeover. Returns `None` if SIGTERM or SIGINT arrives. Does not log an attempt that
/// fails for the same reason as the previous attempt.
fn attempt(
    options: &Options,
    notify: &Notify,
    report: &Report,
    say: Say<'_>,
) -> Option<Result<(), SetupError>> {
    let mut options = options.clone();
    options.wait = Some(Duration::ZERO);
    if let Some(from) = &mut options.from_multus {
        from.pods_alone = true;
    }
    let attempt = thread::spawn(move || {
        let lines = RefCell::new(Vec::new());
        let keep = |problem: &dyn Problem| lines.borrow_mut().push(diagnostic::line(problem));
        let outcome = install::install(&options, &keep);
        (lines.into_inner(), outcome)
    });
    while !attempt.is_finished() {
        if notify.is_to_end(PAUSE) {
            return None;
        }
    }
    let (lines, outcome) = attempt.join().ok()?;
    let is_news = |error: &SetupError| !report.is_logged(error);
    if outcome.as_ref().err().is_none_or(is_news) {
        let lines = lines.into_iter();
        lines.for_each(|line| say(&Notice::Attempt(line)));
    }
    Some(outcome.map(drop))
}
