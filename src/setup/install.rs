//! Install: waits for the cluster network, then puts the binary and the configuration in place.
//!
//! ```text
//! wait ▶ check ▶ stage manifest, binary, configuration ▶ rename them, the configuration last
//! ```
//!
//! The renames begin only after all files are written. So the runtime never loses a usable
//! configuration, even if the installation fails.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::binary::{self, Content, OURSELVES};
use super::install_lock::InstallLock;
use super::manifest::{self, Manifest};
use super::notify::{Notify, Wake};
use super::plan::{self, InstallPlan, NodeDirectories, Outlook};
use super::stage::{self, StagedFile};
use super::takeover::{self, FromMultus, Rehearsal, rehearse};
use super::{HostPaths, Notice, Say, SetupError, check};
use crate::cni::RawObject;
use crate::diagnostic;

/// How often the installer reports that it still waits for the cluster network.
const REPORT_EVERY: Duration = Duration::from_secs(60);

/// What to install, and where.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directories.
    pub paths: HostPaths,
    /// The keys that the administrator sets in Jackfield's configuration; `None` without `--conf`.
    pub template: Option<RawObject>,
    /// How long to wait for the cluster network; `None` means no limit.
    pub wait: Option<Duration>,
    /// Whether this binary may replace a newer one.
    pub allow_downgrade: bool,
    /// Whether to take over from Multus, and how.
    pub from_multus: Option<FromMultus>,
}

/// The outcome of an installation.
#[derive(Debug)]
pub enum InstallOutcome {
    /// Jackfield is installed.
    Done(Box<Installed>),
    /// SIGTERM or SIGINT arrived before there was a cluster network.
    Ended,
    /// Nothing is installed, because `--dry-run` is set. Contains the outcome of the rehearsal,
    /// which plans the ADD of every pod on the node.
    Rehearsed(Rehearsal),
}

/// What an installation has put on the node.
#[derive(Debug)]
pub struct Installed {
    pub(super) manifest: Manifest,
    /// Jackfield's configuration, in the form in which the plugin gets it on stdin.
    pub(super) conf: RawObject,
}

/// Waits for a cluster network, then installs.
///
/// # Errors
/// [`SetupError`]. After an error, the runtime still has a usable configuration if it had one
/// before the call.
pub fn install(options: &Options, say: Say<'_>) -> Result<InstallOutcome, SetupError> {
    let lock = InstallLock::take(&options.paths)?;
    install_locked(options, &lock, say, &mut |_| {})
}

/// Installs under a lock that the caller holds. Calls `waiting` repeatedly while there is no
/// cluster network.
pub(super) fn install_locked(
    options: &Options,
    lock: &InstallLock,
    say: Say<'_>,
    waiting: &mut dyn FnMut(&Notice),
) -> Result<InstallOutcome, SetupError> {
    let multus = takeover(options, say)?;
    let from = options.from_multus.as_ref();
    let from = from.filter(|from| multus.is_some() || from.dry_run);
    let outcome = wait(options, multus.as_ref(), say, waiting).and_then(|ready| {
        let Some((plan, before)) = ready else {
            return Ok(InstallOutcome::Ended);
        };
        if let Some(from) = from
            && let Some(dry_run) = rehearsed(options, from, &plan, say)?
        {
            return Ok(InstallOutcome::Rehearsed(dry_run));
        }
        let installed = put(options, &plan, before, lock.made_dir, say)?;
        Ok(InstallOutcome::Done(Box::new(installed)))
    });
    if !matches!(outcome, Ok(InstallOutcome::Done(_))) && lock.made_dir {
        let _ = std::fs::remove_dir(options.paths.here(&options.paths.conf_dir));
    }
    outcome
}

