//! `install --watch`: keeps the binary and the configuration as they were installed.
//!
//! Other programs also write to the runtime's directory, from which the container runtime reads CNI
//! configurations. Cilium renames all configurations but its own. Istio appends its plugin to the
//! first configuration list. A cluster network may rename its own file. The guard accepts a list
//! that still begins with Jackfield, and adopts the new name of the cluster network's file. It
//! repairs every other change of the installed files.
//!
//! If a fourth repair within ten minutes would be necessary, the guard gives up. Without this
//! limit, the guard and another program could undo each other's changes forever.

use std::time::Duration;

use super::binary::{self, Content};
use super::conf::OurConf;
use super::install::{self, InstallOutcome, Installed, Options};
use super::install_lock::InstallLock;
use super::manifest::{self, Manifest};
use super::notify::{self, Notify, Wake};
use super::plan::{self, NodeDirectories, Outlook};
use super::problem::Drift;
use super::report::Report;
use super::standby::{self, Outcome};
use super::{HostPaths, Notice, Say, SetupError};
use crate::cluster::InstallationState;
use crate::diagnostic::Problem;

/// The maximum number of repairs within ten minutes.
pub(super) const REPAIRS: usize = 3;
/// How often the guard checks the node if inotify reports no change.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// How often the guard checks the node while the runtime's directory is missing.
const SOON: Duration = Duration::from_secs(1);

/// Installs, then watches until a signal ends this process.
///
/// # Errors
/// [`SetupError::GivenUp`] if a fourth repair would be necessary within ten minutes. Repairs before
/// a restart count too. Also the errors of [`install::install`].
pub fn watch(options: &Options, say: Say<'_>) -> Result<(), SetupError> {
    // Without this block, a signal could kill this process, even in the middle of an installation.
    // With it, a `Notify` reads the signal and ends the process.
    notify::block_signals(&options.paths.conf_dir)?;
    let mut report = Report::new(options);
    let outcome = keep(options, &mut report, say);
    if let Err(error) = &outcome {
        report.send(InstallationState::Failed, error);
    }
    outcome
}

fn keep(options: &Options, report: &mut Report, say: Say<'_>) -> Result<(), SetupError> {
    let outcome = standby::wait(options, report, say)?;
    if outcome == Outcome::End {
        return Ok(());
    }
    // `from_multus` contains the options `--from-multus` and `--back`. `standby::wait` has already
    // carried them out.
    let options = &Options {
        from_multus: None,
        ..options.clone()
    };
    let mut lock = InstallLock::take(&options.paths)?;
    let paths = &options.paths;
    if let Some(installed) = Manifest::read(paths)?.filter(|installed| !installed.is_leaving) {
        // If another program has changed the runtime's directory since an earlier run, undoing that
        // change counts as a repair. A new release of Jackfield does not count, and neither does a
        // new template (the administrator's file of `--conf`).
        match installed_drift(paths, &installed)? {
            Some(drift) => drop(spend(paths, installed, drift, say)?),
            None if outcome == Outcome::TookOver => {}
            None => report.assume(InstallationState::Installed, &Notice::Well),
        }
    }
    let mut waiting = |notice: &Notice| report.send(InstallationState::NoNetwork, notice);
    let mut last_look = match install::install_locked(options, &lock, say, &mut waiting)? {
        InstallOutcome::Done(installed) => LastLook {
            installed: *installed,
            network: None,
        },
        InstallOutcome::Ended | InstallOutcome::Rehearsed(_) => return Ok(()),
    };
    let mut dirs = vec![paths.here(&paths.conf_dir), paths.here(&paths.bin_dir)];
    if paths.is_apart() {
        dirs.push(paths.here(&paths.cluster_conf_dir));
    }
    let mut notify = Notify::new(dirs)?;
    loop {
        look(options, &mut last_look, &mut lock, report, say)?;
        // inotify does not report that a removed directory is created again.
        let is_gone = !paths.here(&paths.conf_dir).exists();
        if notify.wait(if is_gone { SOON } else { LOOK_EVERY }) == Wake::End {
            return Ok(());
        }
    }
}

/// The installation at the last check. The guard keeps this in memory, because another program may
/// remove the runtime's directory with all its files, including the manifest.
struct LastLook {
    installed: Installed,
    /// The size and checksum of the cluster network's file. This is `None`
    /// - before the first check,
    /// - if the guard cannot read the file,
    /// - if the administrator named the cluster network with the key `clusterNetwork` or
    ///   `delegates` ([`Manifest::follows`] is false).
    network: Option<Content>,
}

