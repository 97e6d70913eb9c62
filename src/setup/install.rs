//! Install: wait for the cluster network, then put binary and configuration in place.
//!
//! ```text
//! wait ▶ look whether it may be ▶ stage manifest, binary, configuration ▶ rename them, ours last
//! ```
//!
//! Nothing is renamed before everything is written, and the runtime's first configuration is a
//! usable one at every moment, so a node keeps its network whatever happens on the way.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use super::binary::{self, Content, OURSELVES};
use super::check;
use super::install_lock::InstallLock;
use super::manifest::{self, Manifest};
use super::notify::{Notify, Wake};
use super::plan::{self, InstallPlan, Outlook, Seen};
use super::stage::{self, Staged};
use super::takeover::{self, FromMultus, Rehearsal, rehearse};
use super::{HostPaths, Say, SetupError};
use crate::cni::RawObject;

/// How often it is said that the cluster network is still waited for.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// What is to be installed, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directories.
    pub paths: HostPaths,
    /// The keys of our configuration, where the administrator gives any.
    pub template: Option<RawObject>,
    /// How long the cluster network is waited for; for ever where it is none.
    pub wait: Option<Duration>,
    /// Whether a newer binary may be replaced.
    pub allow_downgrade: bool,
    /// Whether Multus gives way, and how.
    pub from_multus: Option<FromMultus>,
}

/// What came of it.
#[derive(Debug)]
pub enum Installed {
    /// Everything is in its place.
    Done,
    /// This process was told to end before the cluster network came.
    Ended,
    /// It was to be seen what would come of it.
    Rehearsed(Box<Rehearsal>),
}

/// Installs, once there is a cluster network.
///
/// # Errors
/// [`SetupError`]; nothing was changed then.
pub fn install(options: &Options, say: Say<'_>) -> Result<Installed, SetupError> {
    let lock = InstallLock::take(&options.paths)?;
    held(options, &lock, say, &mut |_| {})
}

/// The same for whoever holds the turn already, and is told why there is no cluster network as long
/// as there is none.
pub(super) fn held(
    options: &Options,
    lock: &InstallLock,
    say: Say<'_>,
    waiting: &mut dyn FnMut(&str),
) -> Result<Installed, SetupError> {
    let multus = takeover(options, say)?;
    let rehearsed = options.from_multus.as_ref();
    let rehearsed = rehearsed.filter(|from| multus.is_some() || from.dry_run);
    let outcome = match wait(options, multus.as_ref(), say, waiting) {
        Ok(Some((plan, before))) => match rehearsed {
            Some(from) => put_rehearsed(options, from, &plan, before, lock.made_dir, say),
            None => put(options, &plan, before, lock.made_dir, say).map(|()| Installed::Done),
        },
        Ok(None) => Ok(Installed::Ended),
        Err(error) => Err(error),
    };
    if !matches!(outcome, Ok(Installed::Done)) && lock.made_dir {
        let _ = std::fs::remove_dir(options.paths.here(&options.paths.conf_dir));
    }
    outcome
}