/// Reads Multus' configuration and converts it to Jackfield's keys. Returns `None`
/// - without `--from-multus`,
/// - if Jackfield is installed and the runtime does not use Multus.
fn takeover(options: &Options, say: Say<'_>) -> Result<Option<RawObject>, SetupError> {
    let Some(from) = &options.from_multus else {
        return Ok(None);
    };
    let paths = &options.paths;
    let takeover = match takeover::read(paths, from, options.template.as_ref()) {
        Ok(takeover) => takeover,
        // Jackfield is already in Multus' place.
        Err(SetupError::NoMultus(_) | SetupError::MultusNotFirst { .. })
            if Manifest::read(paths)?.is_some() =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    for remark in takeover.remarks {
        say(&Notice::Remark(takeover.file.clone(), remark));
    }
    Ok(Some(takeover.ours))
}

/// Rehearses a takeover: plans the ADD of every pod on the node. With `--dry-run`, returns the
/// outcome of this rehearsal. Otherwise returns `None`, so that the takeover goes on.
///
/// # Errors
/// - The configuration is invalid.
/// - The rehearsal is impossible. With `--force` but without `--dry-run`, this is not an error.
/// - Pods would fail. With `--force` or `--dry-run`, this is not an error.
fn rehearsed(
    options: &Options,
    from: &FromMultus,
    plan: &InstallPlan,
    say: Say<'_>,
) -> Result<Option<Rehearsal>, SetupError> {
    check::conf(plan)?;
    match rehearse(&options.paths, &plan.conf, from) {
        Ok(rehearsal) if from.dry_run => return Ok(Some(rehearsal)),
        Ok(rehearsal) => {
            rehearsal.findings.iter().for_each(|finding| say(finding));
            if rehearsal.failing > 0 && !from.force {
                return Err(SetupError::PodsWouldFail(rehearsal.failing));
            }
        }
        Err(error) if from.force && !from.dry_run => say(&error),
        Err(error) => return Err(error),
    }
    Ok(None)
}

/// Waits until there is a cluster network to delegate to (NPWG 1.3 §6.1, §6.1.1). Returns `None` if
/// SIGTERM or SIGINT arrives first. In a takeover, `multus` is Multus' configuration, converted to
/// Jackfield's keys.
fn wait(
    options: &Options,
    multus: Option<&RawObject>,
    say: Say<'_>,
    waiting: &mut dyn FnMut(&Notice),
) -> Result<Option<(InstallPlan, Option<Manifest>)>, SetupError> {
    let paths = &options.paths;
    let cluster = paths.here(&paths.cluster_conf_dir);
    let since = Instant::now();
    let mut notify = None;
    let mut reported: Option<(Instant, String)> = None;
    loop {
        let before = Manifest::read(paths)?;
        let mut directories = NodeDirectories::look(paths, before.as_ref())?;
        directories.takes_over = multus.cloned();
        let reason = match plan::plan(options.template.as_ref(), before.as_ref(), &directories)? {
            Outlook::Ready(plan) => return Ok(Some((*plan, before))),
            Outlook::Waiting(reason) => reason,
        };
        let waited = since.elapsed();
        if let Some(limit) = options.wait
            && waited >= limit
        {
            return Err(SetupError::NoClusterNetwork {
                dir: cluster,
                waited: limit,
                reason: Box::new(reason),
            });
        }
        let Some(notify) = &mut notify else {
            // Read the directory again, because inotify does not report changes from before the
            // watch began.
            notify = Some(Notify::new(vec![cluster.clone()])?);
            continue;
        };
        let notice = Notice::WaitsForNetwork {
            dir: cluster.clone(),
            reason,
        };
        waiting(&notice);
        let line = diagnostic::line(&notice);
        let is_news = reported
            .as_ref()
            .is_none_or(|(when, last)| *last != line || when.elapsed() >= REPORT_EVERY);
        if is_news {
            say(&notice);
            reported = Some((Instant::now(), line));
        }
        let remaining = options.wait.map_or(REPORT_EVERY, |limit| limit - waited);
        if notify.wait(remaining.min(REPORT_EVERY)) == Wake::End {
            return Ok(None);
        }
    }
}

/// Checks a plan and carries it out.
pub(super) fn put(
    options: &Options,
    plan: &InstallPlan,
    before: Option<Manifest>,
    made_dir: bool,
    say: Say<'_>,
) -> Result<Installed, SetupError> {
    let paths = &options.paths;
    check::conf(plan)?;
    binary::check_machine(paths, plan.network.as_ref())?;
    check::version(options, before.as_ref())?;
    check::journal(paths, plan)?;
    stage::sweep(&paths.here(&paths.conf_dir));
    stage::sweep(&paths.here(&paths.bin_dir));
    let was_installed = before.is_some();
    let outcome = stage_and_put(paths, plan, before, made_dir);
    if outcome.is_err() && !was_installed {
        manifest::undo_folder(paths);
    }
    let installed = outcome?;
    say(&Notice::Installed {
        binary: paths.binary(),
        conf: paths.conf_dir.join(&plan.name),
        network: plan.conf.cluster_network(),
    });
    Ok(installed)
}

fn stage_and_put(
    paths: &HostPaths,
    plan: &InstallPlan,
    before: Option<Manifest>,
    made_dir: bool,
) -> Result<Installed, SetupError> {
    let own = Path::new(OURSELVES);
    let failed = |cause| SetupError::io(own, "read", cause);
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
        // The node has an earlier installation, but another program has removed its manifest.
        put_by_us = vec![binary.clone(), conf.clone()];
    }
    // Another program may have renamed a file of the installation by appending an extension, such
    // as `.bak`. Such a file still belongs to the installation.
    let is_ours = |path: &Path| {
        put_by_us.iter().any(|ours| {
            let (path, ours) = (path.as_os_str().as_bytes(), ours.as_os_str().as_bytes());
            let rest = path.strip_prefix(ours);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
        })
    };
    let removed = plan.remove.iter().map(|name| paths.conf_dir.join(name));
    let removed: Vec<PathBuf> = removed.collect();
    for path in [&binary, &conf].into_iter().chain(&removed) {
        if !is_ours(path) {
            manifest.keep(paths, path)?;
        }
    }
    let stdin = plan.conf.on_stdin();
    let staged_conf = Manifest::stage_conf(paths, &stdin.to_string())?;
    let mut staged = vec![manifest.stage(paths)?, staged_conf];
    let here = paths.here(&binary);
    let is_current = Content::of(&here).is_ok_and(|found| found == content);
    if !is_current || binary::wrong_mode(&here).is_some() {
        let source = File::open(own).map_err(failed)?;
        staged.push(StagedFile::new(&here, source, binary::MODE)?);
    }
    if plan.drift.is_some() {
        let text = plan.conf.text();
        staged.push(StagedFile::new(&paths.here(&conf), text.as_bytes(), 0o600)?);
    }
    for file in staged {
        file.put()?;
    }
    for path in removed {
        stage::remove(&paths.here(&path))?;
    }
    Ok(Installed {
        manifest,
        conf: stdin,
    })
}
