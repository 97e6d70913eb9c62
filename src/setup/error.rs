//! The errors of `install`, `install --watch` and `uninstall`.

use std::io;
use std::io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem, StorageFull};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::binary::Machine;
use super::manifest::FORM;
use super::problem::{Drift, NoNetwork};
use super::{NAME, version};
use crate::cluster::conf_dir::ConfDirError;
use crate::cni::JsonError;
use crate::diagnostic::Problem;
use crate::journal::JournalError;
use crate::operation::Failure;
use crate::request::{NodeConfigError, RequestError};

/// Why a change of the installation failed. If an installation fails, the node keeps its previous
/// network.
///
/// `Display` names the object and what is wrong. [`Problem::remedy`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// An action on a file or directory failed.
    #[error("{path}: cannot be {action}: {cause}")]
    Io {
        /// The path, as this process sees it.
        path: PathBuf,
        /// The past participle of the action, such as `read` or `put in place`.
        action: &'static str,
        /// Why the action failed.
        #[source]
        cause: io::Error,
    },
    /// The directory of the runtime or of the cluster network does not exist.
    #[error("{0} does not exist")]
    NoConfDir(PathBuf),
    /// Another process is changing the installation in this directory.
    #[error("{0}: another {NAME} install or uninstall is running there")]
    Busy(PathBuf),
    /// There is no cluster network to delegate to.
    #[error(
        "waited {} for the cluster network's configuration in {dir}: {}",
        humantime::format_duration(*waited), reason
    )]
    NoClusterNetwork {
        /// The directory.
        dir: PathBuf,
        /// How long the installer waited.
        waited: Duration,
        /// Why there is no network.
        reason: Box<NoNetwork>,
    },
    /// This file configures Multus, and `--from-multus` is not set.
    #[error("{0} is the configuration of Multus")]
    Multus(PathBuf),
    /// The directory has no Multus to take over from.
    #[error("no configuration of Multus in {0}")]
    NoMultus(PathBuf),
    /// The runtime does not use Multus.
    #[error("{first} comes before {multus}, so the runtime does not use Multus")]
    MultusNotFirst {
        /// The file that the runtime uses.
        first: PathBuf,
        /// The configuration of Multus.
        multus: PathBuf,
    },
    /// The file of Multus' configuration cannot be read.
    #[error("{}", .0.words())]
    MultusFile(ConfDirError),
    /// The configuration of Multus in this file cannot be used.
    #[error("{0}: {1}")]
    MultusConf(PathBuf, #[source] MultusConfError),
    /// The rehearsal found this number of pods that would fail. A rehearsal prepares each pod's ADD
    /// but runs no plugin.
    #[error("{0} of this node's pods would fail with {NAME}, so Multus stays")]
    PodsWouldFail(usize),
    /// The rehearsal could not be completed.
    #[error(
        "Multus stays, because {NAME} cannot find out whether pods would fail: {}",
        .0.to_cni().msg
    )]
    NoRehearsal(#[source] Box<Failure>),
    /// A file in the runtime's directory sorts before every name that Jackfield's configuration may
    /// have.
    #[error("{0} comes before every name that {NAME}'s configuration may have")]
    NotFirst(PathBuf),
    /// The configuration to install is invalid.
    #[error("the configuration to install: {0}")]
    Conf(#[from] Box<NodeConfigError>),
    /// With the configuration to install, Jackfield would delegate to itself.
    #[error("the configuration to install: with the key {key}, {NAME} would call itself")]
    CallsItself {
        /// The key that names Jackfield. This is `delegates`, or `clusterNetwork` followed by the
        /// key's value, such as `clusterNetwork /a`.
        key: String,
    },
    /// A newer binary is installed.
    #[error(
        "{path} is {NAME} {installed}, and `install` does not replace it with the older {NAME} {}, \
         which may be unable to read the newer journal",
        version()
    )]
    Downgrade {
        /// The binary.
        path: PathBuf,
        /// The version of the installed binary.
        installed: Box<semver::Version>,
    },
    /// A program on the node is built for a different machine than this binary. The program is a
    /// plugin or the installed binary.
    #[error("this {NAME} is for {ours}, and {path} on this node is for {theirs}")]
    OtherMachine {
        /// The program.
        path: PathBuf,
        /// The machine that the program is built for.
        theirs: Machine,
        /// The machine of this binary.
        ours: Machine,
    },
    /// The installation needs a fourth repair within ten minutes.
    #[error("{0}; repaired 3 times within 10 minutes, so {NAME} gives up")]
    GivenUp(Box<Drift>),
    /// The content of this file cannot be used. The file is the manifest, or `conf.json` beside the
    /// manifest. `conf.json` is a copy of Jackfield's configuration.
    #[error("{0}: {1}")]
    Manifest(PathBuf, #[source] ManifestError),
    /// The manifest is missing, so the original path of a replaced file is unknown.
    #[error(
        "{kept} is the only copy of a replaced file, whose original path is unknown because the \
         manifest is missing"
    )]
    NoManifest {
        /// The only copy of the file.
        kept: PathBuf,
        /// The folder in which the manifest should be.
        folder: PathBuf,
    },
    /// Jackfield is installed, but the manifest is missing from the runtime's directory.
    #[error("{0}: the manifest of the installation is missing")]
    ManifestGone(PathBuf),
    /// The configuration changes `journalDir`, so Jackfield would not find the records of attached
    /// pods.
    #[error("journalDir would become {to}, but {count} sandboxes are on record in {from}")]
    JournalMoved {
        /// The directory that has the records.
        from: PathBuf,
        /// The directory in which Jackfield would look for records.
        to: PathBuf,
        /// How many sandboxes are on record.
        count: usize,
    },
    /// The journal cannot be read.
    #[error("{}", .0.words())]
    Journal(#[from] JournalError),
    /// The journal has damaged records, whose pods may still be attached.
    #[error(
        "{first}: the record is damaged ({count} damaged records in all), and its pod may still be \
         attached"
    )]
    DamagedRecords {
        /// One of the files.
        first: PathBuf,
        /// The number of damaged records.
        count: usize,
    },
    /// The installed configuration is invalid, so Jackfield cannot find the journal.
    #[error("the installed configuration: {0}")]
    InstalledConf(#[source] Box<RequestError>),
    /// Sandboxes are on record, but this process runs in a container, where it cannot detach them.
    #[error(
        "{count} sandboxes are on record in {journal}, and `uninstall` cannot detach them from \
         inside a container"
    )]
    InContainer {
        /// The number of sandboxes.
        count: usize,
        /// The host's path of the journal.
        journal: PathBuf,
        /// The installed binary.
        binary: PathBuf,
    },
    /// The uninstall failed before it detached any sandbox.
    #[error("{}", .0.to_cni().msg)]
    Retire(#[source] Box<Failure>),
    /// Some sandboxes could not be detached.
    #[error(
        "{binary} and the journal stay, because {} sandboxes could not be detached: {}",
        failures.len(), lines(failures)
    )]
    NotDetached {
        /// The failure of each sandbox.
        failures: Vec<Failure>,
        /// The installed binary.
        binary: PathBuf,
    },
    /// Pods that Jackfield attached are still running.
    #[error(
        "pods that {NAME} attached are still running ({}), so {binary} and the journal stay for \
         them, and new pods get the previous network",
        names.join(", ")
    )]
    StillAttached {
        /// The names of the pods, or the IDs of their containers if the names are unknown.
        names: Vec<String>,
        /// The installed binary.
        binary: PathBuf,
    },
    /// This directory cannot be watched.
    #[error("{0}: cannot be watched: {1}")]
    Watch(PathBuf, #[source] io::Error),
}

