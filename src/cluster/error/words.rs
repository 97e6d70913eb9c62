//! The messages of [`ClusterError`].

use super::{AgentProblem, ClusterError};
use crate::cluster::pod::{MOST_CONTAINERS, MOST_REQUESTS};
use crate::diagnostic::Problem;

impl Problem for ClusterError {
    fn words(&self) -> String {
        match self {
            Self::Folder(folder, source) => {
                format!("manifestDir {}: {source}", folder.display())
            }
            Self::LongFolder(folder) => format!(
                "manifestDir {}: reading all manifests takes longer than the time limit \
                 allows",
                folder.display()
            ),
            Self::UnknownPod(pod, place) => format!("pod {pod} is not known in {place}"),
            Self::Devices(pod, source) => {
                format!("pod {pod}: annotation jackfield.io/devices: {source}")
            }
            Self::Manifest(pod, source) => format!("pod {pod}: {source}"),
            Self::Status { pod, path, source } => {
                let path = path.display();
                format!("cannot write the status of pod {pod} to {path}: {source}")
            }
            Self::ManyContainers(pod) => format!(
                "pod {pod} has more than {MOST_CONTAINERS} containers, or more than \
                 {MOST_REQUESTS} requests for devices"
            ),
            Self::OtherPod { pod, asked, known } => format!(
                "pod {pod}: the runtime passed UID {asked}, but the pod in the cluster has UID \
                 {known}"
            ),
            Self::OtherNode { pod, node, ours } => {
                format!("pod {pod} is bound to node {node}, but this node is {ours}")
            }
            Self::Api(source) => source.words(),
            Self::Event(source) => {
                format!("cannot create an event for the pod: {}", source.words())
            }
            Self::Agent(socket, source) => {
                let socket = socket.display();
                match source {
                    AgentProblem::Untrusted(_) => format!("agentSocket {socket}: {source}"),
                    source if source.is_absence() => {
                        format!("the agent does not answer on {socket}: {source}")
                    }
                    source => format!("agent at {socket}: {source}"),
                }
            }
            Self::Owed {
                pod,
                path,
                source,
                agent,
            } => format!(
                "cannot keep the status of pod {pod} in the directory {}: {source}; {}",
                path.display(),
                agent.words()
            ),
            Self::NotListed => "the agent has not listed the node's pods yet".to_owned(),
        }
    }

    fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Api(source) | Self::Event(source) => return source.remedy(),
            Self::Agent(_, source) => match source {
                AgentProblem::Frame(source) => return source.remedy(),
                AgentProblem::Refused(_) => return None,
                AgentProblem::NotSocket | AgentProblem::Untrusted(_) => {
                    "remove that file and restart the agent"
                }
                AgentProblem::Late => "check its log and restart it",
                AgentProblem::OtherReply => "restart it",
                _ => "start it or set kubeconfig",
            },
            Self::OtherNode { node, .. } => {
                return Some(format!(
                    "start the agent with --node {node}, or correct the pod"
                ));
            }
            Self::Folder(..) => "make the folder readable or correct the key manifestDir",
            Self::LongFolder(_) => "keep fewer manifests there",
            Self::UnknownPod(..) => "create the pod there first",
            Self::Devices(..) => r#"write it as {"intel.com/sriov": ["0000:01:10.0"]}"#,
            Self::Manifest(..) => "correct its manifest",
            Self::Status { .. } => "make the folder writable, and free space there if it is full",
            Self::ManyContainers(_) => "request the devices in fewer containers",
            Self::OtherPod { .. } => "wait for the pod to be recreated",
            Self::Owed { .. } => {
                "make the directory writable, free space on its disk, or start the agent"
            }
            Self::NotListed => "try again later",
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
    fn each_error_says_what_failed_and_what_to_do() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let pod = || "a/web".to_owned();
        let agent = |source| ClusterError::Agent("/run/agent.sock".into(), source);
        for (error, line) in [
            (
                ClusterError::Folder("/m".into(), full()),
                "manifestDir /m: no storage space; make the folder readable or correct the key \
                 manifestDir",
            ),
            (
                ClusterError::LongFolder("/m".into()),
                "manifestDir /m: reading all manifests takes longer than the time limit allows; \
                 keep fewer manifests there",
            ),
            (
                ClusterError::UnknownPod(pod(), Place::ApiServer),
                "pod a/web is not known in the cluster; create the pod there first",
            ),
            (
                ClusterError::Status {
                    pod: pod(),
                    path: "/m/status/a/web".into(),
                    source: full(),
                },
                "cannot write the status of pod a/web to /m/status/a/web: no storage space; make \
                 the folder writable, and free space there if it is full",
            ),
            (
                ClusterError::ManyContainers(pod()),
                "pod a/web has more than 256 containers, or more than 256 requests for \
                 devices; request the devices in fewer containers",
            ),
            (
                ClusterError::OtherPod {
                    pod: pod(),
                    asked: "u".into(),
                    known: "v".into(),
                },
                "pod a/web: the runtime passed UID u, but the pod in the cluster has UID v; wait \
                 for the pod to be recreated",
            ),
            (
                ClusterError::OtherNode {
                    pod: pod(),
                    node: "b".into(),
                    ours: "a".into(),
                },
                "pod a/web is bound to node b, but this node is a; start the agent with --node b, \
                 or correct the pod",
            ),
            (
                agent(AgentProblem::Refused("no; ask later".into())),
                "agent at /run/agent.sock: no; ask later",
            ),
            (
                agent(AgentProblem::Frame(FrameError::Version(2))),
                "agent at /run/agent.sock: it speaks protocol version 2, but this release speaks \
                 protocol version 1; use the same release of plugin and agent",
            ),
            (
                agent(AgentProblem::OtherReply),
                "agent at /run/agent.sock: its reply does not match the request; restart it",
            ),
            (
                agent(AgentProblem::Untrusted(7)),
                "agentSocket /run/agent.sock: user 7 listens there instead of root; remove that \
                 file and restart the agent",
            ),
            (
                ClusterError::Owed {
                    pod: pod(),
                    path: "/j/publish".into(),
                    source: full(),
                    agent: Box::new(agent(AgentProblem::NoListener)),
                },
                "cannot keep the status of pod a/web in the directory /j/publish: no storage \
                 space; the agent does not answer on /run/agent.sock: nothing listens there; make \
                 the directory writable, free space on its disk, or start the agent",
            ),
            (
                ClusterError::NotListed,
                "the agent has not listed the node's pods yet; try again later",
            ),
            (
                agent(AgentProblem::NoListener),
                "the agent does not answer on /run/agent.sock: nothing listens there; start it \
                 or set kubeconfig",
            ),
            (
                agent(AgentProblem::NotSocket),
                "the agent does not answer on /run/agent.sock: this path is not a socket; remove \
                 that file and restart the agent",
            ),
            (
                agent(AgentProblem::Late),
                "the agent does not answer on /run/agent.sock: no answer in time; check its log \
                 and restart it",
            ),
        ] {
            assert_eq!(error.to_string(), line);
        }
    }
}
