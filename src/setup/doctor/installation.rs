//! What was installed: still there, still first, and nobody who undoes it.

use std::os::unix::fs::MetadataExt;

use super::{Check, Diagnosis, Options};
use crate::setup::guard::{REPAIRS, WINDOW, binary_changed};
use crate::setup::manifest::{self, Manifest};
use crate::setup::plan::{self, Outlook, Seen};
use crate::setup::{HostPaths, SetupError, binary, version};

/// Looks at the runtime's directory and at the binary.
pub(super) fn look(options: &Options, diagnosis: &mut Diagnosis) {
    let paths = &options.paths;
    let manifest = match Manifest::read(paths) {
        Ok(manifest) => manifest,
        Err(error) => {
            diagnosis.error(
                Check::Installation,
                paths.conf_dir.display(),
                &error.to_string(),
            );
            None
        }
    };
    let paths = &HostPaths {
        cluster_conf_dir: manifest.as_ref().map_or_else(
            || paths.cluster_conf_dir.clone(),
            |manifest| manifest.cluster_conf_dir.clone(),
        ),
        ..paths.clone()
    };
    directories(paths, manifest.as_ref(), diagnosis);
    private(paths, manifest.as_ref(), diagnosis);
    match &manifest {
        Some(manifest) => installed(paths, manifest, diagnosis),
        None => program(paths, diagnosis),
    }
    if let Err(error) = binary::check_machine(paths, None) {
        diagnosis.error(
            Check::Installation,
            paths.binary().display(),
            &error.to_string(),
        );
    }
    if diagnosis.is_fine(Check::Installation) {
        let by = match manifest {
            Some(manifest) => format!("release {}", manifest.version),
            None => "by hand".to_owned(),
        };
        diagnosis.fine(
            Check::Installation,
            format!(
                "{}, {by}, first in {}",
                paths.binary().display(),
                paths.conf_dir.display()
            ),
        );
    }
}

/// Who comes first, and who renames what is ours.
fn directories(paths: &HostPaths, manifest: Option<&Manifest>, diagnosis: &mut Diagnosis) {
    let dir = paths.conf_dir.display();
    let seen = match Seen::look(paths, manifest) {
        Ok(seen) => seen,
        // The configuration's own look has said so.
        Err(SetupError::NoConfDir { .. }) if !paths.is_apart() => return,
        Err(error) => return diagnosis.error(Check::Installation, dir, &error.to_string()),
    };
    if seen.runtime.ours().is_none() && manifest.is_none() {
        return;
    }
    if seen.runtime.ours().is_none() && manifest.is_some_and(|manifest| manifest.is_leaving) {
        return diagnosis.find(
            Check::Installation,
            dir,
            "jackfield is being taken away, and binary and journal wait for pods that still run",
            "run jackfield uninstall again when they are gone, or jackfield install to stay",
        );
    }
    match plan::plan(None, manifest, &seen) {
        Ok(Outlook::Ready(plan)) => {
            if let Some(why) = &plan.why {
                let remedy = plan::remedy(why);
                let remedy = format!("{remedy}; jackfield install puts it right");
                diagnosis.find(Check::Installation, dir, why.clone(), remedy);
            }
        }
        Ok(Outlook::Waiting(reason)) => diagnosis.find(
            Check::Installation,
            paths.cluster_conf_dir.display(),
            format!("no configuration of the cluster network: {reason}"),
            "install the cluster's network again; pods wait until it is back",
        ),
        Err(error) => diagnosis.error(Check::Installation, dir, &error.to_string()),
    }
    if let (Some(multus), Some(_)) = (seen.runtime.multus(), manifest) {
        diagnosis.find(
            Check::Installation,
            paths.conf_dir.join(&multus.name).display(),
            "the configuration of Multus is there again, and not used",
            "remove Multus' DaemonSet, then the file",
        );
    }
}

/// What root runs is root's alone to change.
fn private(paths: &HostPaths, manifest: Option<&Manifest>, diagnosis: &mut Diagnosis) {
    let conf = manifest.map(|manifest| &manifest.conf);
    for path in [Some(&paths.conf_dir), Some(&paths.bin_dir), conf]
        .into_iter()
        .flatten()
    {
        let mode = paths.here(path).metadata().map_or(0, |found| found.mode());
        if mode & 0o022 != 0 {
            diagnosis.find(
                Check::Installation,
                path.display(),
                format!("it can be written by others than root (mode {:o}), who decide then what runs as root", mode & 0o7777),
                format!("chmod go-w {}", path.display()),
            );
        }
    }
}

fn installed(paths: &HostPaths, manifest: &Manifest, diagnosis: &mut Diagnosis) {
    let about = manifest.binary.display().to_string();
    if let Some(why) = binary_changed(paths, manifest) {
        diagnosis.find(
            Check::Installation,
            &about,
            why,
            "run jackfield install of the release that is wanted",
        );
    } else if manifest.version != version() {
        diagnosis.find(
            Check::Installation,
            &about,
            format!(
                "it is release {}, and this is {}",
                manifest.version,
                version()
            ),
            format!("run {about} doctor, or install this release"),
        );
    }
    let now = manifest::now();
    let recent = |then: &&u64| now.saturating_sub(**then) < WINDOW.as_secs();
    let repairs = manifest.repairs.iter().filter(recent).count();
    if repairs > 0 {
        let given_up = match repairs {
            REPAIRS.. => ", and then given up",
            _ => "",
        };
        diagnosis.find(
            Check::Installation,
            paths.conf_dir.display(),
            format!("repaired {repairs} times within the last 10 minutes{given_up}"),
            "find out in the log of install --watch who changes it, and stop that",
        );
    }
}

fn program(paths: &HostPaths, diagnosis: &mut Diagnosis) {
    let binary = paths.here(&paths.binary());
    if !binary.is_file() {
        diagnosis.find(
            Check::Installation,
            binary.display(),
            "there is no such program, so the runtime cannot call it",
            "run jackfield install, or name the right directory with --bin-dir",
        );
    }
}