/// Why the configuration of Multus cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MultusConfError {
    /// The text is not the expected JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// In the list of plugins, another plugin comes before Multus.
    #[error("Multus is not the first plugin of its list")]
    NotFirstPlugin,
}

/// Why the manifest of an installation cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The manifest is not the expected JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The configuration beside the manifest is not a JSON object.
    #[error(transparent)]
    Conf(#[from] JsonError),
    /// The manifest has a format that this version does not read.
    #[error("its format is {0}, but this version reads format {FORM}")]
    Form(u32),
}

impl SetupError {
    /// Returns the error of a failed action on a file or directory.
    pub(super) fn io(path: &Path, action: &'static str, cause: io::Error) -> SetupError {
        SetupError::Io {
            path: path.to_owned(),
            action,
            cause,
        }
    }

    /// Returns the error of an unusable Multus configuration.
    pub(super) fn multus(file: &Path, cause: impl Into<MultusConfError>) -> SetupError {
        SetupError::MultusConf(file.to_owned(), cause.into())
    }

    /// Returns the error of an unreadable manifest, or of an unreadable configuration beside it.
    pub(super) fn manifest(file: &Path, cause: impl Into<ManifestError>) -> SetupError {
        SetupError::Manifest(file.to_owned(), cause.into())
    }
}

fn lines(failures: &[Failure]) -> String {
    let lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
    lines.join("; also ")
}

impl Problem for SetupError {
    fn words(&self) -> String {
        self.to_string()
    }

