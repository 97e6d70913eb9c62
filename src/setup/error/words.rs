//! The words for why a node could not be set up, kept or cleared.

use std::fmt;
use std::io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem, StorageFull};

use super::{FileAction, MultusConfError, SetupError};
use crate::diagnostic::Problem;
use crate::setup::NAME;

impl fmt::Display for FileAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileAction::Read => "cannot be read",
            FileAction::Write => "cannot be written",
            FileAction::Create => "cannot be created",
            FileAction::Open => "cannot be opened",
            FileAction::Lock => "cannot be locked",
            FileAction::Remove => "cannot be removed",
            FileAction::PutInPlace => "cannot be put in place",
            FileAction::ChangeOwner => "cannot be given to its owner",
            FileAction::Start => "cannot be started",
        })
    }
}

impl Problem for SetupError {
    #[allow(clippy::too_many_lines, reason = "one arm per error")]
    fn words(&self) -> String {
        match self {
            SetupError::Io {
                path,
                action,
                cause,
            } => format!("{}: {action}: {cause}", path.display()),
            SetupError::NoConfDir { dir } => format!("{} does not exist", dir.display()),
            SetupError::Busy { dir } => format!(
                "{}: another {NAME} install or uninstall is at work there",
                dir.display()
            ),
            SetupError::NoClusterNetwork {
                dir,
                waited,
                reason,
            } => format!(
                "no configuration of the cluster network in {} within {} ({})",
                dir.display(),
                humantime::format_duration(*waited),
                crate::diagnostic::line(&**reason)
            ),
            SetupError::Multus { file } => {
                format!("{} is the configuration of Multus", file.display())
            }
            SetupError::NoMultus { dir } => {
                format!("no configuration of Multus in {}", dir.display())
            }
            SetupError::MultusNotFirst { first, multus } => format!(
                "{} comes before {}, so the runtime does not use Multus",
                first.display(),
                multus.display()
            ),
            SetupError::MultusConf { file, cause } => match &**cause {
                // This cause names the file.
                MultusConfError::File(cause) => cause.to_string(),
                cause => format!("{}: {cause}", file.display()),
            },
            SetupError::PodsWouldFail { count } => {
                format!("{count} of this node's pods would fail with {NAME}, so Multus stays")
            }
            SetupError::NoRehearsal { cause } => {
                format!(
                    "cannot find out whether pods would fail, so Multus stays: {}",
                    cause.to_cni().msg
                )
            }
            SetupError::NotFirst { file } => format!(
                "{} comes before every name that {NAME}'s configuration may have",
                file.display()
            ),
            SetupError::Conf(cause) => format!("the configuration to install: {cause}"),
            SetupError::CallsItself { cluster_network } => format!(
                "the configuration to install: {} is {NAME} itself, which would call itself",
                match cluster_network {
                    Some(network) => format!("clusterNetwork {network}"),
                    None => "delegates".to_owned(),
                }
            ),
            SetupError::Downgrade {
                path,
                installed,
                ours,
            } => format!(
                "{} is {NAME} {installed} and this is {ours}, an older one that may not read its \
                 journal",
                path.display()
            ),
            SetupError::OtherMachine { path, theirs, ours } => format!(
                "this {NAME} is for {ours}, and {} on this node is for {theirs}",
                path.display()
            ),
            SetupError::GivenUp(drift) => format!(
                "{}; repaired 3 times within 10 minutes, so {NAME} gives up",
                drift.words()
            ),
            SetupError::Manifest { file, cause } => format!("{}: {cause}", file.display()),
            SetupError::NoManifest { kept, .. } => format!(
                "{} was replaced by an installation whose manifest is gone",
                kept.display()
            ),
            SetupError::ManifestGone { dir } => format!(
                "{}: the manifest of what is installed is gone",
                dir.display()
            ),
            SetupError::JournalMoved { from, to, count } => format!(
                "journalDir is to be {}, and {count} sandboxes are on record in {}",
                to.display(),
                from.display()
            ),
            SetupError::Journal(cause) => cause.to_string(),
            SetupError::DamagedRecords { first, count } => format!(
                "{}: a damaged record, one of {count}, whose pod may still be attached",
                first.display()
            ),
            SetupError::InstalledConf(cause) => format!("the installed configuration: {cause}"),
            SetupError::InContainer { count, journal, .. } => {
                format!("{count} sandboxes are on record in {}", journal.display())
            }
            SetupError::Retire(cause) => cause.to_cni().msg,
            SetupError::NotDetached { failures, binary } => {
                let lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
                format!(
                    "{} sandboxes could not be detached, so {} and the journal stay: {}",
                    failures.len(),
                    binary.display(),
                    lines.join("; also ")
                )
            }
            SetupError::StillAttached { names, binary } => format!(
                "pods that {NAME} attached still run, so {} and the journal stay for them, and new \
                 pods get the previous network: {}",
                binary.display(),
                names.join(", ")
            ),
            SetupError::Watch { dir, cause } => format!("watching {}: {cause}", dir.display()),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            SetupError::Io { cause, .. } => match cause.kind() {
                StorageFull => "nothing was changed: free space there and run it again",
                ReadOnlyFilesystem | PermissionDenied => {
                    "nothing was changed: make it writable for this process and run it again"
                }
                NotFound => "create it, or name the right directory",
                _ => "check the file system",
            },
            SetupError::NoConfDir { .. } => {
                "name the directory that the container runtime reads with --conf-dir, or create it"
            }
            SetupError::Busy { .. } => "end it first (install --watch runs as long as its pod)",
            SetupError::NoClusterNetwork { .. } => {
                "install the cluster's network, or name its directory with --cluster-conf-dir; \
                 nothing was written"
            }
            SetupError::Multus { .. } => "take it over with install --from-multus, or remove it",
            SetupError::NoMultus { .. } => {
                "leave --from-multus out, or name the directory that the runtime reads with \
                 --conf-dir"
            }
            SetupError::MultusNotFirst { .. } => {
                "rename or remove the file that is not meant, then run it again"
            }
            SetupError::MultusConf { .. } => "correct it; Multus goes on as it is",
            SetupError::PodsWouldFail { .. } => {
                "correct what is listed, or take over anyway with --force"
            }
            SetupError::NoRehearsal { .. } => "or take over anyway with --force",
            SetupError::NotFirst { .. } => {
                "rename it, or let the runtime read a directory of its own (--conf-dir, \
                 --cluster-conf-dir)"
            }
            SetupError::Conf(_) => "correct it",
            SetupError::CallsItself { .. } => "correct it: name the cluster network",
            SetupError::Downgrade { installed, .. } => {
                return Some(format!(
                    "use an image of {installed} or newer, or go back with --allow-downgrade"
                ));
            }
            SetupError::OtherMachine { theirs, .. } => {
                return Some(format!("use the image for {theirs}"));
            }
            SetupError::GivenUp(drift) => {
                let remedy = drift.remedy()?;
                return Some(format!("{remedy}, then restart this installer"));
            }
            SetupError::Manifest { .. } => {
                "put the file back, or put what before/ beside it keeps back where it was and \
                 remove that folder, then install again"
            }
            SetupError::NoManifest { folder, .. } => {
                return Some(format!(
                    "put it back where it was and remove {}, then run this again",
                    folder.display()
                ));
            }
            SetupError::ManifestGone { .. } => "install again, then uninstall if that was the aim",
            SetupError::JournalMoved { .. } => "leave it as it is until their pods are gone",
            SetupError::Journal(_) | SetupError::InstalledConf(_) | SetupError::Retire(_) => {
                return None;
            }
            SetupError::DamagedRecords { .. } => {
                "delete its pod, whose DEL detaches as much as possible, then run uninstall again, \
                 or with --force to leave it; nothing was changed"
            }
            SetupError::InContainer { binary, .. } => {
                return Some(format!(
                    "run {} uninstall on the host itself, where it can detach them",
                    binary.display()
                ));
            }
            SetupError::NotDetached { .. } => "run uninstall again",
            SetupError::StillAttached { .. } => {
                "run uninstall again when they are gone, or with --force to detach them now"
            }
            SetupError::Watch { .. } => "raise fs.inotify.max_user_instances and max_user_watches",
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;
    use crate::setup::problem::{Drift, NoNetwork};

    #[test]
    fn a_line_names_object_problem_and_remedy() {
        let io = |kind| SetupError::io("/a".as_ref(), FileAction::Write, Error::from(kind));
        let lines = [
            (
                io(ErrorKind::StorageFull),
                "/a: cannot be written: no storage space; nothing was changed: free space there \
                 and run it again",
            ),
            (
                io(ErrorKind::NotFound),
                "/a: cannot be written: entity not found; create it, or name the right directory",
            ),
            (
                SetupError::NoClusterNetwork {
                    dir: "/a".into(),
                    waited: std::time::Duration::from_secs(5),
                    reason: Box::new(NoNetwork::Missing),
                },
                "no configuration of the cluster network in /a within 5s (there is none); install \
                 the cluster's network, or name its directory with --cluster-conf-dir; nothing was \
                 written",
            ),
            (
                SetupError::MultusConf {
                    file: "/a".into(),
                    cause: Box::new(MultusConfError::NotFirstPlugin),
                },
                "/a: Multus is not the first plugin of its list; correct it; Multus goes on as it \
                 is",
            ),
            (
                SetupError::CallsItself {
                    cluster_network: Some("/a".to_owned()),
                },
                "the configuration to install: clusterNetwork /a is jackfield itself, which would \
                 call itself; correct it: name the cluster network",
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
            assert_eq!(error.to_string(), line);
        }
    }
}
