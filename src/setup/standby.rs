//! A node that is Multus', and an installer that stays: it waits, takes over once no pod would fail,
//! or gives the node back, as it was told.
//!
//! The attempt to take over is a process of its own. It asks the agent about every pod, and whatever
//! becomes of it, this one goes on.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::binary::OURSELVES;
use super::directory::Directory;
use super::install::Options;
use super::install_lock::InstallLock;
use super::manifest::Manifest;
use super::notify::{Notify, Wake};
use super::report::Report;
use super::takeover;
use super::uninstall;
use super::{HostPaths, Say, SetupError};
use crate::cluster::InstallationState;

/// How soon taking over is tried again where nothing has changed: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How often the agent is told, and the directory looked at.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How soon it is tried again after a change: what an attempt leaves is one too.
const SOON: Duration = Duration::from_secs(2);
/// How often it is looked whether an attempt has ended.
const PAUSE: Duration = Duration::from_millis(100);

/// Whether the installer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The node is ours to install on.
    GoOn,
    /// The node was Multus', and has been taken over.
    TookOver,
    /// This process is to end.
    End,
}

/// Waits as long as the node is Multus'.
pub(super) fn wait(
    options: &Options,
    report: &mut Report,
    say: Say<'_>,
) -> Result<Outcome, SetupError> {
    let paths = &options.paths;
    let mut notify = None;
    let mut said = String::new();
    let mut tries = Tries::default();
    loop {
        let Some(node) = of_multus(options, say)? else {
            return Ok(Outcome::GoOn);
        };
        let Some(notify) = &mut notify else {
            // What comes between a look and the watch wakes nobody.
            notify = Some(Notify::new(vec![paths.here(&paths.conf_dir)])?);
            continue;
        };
        let mut limit = LOOK_EVERY;
        let (state, reason) = match node {
            Standing::Kept(reason) => (InstallationState::Multus, reason),
            Standing::InTheWay(reason) => (InstallationState::MigrationWaits, reason),
            Standing::ToBeTaken => {
                if tries.is_due() {
                    match attempt(notify, &said, say)? {
                        Attempt::Done => return Ok(Outcome::TookOver),
                        Attempt::Ended => return Ok(Outcome::End),
                        Attempt::Failed(reason) => tries.failed(reason),
                    }
                }
                limit = limit.min(tries.left());
                (InstallationState::MigrationWaits, tries.reason.clone())
            }
        };
        if said != reason {
            say(&reason);
            said.clone_from(&reason);
        }
        report.tell(state, &reason);
        match notify.wait(limit) {
            Wake::End => return Ok(Outcome::End),
            Wake::Changed => tries.soon(),
            Wake::Quiet => {}
        }
    }
}

/// When taking over is tried again, and why it failed last.
#[derive(Default)]
struct Tries {
    reason: String,
    pause: Option<Duration>,
    next: Option<Instant>,
}

impl Tries {
    fn left(&self) -> Duration {
        let next = self.next.unwrap_or_else(Instant::now);
        next.saturating_duration_since(Instant::now())
    }

    fn is_due(&self) -> bool {
        self.left().is_zero()
    }

    fn failed(&mut self, reason: String) {
        let pause = self.pause.map_or(FIRST_PAUSE, |pause| pause * 2);
        let pause = pause.min(LONGEST_PAUSE);
        self.pause = Some(pause);
        self.next = Some(Instant::now() + pause);
        self.reason = reason;
    }

    /// Something has changed.
    fn soon(&mut self) {
        let soon = Instant::now() + SOON;
        self.next = self.next.map(|next| next.min(soon));
    }
}

/// A node that is Multus'.
enum Standing {
    /// It is to stay so, for this reason.
    Kept(String),
    /// It is to be taken over.
    ToBeTaken,
    /// It is to be taken over, and this has to be put right first.
    InTheWay(String),
}

/// How the node is Multus'; `None` where it is not.
fn of_multus(options: &Options, say: Say<'_>) -> Result<Option<Standing>, SetupError> {
    let paths = &options.paths;
    let from = options.from_multus.as_ref();
    if from.is_some_and(|from| from.back) {
        return go_back(paths, say);
    }
    let runtime = match Directory::read(paths, &paths.conf_dir) {
        // A directory of its own is made when it is needed.
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
        return Ok(Some(Standing::Kept(
            SetupError::Multus { file }.to_string(),
        )));
    };
    Ok(Some(
        match takeover::read(paths, from, options.template.as_ref()) {
            Ok(_) => Standing::ToBeTaken,
            Err(error) => Standing::InTheWay(error.to_string()),
        },
    ))
}

/// Gives the node back to Multus, where there is a configuration to give it back to.
fn go_back(paths: &HostPaths, say: Say<'_>) -> Result<Option<Standing>, SetupError> {
    let _turn = InstallLock::take(paths)?;
    let runtime = Directory::read(paths, &paths.conf_dir)?;
    let manifest = Manifest::read(paths)?;
    let Some(manifest) = manifest else {
        let reason = "jackfield is not installed; the node stays as it is";
        return Ok(Some(Standing::Kept(reason.to_owned())));
    };
    if manifest.taken_over.is_none() && runtime.multus().is_none() {
        say("there is no configuration of Multus to go back to; jackfield stays");
        return Ok(None);
    }
    if !manifest.is_leaving || runtime.ours().is_some() {
        uninstall::give_back(paths, &manifest, say)?;
    }
    Ok(Some(Standing::Kept(format!(
        "Multus has the node back; binary and journal stay for the pods that jackfield attached: run \
         {} uninstall on the node when they are gone",
        manifest.binary.display()
    ))))
}

/// What came of an attempt.
enum Attempt {
    /// The node is ours.
    Done,
    /// It is not, for this reason.
    Failed(String),
    /// This process is to end.
    Ended,
}

/// Takes over in a process of its own, which says why it cannot; not again what was `said` before.
fn attempt(notify: &mut Notify, said: &str, say: Say<'_>) -> Result<Attempt, SetupError> {
    let failed = |cause| SetupError::io(OURSELVES.as_ref(), "cannot be started", cause);
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
        .map(|line| line.strip_prefix("jackfield: ").unwrap_or(line))
        .collect();
    let last = lines.last().copied().unwrap_or("it was ended");
    if succeeded || last != said {
        // The last line of a failure is said by whoever waits.
        let before = lines.len() - usize::from(!succeeded && !lines.is_empty());
        lines.iter().take(before).for_each(|line| say(line));
    }
    Ok(match succeeded {
        true => Attempt::Done,
        false => Attempt::Failed(last.to_owned()),
    })
}

/// Waits for a process and returns whether it succeeded; `None` where this one is to end, and the
/// other was ended.
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