    fn remedy(&self) -> Option<String> {
        let remedy: &str = match self {
            SetupError::Io { cause, .. } => match cause.kind() {
                StorageFull => "free space there, then run this again",
                ReadOnlyFilesystem | PermissionDenied => {
                    "make it readable and writable, then run this again"
                }
                NotFound => "create it, or name the right directory",
                _ => "check the file system",
            },
            SetupError::NoConfDir(_) => "create it, or correct --conf-dir or --cluster-conf-dir",
            SetupError::Busy(_) => {
                "wait until that process has ended, then run this again; to end `install --watch`, \
                 delete its DaemonSet, or stop the process if it has no DaemonSet"
            }
            SetupError::NoClusterNetwork { .. } => {
                "install the cluster's network, or name its directory with --cluster-conf-dir; \
                 nothing was written"
            }
            SetupError::Multus(_) => "take it over with `install --from-multus`, or remove it",
            SetupError::NoMultus(_) => {
                "omit --from-multus, or set --conf-dir to the directory that the runtime reads"
            }
            SetupError::MultusNotFirst { .. } => {
                "to take over from Multus, rename the file that comes first, so that it sorts \
                 after the file of Multus; to install without a takeover, remove the file of \
                 Multus and omit --from-multus; in both cases, run this again"
            }
            SetupError::MultusFile(_) | SetupError::MultusConf(..) => {
                "correct it; Multus stays as it is"
            }
            SetupError::PodsWouldFail(_) => {
                "correct the listed problems; to take over anyway, use --force"
            }
            SetupError::NoRehearsal(_) => "to take over anyway, use --force",
            SetupError::NotFirst(_) => {
                "rename it, or give the runtime and the cluster network separate directories \
                 (--conf-dir, --cluster-conf-dir)"
            }
            SetupError::Conf(_) => "correct it",
            SetupError::CallsItself { .. } => "in this key, name the cluster network instead",
            SetupError::Downgrade { installed, .. } => &format!(
                "use release {installed} or newer; to install the older release anyway, use \
                 --allow-downgrade"
            ),
            SetupError::OtherMachine { theirs, .. } => &format!("use the image for {theirs}"),
            SetupError::GivenUp(drift) => {
                &format!("{}, then restart this installer", drift.remedy())
            }
            SetupError::Manifest(..) => {
                "restore the file from a backup; without a backup, move the files in \
                 .jackfield/before/ back to their original paths, restore their modes, remove the \
                 folder .jackfield, then run `install` again"
            }
            SetupError::NoManifest { folder, .. } => &format!(
                "move each program in {0}/before to the directory of --bin-dir, and every other \
                 file there to the directory of --conf-dir; remove the number and the hyphen at \
                 the start of each name, restore the modes of the moved files, remove {0}, then \
                 run `install` again",
                folder.display()
            ),
            SetupError::ManifestGone(_) => "run `install` again; only then can you uninstall",
            SetupError::JournalMoved { .. } => {
                "leave journalDir unchanged until the pods of these sandboxes are gone"
            }
            SetupError::Journal(cause) => return cause.remedy(),
            SetupError::InstalledConf(_) | SetupError::Retire(_) => return None,
            SetupError::DamagedRecords { .. } => {
                "`uninstall` has changed nothing; delete the pod of each damaged record, so that \
                 its DEL detaches as much as possible, then run `uninstall` again; to discard the \
                 damaged records instead, run `uninstall --force`"
            }
            SetupError::InContainer { binary, .. } => {
                &format!("run `{} uninstall` on the host itself", binary.display())
            }
            SetupError::NotDetached { .. } => "correct the causes, then run `uninstall` again",
            SetupError::StillAttached { .. } => {
                "run `uninstall` again when these pods are gone, or with --force to detach them now"
            }
            SetupError::Watch(..) => {
                "raise the sysctls fs.inotify.max_user_instances and fs.inotify.max_user_watches"
            }
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic;

    #[test]
    fn a_message_contains_the_object_the_problem_and_the_remedy() {
        let io = |kind| SetupError::io("/a".as_ref(), "written", io::Error::from(kind));
        let lines = [
            (
                io(StorageFull),
                "/a: cannot be written: no storage space; free space there, then run this again",
            ),
            (
                io(NotFound),
                "/a: cannot be written: entity not found; create it, or name the right directory",
            ),
            (
                SetupError::NoClusterNetwork {
                    dir: "/a".into(),
                    waited: Duration::from_secs(5),
                    reason: Box::new(NoNetwork::Missing),
                },
                "waited 5s for the cluster network's configuration in /a: there is none; install the \
                 cluster's network, or name its directory with --cluster-conf-dir; nothing was \
                 written",
            ),
            (
                SetupError::MultusConf("/a".into(), MultusConfError::NotFirstPlugin),
                "/a: Multus is not the first plugin of its list; correct it; Multus stays as it is",
            ),
            (
                SetupError::CallsItself {
                    key: "clusterNetwork /a".to_owned(),
                },
                "the configuration to install: with the key clusterNetwork /a, jackfield would \
                 call itself; in this key, name the cluster network instead",
            ),
            (
                SetupError::GivenUp(Box::new(Drift::Renamed {
                    file: "/a".into(),
                    to: "a.cilium_bak".to_owned(),
                })),
                "/a was renamed to a.cilium_bak; repaired 3 times within 10 minutes, so jackfield \
                 gives up; set cni.exclusive to false in Cilium's values, then restart this \
                 installer",
            ),
        ];
        for (error, line) in lines {
            assert_eq!(diagnostic::line(&error), line);
        }
    }
}
