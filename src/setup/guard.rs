//! `install --watch`: keeps binary and configuration as they were installed.
//!
//! Who else writes into the runtime's directory may remove or rename what is there (Cilium renames
//! all other configurations), append itself to the first list (Istio), or rename the cluster
//! network's own. What still begins with us is accepted; what does not is repaired, until it is
//! plain that somebody undoes it: then it is said, and left alone, since two that repair each
//! other leave a node without any network in between.

use std::time::Duration;

use super::binary::{Content, wrong_mode};
use super::install::{self, Installed, Options};
use super::install_lock::InstallLock;
use super::manifest::{self, Manifest};
use super::notify::{Notify, Wake};
use super::plan::{self, Outlook, Seen};
use super::report::Report;
use super::standby::{self, Outcome};
use super::{HostPaths, Say, SetupError};
use crate::cluster::InstallationState;
use crate::cni::RawObject;

/// How many repairs are made within [`WINDOW`].
pub(super) const REPAIRS: usize = 3;
pub(super) const WINDOW: Duration = Duration::from_secs(600);
/// How often everything is looked at although nothing was told to have changed.
const LOOK_EVERY: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(1);
/// What the cluster is told of a node on which all is well.
const INSTALLED: &str = "jackfield is the node's network";

/// Installs, then watches until this process is told to end.
///
/// # Errors
/// [`SetupError::GivenUp`] after three repairs within ten minutes, across restarts too; and those
/// of [`install::install`].
pub fn watch(options: &Options, say: Say<'_>) -> Result<(), SetupError> {
    let mut report = Report::new(options);
    let outcome = keep(options, &mut report, say);
    if let Err(error) = &outcome {
        report.tell(InstallationState::Failed, &error.to_string());
    }
    outcome
}

fn keep(options: &Options, report: &mut Report, say: Say<'_>) -> Result<(), SetupError> {
    let outcome = standby::wait(options, report, say)?;
    if outcome == Outcome::End {
        return Ok(());
    }
    // Whether Multus gives way has been decided.
    let options = &Options {
        from_multus: None,
        ..options.clone()
    };
    let mut lock = InstallLock::take(&options.paths)?;
    let paths = &options.paths;
    if let Some(installed) = Manifest::read(paths)?.filter(|installed| !installed.is_leaving) {
        // Installed before: what is not right now, somebody changed. Another template or release
        // is no repair.
        match disturbed(paths, &installed)? {
            Some(why) => drop(spend(paths, installed, &why, say)?),
            None if outcome == Outcome::TookOver => {}
            None => report.is_known(InstallationState::Installed, INSTALLED),
        }
    }
    let mut waiting = |reason: &str| report.tell(InstallationState::NoNetwork, reason);
    match install::held(options, &lock, say, &mut waiting)? {
        Installed::Done => {}
        Installed::Ended | Installed::Rehearsed(_) => return Ok(()),
    }
    let mut dirs = vec![paths.here(&paths.conf_dir), paths.here(&paths.bin_dir)];
    if paths.is_apart() {
        dirs.push(paths.here(&paths.cluster_conf_dir));
    }
    let mut notify = Notify::new(dirs)?;
    let mut said = String::new();
    let mut known = None;
    loop {
        let state = look(options, &mut known, &mut lock, &mut said, say)?;
        let words = match state {
            InstallationState::Installed => INSTALLED,
            _ => said.as_str(),
        };
        report.tell(state, words);
        // A directory that is gone tells nobody that it is made anew.
        let is_gone = !paths.here(&paths.conf_dir).exists();
        if notify.wait(if is_gone { SOON } else { LOOK_EVERY }) == Wake::End {
            return Ok(());
        }
    }
}

/// What was installed: kept here too, for a directory may vanish with all that it holds.
struct Known {
    manifest: Manifest,
    conf: Option<RawObject>,
    /// What the followed network's file held at the last look.
    network: Option<Content>,
}

