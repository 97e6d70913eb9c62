//! Why a question to the cluster has no answer.

use super::ApiError;
use super::pod::MOST_CONTAINERS;

/// Why the cluster did not answer.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The folder cannot be read.
    #[error("manifestDir {folder}: {cause}; make the folder readable or correct the key")]
    Folder {
        /// The folder.
        folder: String,
        /// Why.
        cause: String,
    },
    /// No such pod.
    #[error("pod {pod} is not known in {place}; create it there first")]
    UnknownPod {
        /// Namespace and name.
        pod: String,
        /// Where it was looked for.
        place: String,
    },
    /// What a manifest says of its pod's devices cannot be read.
    #[error(
        "pod {pod}: annotation jackfield.io/devices: {cause}; \
         write it as {{\"intel.com/sriov\": [\"0000:01:10.0\"]}}"
    )]
    Devices {
        /// Namespace and name.
        pod: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The outcome could not be written.
    #[error("status of pod {pod}: {path}: {cause}; make the folder writable")]
    Status {
        /// Namespace and name.
        pod: String,
        /// The file.
        path: String,
        /// Why.
        cause: String,
    },
    /// More containers than are looked at.
    #[error(
        "pod {pod} has more than {MOST_CONTAINERS} containers or requests for devices which its \
         networks may use; request them in fewer containers"
    )]
    ManyContainers {
        /// Namespace and name.
        pod: String,
    },
    /// Another pod of that name.
    #[error(
        "pod {pod}: the runtime has UID {asked}, the cluster {known}; wait for the pod to be recreated"
    )]
    OtherPod {
        /// Namespace and name.
        pod: String,
        /// K8S_POD_UID.
        asked: String,
        /// The cluster's.
        known: String,
    },
    /// The pod is bound to another node.
    #[error(
        "pod {pod} is bound to node {node}, this is {ours}; start the agent with --node {node}, or correct the pod"
    )]
    OtherNode {
        /// Namespace and name.
        pod: String,
        /// Its node.
        node: String,
        /// The agent's.
        ours: String,
    },
    /// The API server did not do what it was asked for.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The pod's status is written, an event is not: nobody tells it later.
    #[error("an event of the pod is not told: {0}")]
    Untold(#[source] ApiError),
    /// The agent gave no answer.
    #[error("agent at {socket}: {cause}")]
    Agent {
        /// The socket.
        socket: String,
        /// Its reason, with the remedy.
        cause: String,
    },
    /// Somebody else listens on the agent's socket.
    #[error(
        "agentSocket {socket} belongs to user {uid}, not to root; remove it and restart the agent"
    )]
    Untrusted {
        /// The socket.
        socket: String,
        /// Who listens.
        uid: u32,
    },
    /// What is to be told can be kept nowhere.
    #[error("status of pod {pod}: {path}: {cause}; free space there or start the agent")]
    Owed {
        /// Namespace and name.
        pod: String,
        /// The directory.
        path: String,
        /// Why.
        cause: String,
    },
    /// The agent has just started.
    #[error("the agent has not listed the node's pods yet; try again later")]
    NotListed,
    /// Nobody to ask.
    #[error("the agent does not answer on {socket}: {cause}; {remedy}")]
    NoAgent {
        /// The socket.
        socket: String,
        /// Why.
        cause: String,
        /// What helps.
        remedy: &'static str,
    },
}

impl ClusterError {
    /// Whether the runtime should try again later (code 11).
    pub fn is_transient(&self) -> bool {
        matches!(self, ClusterError::NoAgent { .. })
    }
}
