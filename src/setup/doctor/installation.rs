//! Checks what was installed: whether it is still there, still first, and left alone.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::{Advised, Findings, Options};
use crate::diagnostic::Problem;
use crate::setup::guard::REPAIRS;
use crate::setup::manifest::Manifest;
use crate::setup::plan::{self, NodeDirectories, Outlook};
use crate::setup::problem::{Drift, NoNetwork};
use crate::setup::{HostPaths, SetupError, binary, version};

/// What is wrong with an installation.
#[derive(Debug, thiserror::Error)]
enum InstallationProblem {
    /// The runtime's directory differs from the installation.
    #[error("{0}")]
    Drift(Drift),
    /// There is no cluster network.
    #[error("no configuration of the cluster network: {0}")]
    NoNetwork(NoNetwork),
    /// Other users than root can write to a path.
    #[error(
        "other users than root can write there (mode {mode:o}), and so decide what runs as root"
    )]
    Writable {
        /// The path.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The installed release is another one than this.
    #[error("it is release {installed}, and this is {ours}")]
    OtherRelease {
        /// The installed binary.
        binary: PathBuf,
        /// Its release.
        installed: semver::Version,
        /// This release.
        ours: semver::Version,
    },
    /// The installer made repairs within the last 10 minutes.
    #[error(
        "repaired {count} times within the last 10 minutes{}",
        if *count >= REPAIRS { ", and then given up" } else { "" }
    )]
    Repaired { count: usize },
}

impl Problem for InstallationProblem {
    fn words(&self) -> String {
        self.to_string()
    }

    fn remedy(&self) -> Option<String> {
        Some(match self {
            InstallationProblem::Drift(drift) => {
                format!("{}; jackfield install repairs it", drift.remedy())
            }
            InstallationProblem::NoNetwork(_) => {
                "install the cluster's network again; pods wait until it is back".to_owned()
            }
            InstallationProblem::Writable { path, .. } => {
                format!("chmod go-w {}", path.display())
            }
            InstallationProblem::OtherRelease { binary, .. } => {
                format!("run {} doctor, or install this release", binary.display())
            }
            InstallationProblem::Repaired { .. } => {
                "find in the log of install --watch which program changes it, and stop that"
                    .to_owned()
            }
        })
    }
}

/// Checks the runtime's directory and the binary.
pub(super) fn look(options: &Options, mut findings: Findings<'_>) {
    let mut paths = options.paths.clone();
    let manifest = match Manifest::read(&paths) {
        Ok(manifest) => manifest,
        Err(error) => {
            findings.add(paths.conf_dir.display(), error);
            None
        }
    };
    if let Some(manifest) = &manifest {
        paths
            .cluster_conf_dir
            .clone_from(&manifest.cluster_conf_dir);
    }
    directories(&paths, manifest.as_ref(), &mut findings);
    private(&paths, manifest.as_ref(), &mut findings);
    let here = paths.here(&paths.binary());
    if let Some(manifest) = &manifest {
        installed(&paths, manifest, &mut findings);
    } else if !here.is_file() {
        let problem = Advised(
            "there is no such program, so the runtime cannot call it",
            "run jackfield install, or name the right directory with --bin-dir",
        );
        findings.add(here.display(), problem);
    }
    if let Err(error) = binary::check_machine(&paths, None) {
        findings.add(paths.binary().display(), error);
    }
    let by = manifest.map_or_else(
        || "by hand".to_owned(),
        |manifest| format!("release {}", manifest.version),
    );
    let (binary, dir) = (paths.binary(), paths.conf_dir.display());
    findings.fine(format!("{}, {by}, first in {dir}", binary.display()));
}

/// Checks whether our configuration is there and comes first.
fn directories(paths: &HostPaths, manifest: Option<&Manifest>, findings: &mut Findings<'_>) {
    let dir = paths.conf_dir.display();
    let directories = match NodeDirectories::look(paths, manifest) {
        Ok(directories) => directories,
        // The check of the configuration has found this.
        Err(SetupError::NoConfDir(_)) if !paths.is_apart() => return,
        Err(error) => return findings.add(dir, error),
    };
    if directories.runtime.ours().is_none() {
        match manifest {
            None => return,
            Some(manifest) if manifest.is_leaving => {
                let problem = Advised(
                    "an uninstall has begun, and binary and journal wait for pods that still run",
                    "run jackfield uninstall again when they are gone, or jackfield install to stay",
                );
                return findings.add(dir, problem);
            }
            Some(_) => {}
        }
    }
    match plan::plan(None, manifest, &directories) {
        Ok(Outlook::Ready(plan)) => {
            if let Some(drift) = plan.drift {
                findings.add(dir, InstallationProblem::Drift(drift));
            }
        }
        Ok(Outlook::Waiting(reason)) => {
            let place = paths.cluster_conf_dir.display();
            findings.add(place, InstallationProblem::NoNetwork(reason));
        }
        Err(error) => findings.add(dir, error),
    }
    if let (Some(multus), Some(_)) = (directories.runtime.multus(), manifest) {
        let problem = Advised(
            "the configuration of Multus is there again, and not used",
            "remove Multus' DaemonSet, then the file",
        );
        findings.add(multus.display(), problem);
    }
}

/// Checks that only root can change the programs and configurations that root runs.
fn private(paths: &HostPaths, manifest: Option<&Manifest>, findings: &mut Findings<'_>) {
    let conf = manifest.map(|manifest| &manifest.conf);
    for path in [&paths.conf_dir, &paths.bin_dir].into_iter().chain(conf) {
        let mode = paths.here(path).metadata().map_or(0, |found| found.mode());
        if mode & 0o022 != 0 {
            let problem = InstallationProblem::Writable {
                path: path.clone(),
                mode: mode & 0o7777,
            };
            findings.add(path.display(), problem);
        }
    }
}

fn installed(paths: &HostPaths, manifest: &Manifest, findings: &mut Findings<'_>) {
    let about = manifest.binary.display();
    if let Some(drift) = binary::drift(paths, manifest) {
        let remedy = "run jackfield install of the release that you want";
        findings.add(about, Advised(drift, remedy));
    } else if manifest.version != version() {
        let problem = InstallationProblem::OtherRelease {
            binary: manifest.binary.clone(),
            installed: manifest.version.clone(),
            ours: version(),
        };
        findings.add(about, problem);
    }
    let count = manifest.recent_repairs().count();
    if count > 0 {
        let problem = InstallationProblem::Repaired { count };
        findings.add(paths.conf_dir.display(), problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::line;

    #[test]
    fn problems_have_their_words() {
        for (problem, expected) in [
            (
                InstallationProblem::Drift(Drift::NotFirst {
                    first: "/a".into(),
                    ours: "b".to_owned(),
                }),
                "/a comes before b; rename that file, or let the runtime read a directory of its \
                 own; jackfield install repairs it",
            ),
            (
                InstallationProblem::Writable {
                    path: "/a".into(),
                    mode: 0o777,
                },
                "other users than root can write there (mode 777), and so decide what runs as \
                 root; chmod go-w /a",
            ),
            (
                InstallationProblem::Repaired { count: 3 },
                "repaired 3 times within the last 10 minutes, and then given up; find in the log \
                 of install --watch which program changes it, and stop that",
            ),
        ] {
            assert_eq!(line(&problem), expected);
        }
    }
}
