//! Why a request to the cluster failed.

mod words;

use std::io;
use std::path::PathBuf;

use super::ApiError;
use super::frame::FrameError;
use super::lookup::Place;
use crate::diagnostic::{self, Problem};

/// Why a request to the cluster failed.
#[derive(Debug, thiserror::Error)]
#[error("{}", diagnostic::line(self))]
pub enum ClusterError {
    /// This folder of manifests cannot be read.
    Folder(PathBuf, #[source] io::Error),
    /// The time limit passed before all manifests of this folder were read.
    LongFolder(PathBuf),
    /// The API server or the folder of manifests has no pod of this name.
    UnknownPod(String, Place),
    /// The devices in this pod's manifest are invalid.
    Devices(String, #[source] serde_json::Error),
    /// This pod's manifest is invalid.
    Manifest(String, #[source] serde_json::Error),
    /// The status of a pod cannot be written to its file.
    Status {
        /// Namespace and name.
        pod: String,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The pod of this name has more containers or device requests than an answer may contain.
    ManyContainers(String),
    /// The cluster has a pod of the requested name, but with a different UID.
    OtherPod {
        /// Namespace and name.
        pod: String,
        /// `K8S_POD_UID` from the runtime.
        asked: String,
        /// The UID in the cluster.
        known: String,
    },
    /// The pod is bound to another node.
    OtherNode {
        /// Namespace and name.
        pod: String,
        /// The pod's node.
        node: String,
        /// The agent's node.
        ours: String,
    },
    /// A request to the API server failed.
    Api(#[from] ApiError),
    /// The API server did not accept an event. The plugin does not retry the event. The pod's
    /// status is not affected, because the plugin writes the status before the events.
    Event(#[source] ApiError),
    /// The agent behind this socket did not fulfil a request.
    Agent(PathBuf, #[source] AgentProblem),
    /// The plugin cannot keep a publication on disk, and the agent does not keep it in memory.
    Owed {
        /// Namespace and name.
        pod: String,
        /// The directory in which the plugin keeps publications for the agent.
        path: PathBuf,
        /// Why the plugin cannot keep the publication on disk.
        source: io::Error,
        /// Why the agent does not keep the publication in memory.
        agent: Box<ClusterError>,
    },
    /// The agent has not listed the node's pods since it started.
    NotListed,
}

/// Why the agent did not fulfil a request.
#[derive(Debug, thiserror::Error)]
pub enum AgentProblem {
    /// There is no socket, or no process listens on it.
    #[error("nothing listens there")]
    NoListener,
    /// The file is not a socket.
    #[error("this path is not a socket")]
    NotSocket,
    /// The agent closed the connection before it answered.
    #[error("it closed the connection without an answer")]
    Closed,
    /// The answer did not arrive by the deadline.
    #[error("no answer in time")]
    Late,
    /// A system call failed for a reason that no other variant describes.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// This user, who is not root, listens on the socket.
    #[error("user {0} listens there instead of root")]
    Untrusted(u32),
    /// A message cannot be sent or read.
    #[error("{}", .0.words())]
    Frame(#[source] FrameError),
    /// The agent refused the request. The text is the agent's message, including the remedy.
    #[error("{0}")]
    Refused(String),
    /// The reply does not match the request.
    #[error("its reply does not match the request")]
    OtherReply,
}

impl From<io::Error> for AgentProblem {
    fn from(error: io::Error) -> AgentProblem {
        use io::ErrorKind::{ConnectionRefused, NotFound, TimedOut, WouldBlock};
        match error.kind() {
            NotFound | ConnectionRefused => AgentProblem::NoListener,
            TimedOut | WouldBlock => AgentProblem::Late,
            _ => AgentProblem::Io(error),
        }
    }
}

impl From<FrameError> for AgentProblem {
    fn from(error: FrameError) -> AgentProblem {
        match error {
            error if error.is_gone() => AgentProblem::Closed,
            error if error.is_late() => AgentProblem::Late,
            error => AgentProblem::Frame(error),
        }
    }
}

impl AgentProblem {
    /// Whether the agent gave no answer at all. In that case, a retry may succeed.
    fn is_absence(&self) -> bool {
        use AgentProblem::{Closed, Io, Late, NoListener, NotSocket};
        matches!(self, NoListener | NotSocket | Closed | Late | Io(_))
    }
}

impl ClusterError {
    /// Whether the runtime should try again later (code 11).
    pub fn is_transient(&self) -> bool {
        matches!(self, ClusterError::Agent(_, source) if source.is_absence())
    }

    /// Whether no agent listens, or the agent closed the connection without an answer. Both happen
    /// while the agent restarts, so a retry may succeed soon.
    pub(super) fn is_of_absent_agent(&self) -> bool {
        use AgentProblem::{Closed, NoListener};
        matches!(self, ClusterError::Agent(_, NoListener | Closed))
    }
}
