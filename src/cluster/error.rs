//! Why the cluster did not do what it was asked for.

mod words;

use std::io;
use std::path::PathBuf;

use super::ApiError;
use super::frame::FrameError;
use super::lookup::Place;
use crate::diagnostic;

/// Why the cluster did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum ClusterError {
    /// The folder of manifests cannot be read.
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why.
        source: FolderError,
    },
    /// No such pod.
    UnknownPod {
        /// Namespace and name.
        pod: String,
        /// Where it was looked up.
        place: Place,
    },
    /// The devices in a pod's manifest are invalid.
    Devices {
        /// Namespace and name.
        pod: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The status of a pod cannot be written to its file.
    Status {
        /// Namespace and name.
        pod: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The pod has more containers or requests than an answer may have.
    ManyContainers {
        /// Namespace and name.
        pod: String,
    },
    /// The cluster has another pod of that name.
    OtherPod {
        /// Namespace and name.
        pod: String,
        /// K8S_POD_UID.
        asked: String,
        /// The UID in the cluster.
        known: String,
    },
    /// The pod is bound to another node.
    OtherNode {
        /// Namespace and name.
        pod: String,
        /// Its node.
        node: String,
        /// The agent's node.
        ours: String,
    },
    /// A request to the API server failed.
    Api(#[from] ApiError),
    /// The pod's status is written, but the API server did not take an event. Nothing retries it.
    Event(#[source] ApiError),
    /// The agent did not answer the question.
    Agent {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: AgentProblem,
    },
    /// A user other than root listens on the agent's socket.
    Untrusted {
        /// The socket.
        socket: PathBuf,
        /// The user.
        uid: u32,
    },
    /// A publication can be kept neither on disk nor by the agent.
    Owed {
        /// Namespace and name.
        pod: String,
        /// The directory of owed writes.
        path: PathBuf,
        /// Why the disk does not take it.
        source: io::Error,
        /// Why the agent does not.
        agent: KeepProblem,
    },
    /// The agent has just started.
    NotListed,
    /// No agent answers on the socket.
    NoAgent {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: AgentAbsence,
    },
}

/// Why a folder of manifests cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum FolderError {
    /// The file system's reason.
    Io(#[from] io::Error),
    /// The call's deadline came first.
    Deadline,
}

/// What is wrong with the reply of an agent.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum AgentProblem {
    /// It cannot be sent or read.
    Frame(#[from] FrameError),
    /// It is a refusal: the agent's own line, with the remedy.
    Refused(String),
    /// It is the reply to another message.
    OtherReply,
}

/// Why the agent did not keep a publication in memory.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum KeepProblem {
    /// It refused: the agent's own line.
    Refused(String),
    /// It replied to another message.
    OtherReply,
    /// It could not be asked.
    Unreachable(#[source] Box<ClusterError>),
}

/// Why no agent answers.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum AgentAbsence {
    /// There is no socket, or no process listens on it.
    NoListener,
    /// A file of that name is not a socket.
    NotSocket,
    /// The agent closed the connection before it answered.
    Closed,
    /// The answer did not come by the deadline.
    Late,
    /// Another reason of the kernel.
    Io(#[source] io::Error),
}

impl ClusterError {
    /// Whether the runtime should try again later (code 11).
    pub fn is_transient(&self) -> bool {
        matches!(self, ClusterError::NoAgent { .. })
    }
}
