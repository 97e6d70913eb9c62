//! Checks what was installed: whether it is still there, still first, and left alone.

mod problem;

use std::os::unix::fs::MetadataExt;

use problem::InstallationProblem;

use super::{Check, Diagnosis, Options};
use crate::setup::guard::{REPAIRS, WINDOW};
use crate::setup::manifest::{self, Manifest};
use crate::setup::plan::{self, NodeDirectories, Outlook};
use crate::setup::{HostPaths, SetupError, binary, version};

/// Checks the runtime's directory and the binary.
pub(super) fn look(options: &Options, diagnosis: &mut Diagnosis) {
    let paths = &options.paths;
    let manifest = match Manifest::read(paths) {
        Ok(manifest) => manifest,
        Err(error) => {
            diagnosis.find(Check::Installation, paths.conf_dir.display(), error);
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
        diagnosis.find(Check::Installation, paths.binary().display(), error);
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

/// Checks whether our configuration is there and comes first.
fn directories(paths: &HostPaths, manifest: Option<&Manifest>, diagnosis: &mut Diagnosis) {
    let dir = paths.conf_dir.display();
    let directories = match NodeDirectories::look(paths, manifest) {
        Ok(directories) => directories,
        // The check of the configuration has found this.
        Err(SetupError::NoConfDir { .. }) if !paths.is_apart() => return,
        Err(error) => return diagnosis.find(Check::Installation, dir, error),
    };
    if directories.runtime.ours().is_none() && manifest.is_none() {
        return;
    }
    if directories.runtime.ours().is_none() && manifest.is_some_and(|manifest| manifest.is_leaving)
    {
        return diagnosis.find(Check::Installation, dir, InstallationProblem::Leaving);
    }
    match plan::plan(None, manifest, &directories) {
        Ok(Outlook::Ready(plan)) => {
            if let Some(drift) = plan.drift {
                let problem = InstallationProblem::Drift(drift);
                diagnosis.find(Check::Installation, dir, problem);
            }
        }
        Ok(Outlook::Waiting(reason)) => {
            let place = paths.cluster_conf_dir.display();
            let problem = InstallationProblem::NoNetwork(reason);
            diagnosis.find(Check::Installation, place, problem);
        }
        Err(error) => diagnosis.find(Check::Installation, dir, error),
    }
    if let (Some(multus), Some(_)) = (directories.runtime.multus(), manifest) {
        let file = paths.conf_dir.join(&multus.name);
        let problem = InstallationProblem::UnusedMultus;
        diagnosis.find(Check::Installation, file.display(), problem);
    }
}

/// Checks that only root can change the programs and configurations that root runs.
fn private(paths: &HostPaths, manifest: Option<&Manifest>, diagnosis: &mut Diagnosis) {
    let conf = manifest.map(|manifest| &manifest.conf);
    for path in [Some(&paths.conf_dir), Some(&paths.bin_dir), conf]
        .into_iter()
        .flatten()
    {
        let mode = paths.here(path).metadata().map_or(0, |found| found.mode());
        if mode & 0o022 != 0 {
            let problem = InstallationProblem::Writable {
                path: path.clone(),
                mode: mode & 0o7777,
            };
            diagnosis.find(Check::Installation, path.display(), problem);
        }
    }
}

fn installed(paths: &HostPaths, manifest: &Manifest, diagnosis: &mut Diagnosis) {
    let problem = match binary::drift(paths, manifest) {
        Some(drift) => Some(InstallationProblem::Drift(drift)),
        None if manifest.version == version() => None,
        None => Some(InstallationProblem::OtherRelease {
            binary: manifest.binary.clone(),
            installed: manifest.version.clone(),
            ours: version(),
        }),
    };
    if let Some(problem) = problem {
        let about = manifest.binary.display();
        diagnosis.find(Check::Installation, about, problem);
    }
    let now = manifest::now();
    let recent = |then: &&u64| now.saturating_sub(**then) < WINDOW.as_secs();
    let repairs = manifest.repairs.iter().filter(recent).count();
    if repairs > 0 {
        let problem = InstallationProblem::Repaired {
            count: repairs,
            has_given_up: repairs >= REPAIRS,
        };
        diagnosis.find(Check::Installation, paths.conf_dir.display(), problem);
    }
}

fn program(paths: &HostPaths, diagnosis: &mut Diagnosis) {
    let binary = paths.here(&paths.binary());
    if !binary.is_file() {
        let problem = InstallationProblem::NoProgram;
        diagnosis.find(Check::Installation, binary.display(), problem);
    }
}