/// What Multus is configured to do; none where there is nothing to take over, or it was taken over
/// before and is in the manifest.
fn takeover(options: &Options, say: Say<'_>) -> Result<Option<RawObject>, SetupError> {
    let Some(from) = &options.from_multus else {
        return Ok(None);
    };
    let paths = &options.paths;
    let found = takeover::read(paths, from, options.template.as_ref());
    let takeover = match found {
        Ok(takeover) => takeover,
        // A node that was taken over earlier, or whose pod is started again.
        Err(SetupError::NoMultus { .. } | SetupError::MultusNotFirst { .. })
            if Manifest::read(paths)?.is_some() =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let file = takeover.file.display();
    for remark in takeover.remarks {
        say(&format!("{file}: {remark}"));
    }
    Ok(Some(takeover.ours))
}

/// Puts a plan into effect, where Multus gives way only once nobody would fail.
fn put_rehearsed(
    options: &Options,
    from: &FromMultus,
    plan: &InstallPlan,
    before: Option<Manifest>,
    made_dir: bool,
    say: Say<'_>,
) -> Result<Installed, SetupError> {
    check::conf(plan)?;
    match rehearse(&options.paths, &plan.conf, from) {
        Ok(rehearsal) if from.dry_run => {
            return Ok(Installed::Rehearsed(Box::new(rehearsal)));
        }
        Ok(rehearsal) => accept(&rehearsal, from, say)?,
        Err(error) if !from.force || from.dry_run => return Err(error),
        Err(error) => say(&error.to_string()),
    }
    put(options, plan, before, made_dir, say).map(|()| Installed::Done)
}

/// Says who would fail; an error where somebody would and nobody insists.
fn accept(rehearsal: &Rehearsal, from: &FromMultus, say: Say<'_>) -> Result<(), SetupError> {
    rehearsal.lines().iter().for_each(|line| say(line));
    match rehearsal.failing.len() {
        count @ 1.. if !from.force => Err(SetupError::DryRun { count }),
        _ => Ok(()),
    }
}

/// Waits until there is a network to stand in front of (NPWG 1.3 §6.1, §6.1.1); none when this
/// process is to end. `multus` is what that is configured to do, where it gives way.
fn wait(
    options: &Options,
    multus: Option<&RawObject>,
    say: Say<'_>,
    waiting: &mut dyn FnMut(&str),
) -> Result<Option<(InstallPlan, Option<Manifest>)>, SetupError> {
    let paths = &options.paths;
    let cluster = paths.here(&paths.cluster_conf_dir);
    let since = Instant::now();
    let mut notify = None;
    let mut said: Option<(Instant, String)> = None;
    loop {
        let before = Manifest::read(paths)?;
        let mut seen = Seen::look(paths, before.as_ref())?;
        seen.takes_over = multus.cloned();
        let reason = match plan::plan(options.template.as_ref(), before.as_ref(), &seen)? {
            Outlook::Ready(plan) => return Ok(Some((*plan, before))),
            Outlook::Waiting(reason) => reason,
        };
        let waited = since.elapsed();
        if let Some(limit) = options.wait
            && waited >= limit
        {
            return Err(SetupError::NoClusterNetwork {
                dir: cluster,
                waited: humantime::format_duration(limit).to_string(),
                hint: format!(" ({reason})"),
            });
        }
        let Some(notify) = &mut notify else {
            // What comes between a look and the watch wakes nobody.
            notify = Some(Notify::new(vec![cluster.clone()])?);
            continue;
        };
        let line = format!(
            "waiting for the cluster network's configuration in {}: {reason}",
            cluster.display()
        );
        waiting(&line);
        let is_news = said
            .as_ref()
            .is_none_or(|(when, what)| *what != reason || when.elapsed() >= SAID_EVERY);
        if is_news {
            say(&line);
            said = Some((Instant::now(), reason));
        }
        let left = options.wait.map_or(SAID_EVERY, |limit| limit - waited);
        if notify.wait(left.min(SAID_EVERY)) == Wake::End {
            return Ok(None);
        }
    }
}

/// Puts a plan into effect.
pub(super) fn put(
    options: &Options,
    plan: &InstallPlan,
    before: Option<Manifest>,
    made_dir: bool,
    say: Say<'_>,
) -> Result<(), SetupError> {
    let paths = &options.paths;
    check::conf(plan)?;
    binary::check_machine(paths, plan.network.as_ref())?;
    check::version(options, before.as_ref())?;
    check::journal(paths, plan)?;
    stage::sweep(&paths.here(&paths.conf_dir));
    stage::sweep(&paths.here(&paths.bin_dir));
    let was_there = before.is_some();
    let outcome = staged_and_put(paths, plan, before, made_dir);
    if outcome.is_err() && !was_there {
        manifest::undo_folder(paths);
    }
    let conf = paths.conf_dir.join(&plan.name);
    outcome.inspect(|()| {
        say(&format!(
            "installed {} and {}, in front of {}",
            paths.binary().display(),
            conf.display(),
            plan.conf
                .cluster_network()
                .unwrap_or_else(|| "its delegates".to_owned()),
        ));
    })
}

fn staged_and_put(
    paths: &HostPaths,
    plan: &InstallPlan,
    before: Option<Manifest>,
    made_dir: bool,
) -> Result<(), SetupError> {
    let own = Path::new(OURSELVES);
    let failed = |cause| SetupError::io(own, "cannot be read", cause);
    let content = Content::of(own).map_err(failed)?;
    let conf = paths.conf_dir.join(&plan.name);
    let mut manifest = Manifest::new(paths, content.clone(), conf.clone(), plan.follows);
    manifest.made_conf_dir = made_dir;
    manifest.network = plan.followed(paths);
    manifest.taken_over.clone_from(&plan.taken_over);
    let mut put_by_us = Vec::new();
    let binary = paths.binary();
    if let Some(before) = before {
        put_by_us = vec![before.binary, before.conf];
        manifest.replaced = before.replaced;
        manifest.installed = before.installed;
        manifest.repairs = before.repairs;
        manifest.made_conf_dir |= before.made_conf_dir;
    } else if Manifest::conf(paths)?.is_some() {
        // Installed once, and the manifest was removed.
        put_by_us = vec![binary.clone(), conf.clone()];
    }
    let gone: Vec<_> = plan
        .remove
        .iter()
        .map(|name| paths.conf_dir.join(name))
        .collect();
    for path in [&binary, &conf].into_iter().chain(&gone) {
        let is_ours = put_by_us.contains(path)
            // A copy of ours under another name, which somebody made by renaming it.
            || put_by_us.iter().any(|ours| path.display().to_string().starts_with(&format!("{}.", ours.display())));
        if !is_ours {
            manifest.keep(paths, path)?;
        }
    }
    let stdin = plan.conf.on_stdin().to_string();
    let mut staged = vec![manifest.stage(paths)?, Manifest::stage_conf(paths, &stdin)?];
    let is_there = Content::of(&paths.here(&binary)).is_ok_and(|there| there == content);
    if !is_there || binary::wrong_mode(&paths.here(&binary)).is_some() {
        let mut source = File::open(own).map_err(failed)?;
        staged.push(Staged::copy(
            &paths.here(&binary),
            &mut source,
            binary::MODE,
        )?);
    }
    if plan.why.is_some() {
        let text = plan.conf.text();
        staged.push(Staged::text(&paths.here(&conf), text.as_bytes(), 0o600)?);
    }
    for file in staged {
        file.put()?;
    }
    for path in gone {
        stage::remove(&paths.here(&path))?;
    }
    Ok(())
}
