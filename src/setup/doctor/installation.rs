//! Checks the installation: whether the files exist and are unchanged, and whether Jackfield's
//! configuration is the first in the runtime's directory.

use std::os::unix::fs::MetadataExt;

use super::{Findings, Options};
use crate::setup::guard::REPAIRS;
use crate::setup::manifest::Manifest;
use crate::setup::plan::{self, NodeDirectories, Outlook};
use crate::setup::{HostPaths, SetupError, binary, version};

/// Checks the runtime's directory and the binary.
pub(super) fn look(options: &Options, mut findings: Findings<'_>) {
    let mut paths = options.paths.clone();
    let manifest = match Manifest::read(&paths) {
        Ok(manifest) => manifest,
        Err(error) => {
            findings.add_problem(paths.conf_dir.display(), &error);
            None
        }
    };
    if let Some(manifest) = &manifest {
        paths
            .cluster_conf_dir
            .clone_from(&manifest.cluster_conf_dir);
    }
    directories(options, &paths, manifest.as_ref(), &mut findings);
    private(&paths, manifest.as_ref(), &mut findings);
    let here = paths.here(&paths.binary());
    if let Some(manifest) = &manifest {
        installed(&paths, manifest, &mut findings);
    } else if !here.is_file() {
        findings.add(
            here.display(),
            "there is no such program, so the runtime cannot call it",
            "run `jackfield install`, or name the right directory with --bin-dir",
        );
    }
    if let Err(error) = binary::check_machine(&paths, None) {
        findings.add_problem(paths.binary().display(), &error);
    }
    let origin = manifest.map_or_else(
        || "installed by hand".to_owned(),
        |manifest| format!("release {}", manifest.version),
    );
    let (binary, dir) = (paths.binary(), paths.conf_dir.display());
    findings.fine(format!(
        "{} ({origin}); its configuration is the first in {dir}",
        binary.display()
    ));
}

/// Checks whether Jackfield's configuration is the first in the runtime's directory, whether the
/// installer would change this configuration, and whether there is a cluster network. Also reports
/// an unfinished uninstall, and a configuration of Multus that the runtime does not use.
fn directories(
    options: &Options,
    paths: &HostPaths,
    manifest: Option<&Manifest>,
    findings: &mut Findings<'_>,
) {
    let dir = paths.conf_dir.display();
    let directories = match NodeDirectories::look(paths, manifest) {
        Ok(directories) => directories,
        // Without `--conf`, the check `configuration` has already reported that the runtime's
        // directory is missing.
        Err(SetupError::NoConfDir(_)) if !paths.is_apart() && options.conf.is_none() => return,
        Err(error) => return findings.add_problem(dir, &error),
    };
    if directories.runtime.ours().is_none() {
        let Some(manifest) = manifest else { return };
        if manifest.is_leaving {
            let problem = "an uninstall has begun, and the binary and the journal stay for pods \
                           that still run";
            let remedy = "run `jackfield uninstall` again when these pods are gone, or `jackfield \
                          install` to keep jackfield";
            return findings.add(dir, problem, remedy);
        }
    }
    match plan::plan(None, manifest, &directories) {
        Ok(Outlook::Ready(plan)) => {
            if let Some(drift) = plan.drift {
                let remedy = format!("{}, then run `jackfield install`", drift.remedy());
                findings.add(dir, drift, remedy);
            }
        }
        Ok(Outlook::Waiting(reason)) => {
            let place = paths.cluster_conf_dir.display();
            let remedy = "repair or reinstall the cluster's network; pods wait until it is back";
            let problem = format!("no configuration of the cluster network: {reason}");
            findings.add(place, problem, remedy);
        }
        Err(error) => findings.add_problem(dir, &error),
    }
    if let (Some(multus), Some(_)) = (directories.runtime.multus(), manifest) {
        findings.add(
            multus.display(),
            "the configuration of Multus exists again, but the runtime does not use it",
            "remove Multus' DaemonSet, then the file",
        );
    }
}

/// Checks that neither the group nor others can write to the runtime's directory, to the directory
/// of the plugins, or to Jackfield's configuration.
fn private(paths: &HostPaths, manifest: Option<&Manifest>, findings: &mut Findings<'_>) {
    let conf = manifest.map(|manifest| &manifest.conf);
    for path in [&paths.conf_dir, &paths.bin_dir].into_iter().chain(conf) {
        let mode = paths.here(path).metadata().map_or(0, |found| found.mode());
        if mode & 0o022 != 0 {
            let problem = format!(
                "its mode is {:o}, so users other than root can write there and decide what runs as root",
                mode & 0o7777
            );
            let remedy = format!("run `chmod go-w {}`", path.display());
            findings.add(path.display(), problem, remedy);
        }
    }
}

fn installed(paths: &HostPaths, manifest: &Manifest, findings: &mut Findings<'_>) {
    let about = manifest.binary.display();
    if let Some(drift) = binary::drift(paths, manifest) {
        let remedy = "run `jackfield install` from the release that you want";
        findings.add(about, drift, remedy);
    } else if manifest.version != version() {
        let (installed, ours) = (&manifest.version, version());
        let problem = format!("it is release {installed}, but this program is release {ours}");
        let remedy = format!("run `{about} doctor`, or install release {ours}");
        findings.add(about, problem, remedy);
    }
    let count = manifest.recent_repairs().count();
    if count > 0 {
        let limit = if count >= REPAIRS {
            "; `install --watch` would refuse a fourth repair"
        } else {
            ""
        };
        let problem = format!("repaired {count} times within the last 10 minutes{limit}");
        let remedy = "find in the log of `install --watch` what was changed, then stop the program \
                      that changes it";
        findings.add(paths.conf_dir.display(), problem, remedy);
    }
}
