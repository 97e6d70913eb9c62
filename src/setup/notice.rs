//! What the installer reports while it runs.

use std::io;
use std::path::PathBuf;

use super::NAME;
use super::problem::{Drift, NoNetwork};
use crate::diagnostic::Problem;
use crate::journal::Key;
use crate::operation::Note;

/// A step that the installer has taken, or something that an administrator should know.
///
/// `Display` describes what happened. [`Problem::remedy`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Notice {
    /// The binary and the configuration are in place.
    #[error(
        "installed {binary} and {conf}, so {NAME} delegates to {}",
        network.as_deref().unwrap_or("the networks of its key \"delegates\"")
    )]
    Installed {
        /// The binary.
        binary: PathBuf,
        /// The configuration.
        conf: PathBuf,
        /// The value of `clusterNetwork`; `None` if the key `delegates` contains the network.
        network: Option<String>,
    },
    /// The installed files are complete and unchanged.
    #[error("the binary and the configuration of {NAME} are in place")]
    Well,
    /// The installer waits for the cluster network.
    #[error("waiting for the cluster network's configuration in {dir}: {reason}")]
    WaitsForNetwork {
        /// The directory.
        dir: PathBuf,
        /// Why there is no network.
        reason: NoNetwork,
    },
    /// There is no usable configuration of the cluster network any more.
    #[error(
        "no configuration of the cluster network in {dir}: {reason}; pods wait until the \
         configuration is back"
    )]
    NetworkGone {
        /// The directory.
        dir: PathBuf,
        /// Why there is no network.
        reason: NoNetwork,
    },
    /// The installer makes a repair.
    #[error(
        "repairing the installation ({number} of at most {most} repairs within 10 minutes): {drift}"
    )]
    Repairs {
        /// How many repairs the installer has made within ten minutes, including this one.
        number: usize,
        /// The maximum number of repairs within ten minutes.
        most: usize,
        /// The difference that the installer repairs.
        drift: Drift,
    },
    /// Another program has appended plugins to the list in Jackfield's configuration.
    #[error("{name}: other programs appended plugins, and {NAME} accepts them: {}", followers.join(", "))]
    Followed {
        /// The file name of Jackfield's configuration.
        name: String,
        /// The types of the appended plugins.
        followers: Vec<String>,
    },
    /// The cluster network's file was renamed. The installer writes the new name into the key
    /// `clusterNetwork` of Jackfield's configuration.
    #[error("{0}")]
    Follows(Drift),
    /// A configuration of Multus is in the same directory as Jackfield's configuration.
    #[error("Multus' configuration {0} exists, but the runtime does not use it")]
    UnusedMultus(PathBuf),
    /// A key of Multus' configuration in this file needs attention.
    #[error("{0}: {1}")]
    Remark(PathBuf, TakeoverRemark),
    /// `install --from-multus --back` finds no installation on the node.
    #[error("{NAME} is not installed, so the node stays as it is")]
    NotInstalled,
    /// `install --from-multus --back` finds no configuration of Multus on the node.
    #[error("there is no configuration of Multus to go back to, so {NAME} stays")]
    NoMultusToGoBackTo,
    /// Multus is the node's network again. Jackfield's binary stays at this path.
    #[error(
        "Multus is the node's network again, and the binary and the journal stay for the pods that \
         {NAME} attached"
    )]
    MultusIsBack(PathBuf),
    /// A note that an uninstall made while it detached sandboxes.
    #[error("{0}")]
    OfCall(Note),
    /// One notice of an attempt to take over from Multus, as text. `install --watch` collects the
    /// notices of an attempt, and does not report them if the attempt fails for the same reason as
    /// the previous attempt.
    #[error("{0}")]
    Attempt(String),
    /// `uninstall` finds no installation in the directory.
    #[error("nothing is installed in {0}")]
    NothingInstalled(PathBuf),
    /// A file stays, because another program has rewritten it since the installation.
    #[error("{0} was rewritten by another program and stays")]
    RewrittenStays(PathBuf),
    /// A replaced file was restored.
    #[error("restored {0}")]
    Restored(PathBuf),
    /// A file or the journal's directory was removed.
    #[error("removed {0}")]
    Removed(PathBuf),
    /// A configuration of Multus delegates to Jackfield.
    #[error(
        "{0} makes Multus delegate to jackfield, but `uninstall` removes jackfield's configuration"
    )]
    MultusNamesOurs(PathBuf),
    /// The cluster network's configuration was copied into the runtime's directory.
    #[error("copied {file} to {conf_dir}, so that the runtime has a network")]
    NetworkCopied {
        /// The configuration.
        file: PathBuf,
        /// The runtime's directory.
        conf_dir: PathBuf,
        /// The directory with the cluster network's configuration.
        cluster_conf_dir: PathBuf,
    },
    /// Uninstall leaves the binary in place, because another program put it there.
    #[error("another program has replaced {0}, so `uninstall` leaves that file in place")]
    BinaryStays(PathBuf),
    /// The uninstall ignores damaged records, because `--force` is set.
    #[error(
        "{first}: the record is damaged ({count} damaged records in all); pods with such records \
         may still be attached, and `uninstall` leaves the devices and addresses of these pods as \
         they are"
    )]
    DamagedRecords {
        /// One of the damaged records.
        first: PathBuf,
        /// The number of damaged records.
        count: usize,
    },
    /// The installed configuration is missing, so the uninstall uses the default directory of the
    /// journal.
    #[error(
        "the installed configuration is missing, so `uninstall` uses the default directory of the \
         journal"
    )]
    DefaultJournal,
    /// A sandbox was detached.
    #[error("detached {}:{}", .0.container, .0.ifname)]
    Detached(Key),
    /// The detached containers were removed from Multus' cache.
    #[error("removed {count} detached containers from Multus' cache {dir}")]
    MultusCacheCleared {
        /// The number of containers.
        count: usize,
        /// The cache.
        dir: PathBuf,
    },
    /// A directory cannot be removed.
    #[error("{dir} stays: {cause}")]
    DirStays {
        /// The directory.
        dir: PathBuf,
        /// Why it cannot be removed.
        cause: io::Error,
    },
    /// The uninstall is complete. Earlier notices name what stays.
    #[error("uninstalled")]
    Uninstalled,
}

