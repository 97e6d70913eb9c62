//! What can be wrong with the journal and with the sandboxes on record.

use std::path::{Path, PathBuf};

use crate::cluster::PodName;
use crate::diagnostic::Problem;
use crate::journal::{Header, JournalError, Key};
use crate::kernel::KernelError;
use crate::operation::recovery::retire::has_netns;

/// A path without a network namespace, for a DEL that must not enter one.
const NO_NETNS: &str = "/run/netns/gone";
/// How many pods or namespaces a finding about many of them names.
const NAMED: usize = 5;

/// What is wrong with the journal or with a sandbox on record.
#[derive(Debug)]
pub(in crate::setup::doctor) enum JournalProblem {
    /// The journal cannot be used.
    Unusable(JournalError),
    /// The file system of the journal is full.
    Full,
    /// A record cannot be read; the journal's description.
    Damaged(String),
    /// A damaged record was put aside.
    Quarantined {
        /// Whether its sandbox is detached.
        is_settled: bool,
    },
    /// Taking over a pod of Multus' was interrupted.
    HalfAdopted,
    /// Sandboxes are on record from before the node's last boot.
    Rebooted {
        /// Their names.
        names: Vec<String>,
        /// The command that detaches the first.
        command: DetachCommand,
    },
    /// The sandbox's network namespace is gone.
    NoNetns {
        /// The namespace.
        netns: String,
        /// How many attachments are on record.
        owed: usize,
        /// The command that detaches it.
        command: DetachCommand,
    },
    /// The record ends in half a step.
    Torn(PathBuf),
    /// The ADD was interrupted.
    Incomplete {
        /// How many attachments are on record.
        owed: usize,
        /// The command that detaches it.
        command: DetachCommand,
    },
    /// The interfaces of the pod cannot be listed.
    NoInterfaces(KernelError),
    /// An interface of the pod is missing.
    MissingInterface {
        /// The interface.
        name: String,
        /// Its network.
        network: String,
    },
    /// Network namespaces of pods have no record.
    LostNamespaces {
        /// Each namespace with its interfaces.
        names: Vec<String>,
    },
}

/// The command that does what the runtime should have done.
#[derive(Debug)]
pub(in crate::setup::doctor) struct DetachCommand {
    conf: PathBuf,
    pod: Option<PodName>,
    key: Key,
    netns: String,
}

impl DetachCommand {
    pub(super) fn new(conf: &Path, header: &Header) -> DetachCommand {
        let netns = if has_netns(header) {
            header.netns.as_str()
        } else {
            NO_NETNS
        };
        DetachCommand {
            conf: conf.to_owned(),
            pod: header.pod.clone(),
            key: header.key(),
            netns: netns.to_owned(),
        }
    }

    fn words(&self) -> String {
        let Some(PodName {
            namespace, name, ..
        }) = &self.pod
        else {
            return "let the runtime remove the container, or detach it by jackfield gc".to_owned();
        };
        let Key { container, ifname } = &self.key;
        format!(
            "run jackfield detach --conf {} --pod {namespace}/{name} --container-id {container} \
             --ifname {ifname} --netns {}",
            self.conf.display(),
            self.netns
        )
    }

    /// The command for a sandbox whose DEL may still come.
    fn unless_the_runtime_does(&self) -> String {
        match self.pod {
            Some(_) => format!("unless the runtime still does, {}", self.words()),
            None => self.words(),
        }
    }
}

