//! What can be wrong with an installation.

use std::path::PathBuf;

use crate::diagnostic::{Problem, line};
use crate::setup::problem::{Drift, NoNetwork};

/// What is wrong with an installation.
#[derive(Debug)]
pub(super) enum InstallationProblem {
    /// An uninstall waits for pods that still run.
    Leaving,
    /// The node differs from the installation.
    Drift(Drift),
    /// There is no cluster network.
    NoNetwork(NoNetwork),
    /// Multus has a configuration that the runtime does not use.
    UnusedMultus,
    /// Other users than root can write to a path.
    Writable {
        /// The path.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The installed release is another one than this.
    OtherRelease {
        /// The installed binary.
        binary: PathBuf,
        /// Its release.
        installed: semver::Version,
        /// This release.
        ours: semver::Version,
    },
    /// The installer made repairs lately.
    Repaired {
        /// How many within the last 10 minutes.
        count: usize,
        /// Whether it gave up.
        has_given_up: bool,
    },
    /// The binary is missing.
    NoProgram,
}

impl Problem for InstallationProblem {
    fn words(&self) -> String {
        match self {
            InstallationProblem::Leaving => {
                "an uninstall has begun, and binary and journal wait for pods that still run"
                    .to_owned()
            }
            InstallationProblem::Drift(drift) => drift.words(),
            InstallationProblem::NoNetwork(reason) => {
                format!("no configuration of the cluster network: {}", line(reason))
            }
            InstallationProblem::UnusedMultus => {
                "the configuration of Multus is there again, and not used".to_owned()
            }
            InstallationProblem::Writable { mode, .. } => format!(
                "other users than root can write there (mode {mode:o}), and so decide what runs as \
                 root"
            ),
            InstallationProblem::OtherRelease {
                installed, ours, ..
            } => format!("it is release {installed}, and this is {ours}"),
            InstallationProblem::Repaired {
                count,
                has_given_up,
            } => format!(
                "repaired {count} times within the last 10 minutes{}",
                if *has_given_up {
                    ", and then given up"
                } else {
                    ""
                }
            ),
            InstallationProblem::NoProgram => {
                "there is no such program, so the runtime cannot call it".to_owned()
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            InstallationProblem::Leaving => {
                "run jackfield uninstall again when they are gone, or jackfield install to stay"
            }
            InstallationProblem::Drift(drift) if drift.is_of_binary() => {
                "run jackfield install of the release that you want"
            }
            InstallationProblem::Drift(drift) => {
                let remedy = drift.remedy()?;
                return Some(format!("{remedy}; jackfield install repairs it"));
            }
            InstallationProblem::NoNetwork(_) => {
                "install the cluster's network again; pods wait until it is back"
            }
            InstallationProblem::UnusedMultus => "remove Multus' DaemonSet, then the file",
            InstallationProblem::Writable { path, .. } => {
                return Some(format!("chmod go-w {}", path.display()));
            }
            InstallationProblem::OtherRelease { binary, .. } => {
                return Some(format!(
                    "run {} doctor, or install this release",
                    binary.display()
                ));
            }
            InstallationProblem::Repaired { .. } => {
                "find in the log of install --watch which program changes it, and stop that"
            }
            InstallationProblem::NoProgram => {
                "run jackfield install, or name the right directory with --bin-dir"
            }
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                InstallationProblem::Drift(Drift::BinaryReplaced { path: "/a".into() }),
                "/a was replaced; run jackfield install of the release that you want",
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
                InstallationProblem::Repaired {
                    count: 3,
                    has_given_up: true,
                },
                "repaired 3 times within the last 10 minutes, and then given up; find in the log \
                 of install --watch which program changes it, and stop that",
            ),
        ] {
            assert_eq!(line(&problem), expected);
        }
    }
}
