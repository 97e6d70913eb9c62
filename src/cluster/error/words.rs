//! What the cluster did not do, in words.

use super::{AgentAbsence, AgentProblem, ClusterError, FolderError, KeepProblem};
use crate::cluster::pod::MOST_CONTAINERS;
use crate::diagnostic::Problem;

impl Problem for ClusterError {
    fn words(&self) -> String {
        match self {
            Self::Folder { folder, source } => {
                format!("manifestDir {}: {}", folder.display(), source.words())
            }
            Self::UnknownPod { pod, place } => format!("pod {pod} is not known in {place}"),
            Self::Devices { pod, source } => {
                format!("pod {pod}: annotation jackfield.io/devices: {source}")
            }
            Self::Status { pod, path, source } => {
                format!("status of pod {pod}: {}: {source}", path.display())
            }
            Self::ManyContainers { pod } => format!(
                "pod {pod} has more than {MOST_CONTAINERS} containers or requests for devices \
                 which its networks may use"
            ),
            Self::OtherPod { pod, asked, known } => {
                format!("pod {pod}: the runtime has UID {asked}, the cluster {known}")
            }
            Self::OtherNode { pod, node, ours } => {
                format!("pod {pod} is bound to node {node}, this is {ours}")
            }
            Self::Api(source) => source.words(),
            Self::Event(source) => {
                format!("cannot create an event for the pod: {}", source.words())
            }
            Self::Agent { socket, source } => {
                format!("agent at {}: {}", socket.display(), source.words())
            }
            Self::Untrusted { socket, uid } => format!(
                "agentSocket {} belongs to user {uid}, not to root",
                socket.display()
            ),
            Self::Owed {
                pod,
                path,
                source,
                agent,
            } => format!(
                "status of pod {pod}: {}: {source}, and {}",
                path.display(),
                agent.words()
            ),
            Self::NotListed => "the agent has not listed the node's pods yet".to_owned(),
            Self::NoAgent { socket, source } => format!(
                "the agent does not answer on {}: {}",
                socket.display(),
                source.words()
            ),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Folder { source, .. } => return source.remedy(),
            Self::Api(source) | Self::Event(source) => return source.remedy(),
            Self::Agent { source, .. } => return source.remedy(),
            Self::NoAgent { source, .. } => return source.remedy(),
            Self::OtherNode { node, .. } => {
                return Some(format!(
                    "start the agent with --node {node}, or correct the pod"
                ));
            }
            Self::UnknownPod { .. } => "create it there first",
            Self::Devices { .. } => r#"write it as {"intel.com/sriov": ["0000:01:10.0"]}"#,
            Self::Status { .. } => "make the folder writable",
            Self::ManyContainers { .. } => "request them in fewer containers",
            Self::OtherPod { .. } => "wait for the pod to be recreated",
            Self::Untrusted { .. } => "remove it and restart the agent",
            Self::Owed { .. } => "free space there or start the agent",
            Self::NotListed => "try again later",
        };
        Some(remedy.to_owned())
    }
}

impl Problem for FolderError {
    fn words(&self) -> String {
        match self {
            Self::Io(source) => source.to_string(),
            Self::Deadline => "reading all manifests takes longer than the call may".to_owned(),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Io(_) => "make the folder readable or correct the key",
            Self::Deadline => "keep fewer manifests there",
        };
        Some(remedy.to_owned())
    }
}

impl Problem for AgentProblem {
    fn words(&self) -> String {
        match self {
            Self::Frame(source) => source.words(),
            Self::Refused(line) => line.clone(),
            Self::OtherReply => "it answered something else".to_owned(),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Frame(source) => source.remedy(),
            Self::Refused(_) => None,
            Self::OtherReply => Some("restart it".to_owned()),
        }
    }
}

impl Problem for KeepProblem {
    fn words(&self) -> String {
        match self {
            Self::Refused(line) => line.clone(),
            Self::OtherReply => "the agent did not take it".to_owned(),
            Self::Unreachable(source) => source.words(),
        }
    }

    /// What helps is to free space on the disk, whatever the agent says.
    fn remedy(&self) -> Option<String> {
        None
    }
}