/// One look, and a repair where one is needed; how the node is then.
fn look(
    options: &Options,
    known: &mut Option<Known>,
    lock: &mut InstallLock,
    said: &mut String,
    say: Say<'_>,
) -> Result<InstallationState, SetupError> {
    let paths = &options.paths;
    let read = Manifest::read(paths)?;
    let is_there = read.is_some();
    if let Some(manifest) = read {
        let conf = Manifest::conf(paths)?;
        let before = known.take().and_then(|known| known.network);
        let network = before.or_else(|| manifest.network.clone());
        *known = Some(Known {
            manifest,
            conf,
            network,
        });
    }
    let Some(known) = known else {
        return Err(SetupError::NotYet(format!(
            "{}: the manifest of the installation is gone; install again",
            paths.conf_dir.display()
        )));
    };
    let mut installed = known.manifest.clone();
    let seen = match Seen::look(paths, Some(&installed)) {
        Ok(seen) => seen,
        // Nothing can be put into a directory that is gone; whoever makes it anew wakes us.
        Err(error @ SetupError::NoConfDir { .. }) => {
            once(said, &error.to_string(), say);
            return Ok(InstallationState::NoNetwork);
        }
        Err(error) => return Err(error),
    };
    let seen = match is_there {
        true => seen,
        false => {
            // Nobody uninstalls while it is our turn, so it was swept away, and with it whatever
            // was kept of before.
            installed.replaced.clear();
            seen.remembering(known.conf.as_ref())
        }
    };
    let plan = match plan::plan(options.template.as_ref(), Some(&installed), &seen)? {
        Outlook::Ready(plan) => plan,
        Outlook::Waiting(reason) => {
            let dir = paths.cluster_conf_dir.display();
            let line = format!(
                "no configuration of the cluster network in {dir}: {reason}; pods wait until it is back"
            );
            once(said, &line, say);
            return Ok(InstallationState::NoNetwork);
        }
    };
    let why = plan
        .why
        .clone()
        .or_else(|| binary_changed(paths, &installed))
        .or_else(|| (!is_there).then(|| "the manifest of the installation is gone".to_owned()));
    let before = std::mem::replace(&mut known.network, plan.followed(paths));
    let Some(why) = why else {
        once(said, &remark(paths, &seen), say);
        return Ok(InstallationState::Installed);
    };
    lock.renew(paths)?;
    let is_rename = is_there
        && plan.is_rename(&seen, before.as_ref())
        && binary_changed(paths, &installed).is_none();
    let installed = if is_rename {
        say(&why);
        installed
    } else {
        spend(paths, installed, &why, say)?
    };
    install::put(options, &plan, Some(installed), false, say)?;
    Ok(InstallationState::Installed)
}

/// What is not as it was installed, whatever is to be installed now.
fn disturbed(paths: &HostPaths, installed: &Manifest) -> Result<Option<String>, SetupError> {
    let seen = Seen::look(paths, Some(installed))?;
    let none: Option<&RawObject> = None;
    Ok(match plan::plan(none, Some(installed), &seen)? {
        Outlook::Ready(plan) if plan.is_rename(&seen, installed.network.as_ref()) => None,
        Outlook::Ready(plan) => plan.why,
        Outlook::Waiting(_) => None,
    })
}

/// Counts one repair, on disk, so that a restart does not begin anew.
fn spend(
    paths: &HostPaths,
    mut installed: Manifest,
    why: &str,
    say: Say<'_>,
) -> Result<Manifest, SetupError> {
    let now = manifest::now();
    let recent = |then: &u64| now.saturating_sub(*then) < WINDOW.as_secs();
    installed.repairs.retain(recent);
    if installed.repairs.len() >= REPAIRS {
        return Err(SetupError::GivenUp {
            what: why.to_owned(),
            remedy: plan::remedy(why),
        });
    }
    installed.repairs.push(now);
    say(&format!(
        "repairing ({} of {REPAIRS} within 10 minutes): {why}",
        installed.repairs.len()
    ));
    installed.stage(paths)?.put()?;
    Ok(installed)
}

pub(super) fn binary_changed(paths: &HostPaths, installed: &Manifest) -> Option<String> {
    let path = installed.binary.display();
    match Content::of(&paths.here(&installed.binary)) {
        Ok(content) if content == installed.content => {
            let wrong = wrong_mode(&paths.here(&installed.binary));
            wrong.map(|wrong| format!("{path}: {wrong}"))
        }
        Ok(_) => Some(format!("{path} was replaced")),
        Err(cause) => Some(format!("{path}: {cause}")),
    }
}

/// What is accepted, and worth knowing.
fn remark(paths: &HostPaths, seen: &Seen) -> String {
    let mut remarks = Vec::new();
    if let Some((name, conf)) = seen.runtime.ours() {
        let followers = conf.follower_types();
        if !followers.is_empty() {
            let followers = followers.join(", ");
            remarks.push(format!(
                "{name} is followed by {followers}, which is accepted"
            ));
        }
    }
    if let Some(multus) = seen.runtime.multus() {
        remarks.push(format!(
            "{} is there and not used; remove Multus' DaemonSet when it is not needed any more",
            paths.conf_dir.join(&multus.name).display()
        ));
    }
    remarks.join("; ")
}

/// Says a line unless it was the last one.
fn once(said: &mut String, line: &str, say: Say<'_>) {
    if said != line {
        if !line.is_empty() {
            say(line);
        }
        *said = line.to_owned();
    }
}