/// What an administrator should know about Multus' configuration before the takeover.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TakeoverRemark {
    /// Neither Multus nor Jackfield supports the key.
    #[error("unknown key {0:?} is not taken over")]
    UnknownKey(String),
    /// Multus has no such log level.
    #[error("unknown logLevel {0:?} is not taken over")]
    UnknownLogLevel(String),
    /// The configuration has both `delegates` and `clusterNetwork`, and Multus uses
    /// `clusterNetwork`.
    #[error("key \"delegates\" is not taken over, since Multus uses \"clusterNetwork\"")]
    IgnoredDelegates,
    /// Jackfield's configuration names this kubeconfig, and only Multus' DaemonSet renews it.
    #[error("only Multus' DaemonSet renews the kubeconfig {0}")]
    KubeconfigOfMultus(String),
}

impl Problem for Notice {
    fn words(&self) -> String {
        self.to_string()
    }

    fn remedy(&self) -> Option<String> {
        let remedy: &str = match self {
            Notice::UnusedMultus(_) => "remove Multus' DaemonSet when nothing needs it any more",
            Notice::Remark(_, TakeoverRemark::KubeconfigOfMultus(_)) => {
                "start `jackfield agent`, set \"kubeconfig\" to null in the file that \
                 `install --conf` names, then remove Multus' DaemonSet"
            }
            Notice::MultusNamesOurs(_) => "restart Multus' DaemonSet, or correct the file",
            Notice::MultusIsBack(binary) => &format!(
                "run `{} uninstall` on the node when these pods are gone",
                binary.display()
            ),
            Notice::NetworkCopied {
                cluster_conf_dir, ..
            } => &format!(
                "configure {} as the runtime's CNI directory again, then remove the copy",
                cluster_conf_dir.display()
            ),
            _ => return None,
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::line;

    #[test]
    fn a_notice_is_one_line() {
        let dir = || "/dir".into();
        let lines = [
            (
                Notice::Installed {
                    binary: "/bin/jackfield".into(),
                    conf: "/dir/a".into(),
                    network: None,
                },
                "installed /bin/jackfield and /dir/a, so jackfield delegates to the networks of its key \"delegates\"",
            ),
            (
                Notice::WaitsForNetwork {
                    dir: dir(),
                    reason: NoNetwork::Missing,
                },
                "waiting for the cluster network's configuration in /dir: there is none",
            ),
            (
                Notice::NetworkGone {
                    dir: dir(),
                    reason: NoNetwork::Missing,
                },
                "no configuration of the cluster network in /dir: there is none; pods wait until \
                 the configuration is back",
            ),
            (
                Notice::Repairs {
                    number: 1,
                    most: 3,
                    drift: Drift::NoManifest,
                },
                "repairing the installation (1 of at most 3 repairs within 10 minutes): the manifest \
                 of the installation (.jackfield/manifest.json) is missing",
            ),
            (
                Notice::Remark("/m".into(), TakeoverRemark::UnknownKey("a\"b".to_owned())),
                r#"/m: unknown key "a\"b" is not taken over"#,
            ),
            (
                Notice::Remark(
                    "/m".into(),
                    TakeoverRemark::KubeconfigOfMultus("/k".to_owned()),
                ),
                "/m: only Multus' DaemonSet renews the kubeconfig /k; start `jackfield agent`, set \
                 \"kubeconfig\" to null in the file that `install --conf` names, then remove \
                 Multus' DaemonSet",
            ),
            (
                Notice::MultusIsBack("/bin/jackfield".into()),
                "Multus is the node's network again, and the binary and the journal stay for the pods \
                 that jackfield attached; run `/bin/jackfield uninstall` on the node when these \
                 pods are gone",
            ),
        ];
        for (notice, expected) in lines {
            assert_eq!(line(&notice), expected);
        }
    }
}