impl Problem for JournalProblem {
    fn words(&self) -> String {
        match self {
            JournalProblem::Unusable(cause) => cause.words(),
            JournalProblem::Full => "its file system is full, so every ADD fails".to_owned(),
            JournalProblem::Damaged(cause) => cause.clone(),
            JournalProblem::Quarantined { is_settled: true } => {
                "a damaged record was put aside, and its sandbox is detached".to_owned()
            }
            JournalProblem::Quarantined { is_settled: false } => {
                "a damaged record was put aside, and its sandbox may still be attached".to_owned()
            }
            JournalProblem::HalfAdopted => "taking over a pod of Multus' ended half way".to_owned(),
            JournalProblem::Rebooted { names, .. } => format!(
                "{} sandboxes were attached before the node's last boot, and the runtime sent no \
                 DEL for them: {}",
                names.len(),
                first_few(names)
            ),
            JournalProblem::NoNetns { netns, owed, .. } => format!(
                "its network namespace {netns} is gone and {owed} attachments are on record: the \
                 runtime sent no DEL"
            ),
            JournalProblem::Torn(path) => format!(
                "its record {} ends in half a step, because of a full disk or a killed process",
                path.display()
            ),
            JournalProblem::Incomplete { owed, .. } => format!(
                "its ADD ended half way and {owed} attachments are on record: the runtime sent no \
                 DEL"
            ),
            JournalProblem::NoInterfaces(cause) => {
                format!("its interfaces cannot be listed: {cause}")
            }
            JournalProblem::MissingInterface { name, network } => {
                format!("interface {name} of network {network} is on record and not in the pod")
            }
            JournalProblem::LostNamespaces { names } => format!(
                "{} network namespaces of pods have interfaces and no record, so the journal was \
                 lost or another program attached them: {}",
                names.len(),
                first_few(names)
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            JournalProblem::Unusable(cause) => return cause.remedy(),
            JournalProblem::Full => "free space there",
            JournalProblem::Damaged(_) => {
                "leave it where it is: the DEL of its pod detaches as much as possible and puts it \
                 aside"
            }
            JournalProblem::Quarantined { is_settled: true } => {
                "look for a full disk or a power loss at the time of the file, then remove it"
            }
            JournalProblem::Quarantined { is_settled: false } => {
                "delete its pod: that DEL detaches as much as possible; then remove the file"
            }
            JournalProblem::HalfAdopted => {
                "nothing: the next GC removes the file, and the DEL of the pod starts over"
            }
            JournalProblem::Rebooted { command, .. } => {
                return Some(format!(
                    "wait until kubelet has removed them; for each that stays, {}",
                    command.words()
                ));
            }
            JournalProblem::NoNetns { command, .. }
            | JournalProblem::Incomplete { command, .. } => {
                return Some(command.unless_the_runtime_does());
            }
            JournalProblem::Torn(_) => {
                "free space there; its DEL detaches everything that the ADD began"
            }
            JournalProblem::NoInterfaces(_) | JournalProblem::MissingInterface { .. } => {
                "recreate the pod; jackfield check tells more about it"
            }
            JournalProblem::LostNamespaces { .. } => {
                "recreate their pods, and keep the journal's directory"
            }
        };
        Some(remedy.to_owned())
    }
}

/// The first of many names, and how many more there are.
fn first_few(names: &[String]) -> String {
    let named = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::line;

    fn command(pod: Option<PodName>) -> DetachCommand {
        DetachCommand {
            conf: "/conf".into(),
            pod,
            key: Key {
                container: "c".parse().unwrap(),
                ifname: "eth0".parse().unwrap(),
            },
            netns: NO_NETNS.to_owned(),
        }
    }

    #[test]
    fn many_sandboxes_are_counted_and_the_first_are_named() {
        let names = (1..=7).map(|number| format!("pod {number}")).collect();
        let problem = JournalProblem::LostNamespaces { names };
        assert_eq!(
            line(&problem),
            "7 network namespaces of pods have interfaces and no record, so the journal was lost \
             or another program attached them: pod 1, pod 2, pod 3, pod 4, pod 5 and 2 more; \
             recreate their pods, and keep the journal's directory"
        );
    }

    #[test]
    fn the_remedy_is_a_command_where_the_pod_is_known() {
        let pod = PodName {
            namespace: "demo".to_owned(),
            name: "web".to_owned(),
            uid: None,
        };
        let run = "run jackfield detach --conf /conf --pod demo/web --container-id c --ifname eth0 \
                   --netns /run/netns/gone";
        for (pod, expected) in [
            (Some(pod), format!("unless the runtime still does, {run}")),
            (
                None,
                "let the runtime remove the container, or detach it by jackfield gc".to_owned(),
            ),
        ] {
            let problem = JournalProblem::Incomplete {
                owed: 2,
                command: command(pod),
            };
            assert_eq!(problem.remedy(), Some(expected));
            assert_eq!(
                problem.words(),
                "its ADD ended half way and 2 attachments are on record: the runtime sent no DEL"
            );
        }
    }
}