impl Problem for AgentAbsence {
    fn words(&self) -> String {
        let words = match self {
            Self::Io(source) => return source.to_string(),
            Self::NoListener => "nothing listens there",
            Self::NotSocket => "it is not a socket",
            Self::Closed => "it closed the connection without an answer",
            Self::Late => "no answer in time",
        };
        words.to_owned()
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::NotSocket => "remove it and restart the agent",
            Self::Late => "look into its log, and restart it",
            _ => "start it or set kubeconfig",
        };
        Some(remedy.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::cluster::frame::FrameError;
    use crate::cluster::lookup::Place;

    #[test]
    fn each_error_names_its_object_and_what_to_do() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let pod = || "a/web".to_owned();
        let socket = || "/run/agent.sock".into();
        let no_agent = |source| ClusterError::NoAgent {
            socket: socket(),
            source,
        };
        let agent = |source| ClusterError::Agent {
            socket: socket(),
            source,
        };
        let folder = |source| ClusterError::Folder {
            folder: "/m".into(),
            source,
        };
        for (error, line) in [
            (
                folder(FolderError::Io(full())),
                "manifestDir /m: no storage space; make the folder readable or correct the key",
            ),
            (
                folder(FolderError::Deadline),
                "manifestDir /m: reading all manifests takes longer than the call may; \
                 keep fewer manifests there",
            ),
            (
                ClusterError::UnknownPod {
                    pod: pod(),
                    place: Place::ApiServer,
                },
                "pod a/web is not known in the cluster; create it there first",
            ),
            (
                ClusterError::Status {
                    pod: pod(),
                    path: "/m/status/a/web".into(),
                    source: full(),
                },
                "status of pod a/web: /m/status/a/web: no storage space; make the folder writable",
            ),
            (
                ClusterError::ManyContainers { pod: pod() },
                "pod a/web has more than 256 containers or requests for devices which its \
                 networks may use; request them in fewer containers",
            ),
            (
                ClusterError::OtherPod {
                    pod: pod(),
                    asked: "u".into(),
                    known: "v".into(),
                },
                "pod a/web: the runtime has UID u, the cluster v; wait for the pod to be recreated",
            ),
            (
                ClusterError::OtherNode {
                    pod: pod(),
                    node: "b".into(),
                    ours: "a".into(),
                },
                "pod a/web is bound to node b, this is a; start the agent with --node b, or \
                 correct the pod",
            ),
            (
                agent(AgentProblem::Refused("no; ask later".into())),
                "agent at /run/agent.sock: no; ask later",
            ),
            (
                agent(AgentProblem::Frame(FrameError::Version { theirs: 2 })),
                "agent at /run/agent.sock: it speaks version 2, this is version 1; bring both to \
                 one release",
            ),
            (
                agent(AgentProblem::OtherReply),
                "agent at /run/agent.sock: it answered something else; restart it",
            ),
            (
                ClusterError::Untrusted {
                    socket: socket(),
                    uid: 7,
                },
                "agentSocket /run/agent.sock belongs to user 7, not to root; remove it and \
                 restart the agent",
            ),
            (
                ClusterError::Owed {
                    pod: pod(),
                    path: "/j/publish".into(),
                    source: full(),
                    agent: KeepProblem::Unreachable(Box::new(no_agent(AgentAbsence::NoListener))),
                },
                "status of pod a/web: /j/publish: no storage space, and the agent does not \
                 answer on /run/agent.sock: nothing listens there; free space there or start \
                 the agent",
            ),
            (
                ClusterError::NotListed,
                "the agent has not listed the node's pods yet; try again later",
            ),
            (
                no_agent(AgentAbsence::NoListener),
                "the agent does not answer on /run/agent.sock: nothing listens there; start it \
                 or set kubeconfig",
            ),
            (
                no_agent(AgentAbsence::NotSocket),
                "the agent does not answer on /run/agent.sock: it is not a socket; remove it and \
                 restart the agent",
            ),
            (
                no_agent(AgentAbsence::Late),
                "the agent does not answer on /run/agent.sock: no answer in time; look into its \
                 log, and restart it",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
