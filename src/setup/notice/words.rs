//! The words for what the installer reports while it works.

use super::{Notice, TakeoverRemark};
use crate::diagnostic::{Problem, line};
use crate::setup::NAME;

impl Problem for Notice {
    fn words(&self) -> String {
        match self {
            Notice::Installed {
                binary,
                conf,
                network,
            } => format!(
                "installed {} and {}, in front of {}",
                binary.display(),
                conf.display(),
                network.as_deref().unwrap_or("its delegates"),
            ),
            Notice::Well => format!("{NAME} is the node's network"),
            Notice::WaitsForNetwork { dir, reason } => format!(
                "waiting for the cluster network's configuration in {}: {}",
                dir.display(),
                line(reason)
            ),
            Notice::NetworkGone { dir, reason } => format!(
                "no configuration of the cluster network in {}: {}; pods wait until it is back",
                dir.display(),
                line(reason)
            ),
            Notice::Repairs {
                number,
                most,
                drift,
            } => format!(
                "repairing ({number} of {most} within 10 minutes): {}",
                drift.words()
            ),
            Notice::Follows(drift) => drift.words(),
            Notice::Followed { name, followers } => {
                format!(
                    "{name} is followed by {}, which is accepted",
                    followers.join(", ")
                )
            }
            Notice::UnusedMultus { file } => format!("{} is there and not used", file.display()),
            Notice::Remark { file, remark } => format!("{}: {}", file.display(), remark.words()),
            Notice::NotInstalled => {
                format!("{NAME} is not installed, so the node stays as it is")
            }
            Notice::NoMultusToGoBackTo => {
                format!("there is no configuration of Multus to go back to, so {NAME} stays")
            }
            Notice::MultusIsBack { .. } => format!(
                "Multus has the node back, and binary and journal stay for the pods that {NAME} \
                 attached"
            ),
            Notice::Attempt(text) | Notice::Operation(text) => text.clone(),
            Notice::NothingInstalled { dir } => {
                format!("nothing is installed in {}", dir.display())
            }
            Notice::RewrittenStays(path) => {
                format!("{} was rewritten meanwhile and stays", path.display())
            }
            Notice::Restored(path) => format!("put {} back as it was", path.display()),
            Notice::Removed(path) => format!("removed {}", path.display()),
            Notice::MultusNamesOurs(path) => {
                format!("{} names our configuration, which goes", path.display())
            }
            Notice::NetworkCopied { file, conf_dir, .. } => format!(
                "put a copy of {} into {}, so that the runtime has a network",
                file.display(),
                conf_dir.display()
            ),
            Notice::BinaryStays(path) => {
                format!(
                    "{} was replaced by another program and stays",
                    path.display()
                )
            }
            Notice::DamagedRecords { first, count } => format!(
                "{}: a damaged record, one of {count}, whose pod may still be attached; its \
                 devices and addresses stay as they are",
                first.display()
            ),
            Notice::DefaultJournal => {
                "the configuration that was installed is gone, so the journal is looked for in its \
                 default directory"
                    .to_owned()
            }
            Notice::Detached(key) => format!("detached {}:{}", key.container, key.ifname),
            Notice::MultusCacheCleared { count, dir } => format!(
                "cleared {count} detached containers out of Multus' {}",
                dir.display()
            ),
            Notice::DirStays { dir, cause } => format!("{} stays: {cause}", dir.display()),
            Notice::Uninstalled => "uninstalled".to_owned(),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Notice::UnusedMultus { .. } => {
                Some("remove Multus' DaemonSet when nothing needs it any more".to_owned())
            }
            Notice::Remark { remark, .. } => remark.remedy(),
            Notice::MultusIsBack { binary } => Some(format!(
                "run {} uninstall on the node when they are gone",
                binary.display()
            )),
            Notice::MultusNamesOurs(_) => {
                Some("restart Multus' DaemonSet, or correct the file".to_owned())
            }
            Notice::NetworkCopied {
                cluster_conf_dir, ..
            } => Some(format!(
                "let it read {} again, then remove the copy",
                cluster_conf_dir.display()
            )),
            _ => None,
        }
    }
}

impl Problem for TakeoverRemark {
    fn words(&self) -> String {
        match self {
            TakeoverRemark::UnknownKey(key) => format!("unknown key {key:?} is not taken along"),
            TakeoverRemark::UnknownLogLevel(level) => {
                format!("logLevel {level:?}, which Multus does not know either, is not taken along")
            }
            TakeoverRemark::IgnoredDelegates => {
                "delegates is not taken along, since Multus uses clusterNetwork".to_owned()
            }
            TakeoverRemark::KubeconfigOfMultus(path) => {
                format!("Multus' DaemonSet maintains {path}")
            }
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            TakeoverRemark::KubeconfigOfMultus(_) => Some(
                "before you remove it, run jackfield agent and give kubeconfig the value null in \
                 --conf"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::problem::{Drift, NoNetwork};

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
                "installed /bin/jackfield and /dir/a, in front of its delegates",
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
                 it is back",
            ),
            (
                Notice::Repairs {
                    number: 1,
                    most: 3,
                    drift: Drift::NoManifest,
                },
                "repairing (1 of 3 within 10 minutes): the manifest of the installation is missing",
            ),
            (
                Notice::Remark {
                    file: "/m".into(),
                    remark: TakeoverRemark::UnknownKey("a\"b".to_owned()),
                },
                r#"/m: unknown key "a\"b" is not taken along"#,
            ),
            (
                Notice::Remark {
                    file: "/m".into(),
                    remark: TakeoverRemark::KubeconfigOfMultus("/k".to_owned()),
                },
                "/m: Multus' DaemonSet maintains /k; before you remove it, run jackfield agent and \
                 give kubeconfig the value null in --conf",
            ),
            (
                Notice::MultusIsBack {
                    binary: "/bin/jackfield".into(),
                },
                "Multus has the node back, and binary and journal stay for the pods that jackfield \
                 attached; run /bin/jackfield uninstall on the node when they are gone",
            ),
        ];
        for (notice, expected) in lines {
            assert_eq!(line(&notice), expected);
        }
    }
}