/// Checks the node once, repairs it if necessary, and reports the state.
fn look(
    options: &Options,
    last_look: &mut LastLook,
    lock: &mut InstallLock,
    report: &mut Report,
    say: Say<'_>,
) -> Result<(), SetupError> {
    let paths = &options.paths;
    let read = Manifest::read(paths)?;
    let is_there = read.is_some();
    if let Some(manifest) = read {
        let before = last_look.network.take();
        last_look.network = before.or_else(|| manifest.network.clone());
        last_look.installed.manifest = manifest;
    }
    if let Some(conf) = Manifest::conf(paths)? {
        last_look.installed.conf = conf;
    }
    let mut installed = last_look.installed.manifest.clone();
    let mut directories = match NodeDirectories::look(paths, Some(&installed)) {
        Ok(directories) => directories,
        // The guard cannot install anything until another program creates the directory again.
        Err(error @ SetupError::NoConfDir(_)) => {
            report.tell(InstallationState::NoNetwork, &error, say);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if !is_there {
        // Another program removed the manifest, usually with the copies of the replaced files.
        // Without a copy, Jackfield cannot restore a replaced file. If copies are left,
        // `Manifest::read` has checked that files with the same name and content are in the
        // runtime's or the plugins' directory.
        //
        // An uninstall cannot have removed the manifest, because an uninstall needs the lock that
        // this process holds.
        installed.replaced.clear();
        directories.previous = OurConf::read(&last_look.installed.conf);
    }
    let plan = match plan::plan(options.template.as_ref(), Some(&installed), &directories)? {
        Outlook::Ready(plan) => plan,
        Outlook::Waiting(reason) => {
            let dir = paths.cluster_conf_dir.clone();
            let notice = Notice::NetworkGone { dir, reason };
            report.tell(InstallationState::NoNetwork, &notice, say);
            return Ok(());
        }
    };
    let before = std::mem::replace(&mut last_look.network, plan.followed(paths));
    let of_binary = binary::drift(paths, &installed);
    let is_rename =
        is_there && of_binary.is_none() && plan.is_rename(&directories, before.as_ref());
    let drift = plan.drift.clone().or(of_binary);
    let drift = drift.or_else(|| (!is_there).then_some(Drift::NoManifest));
    if let Some(drift) = drift {
        lock.renew(paths)?;
        let installed = if is_rename {
            say(&Notice::Follows(drift));
            installed
        } else {
            spend(paths, installed, drift, say)?
        };
        install::put(options, &plan, Some(installed), false, say)?;
    } else {
        let remarks = remarks(&directories);
        let remarks: Vec<&dyn Problem> = remarks.iter().map(|it| it as _).collect();
        report.log(&remarks, say);
    }
    report.send(InstallationState::Installed, &Notice::Well);
    Ok(())
}

/// Returns how the runtime's directory differs from the installed configuration. Ignores a new
/// template of the administrator, and a new name of the cluster network's file.
fn installed_drift(paths: &HostPaths, installed: &Manifest) -> Result<Option<Drift>, SetupError> {
    let directories = NodeDirectories::look(paths, Some(installed))?;
    let before = installed.network.as_ref();
    Ok(match plan::plan(None, Some(installed), &directories)? {
        Outlook::Ready(plan) if !plan.is_rename(&directories, before) => plan.drift,
        _ => None,
    })
}

/// Counts one repair in the manifest, so that the count survives a restart.
///
/// # Errors
/// [`SetupError::GivenUp`] if there have already been [`REPAIRS`] repairs within ten minutes, and
/// [`SetupError::Io`] if the manifest cannot be written.
fn spend(
    paths: &HostPaths,
    mut installed: Manifest,
    drift: Drift,
    say: Say<'_>,
) -> Result<Manifest, SetupError> {
    installed.repairs = installed.recent_repairs().collect();
    if installed.repairs.len() >= REPAIRS {
        return Err(SetupError::GivenUp(Box::new(drift)));
    }
    installed.repairs.push(manifest::now());
    say(&Notice::Repairs {
        number: installed.repairs.len(),
        most: REPAIRS,
        drift,
    });
    installed.stage(paths)?.put()?;
    Ok(installed)
}

/// Returns the differences that the guard accepts, but that an administrator should know about.
fn remarks(directories: &NodeDirectories) -> Vec<Notice> {
    let mut remarks = Vec::new();
    if let Some((name, conf)) = directories.runtime.ours() {
        let followers = conf.follower_types();
        if !followers.is_empty() {
            let name = name.to_owned();
            remarks.push(Notice::Followed { name, followers });
        }
    }
    remarks.extend(directories.runtime.multus().map(Notice::UnusedMultus));
    remarks
}
