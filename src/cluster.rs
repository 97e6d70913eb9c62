//! The interface to the cluster. It looks up the objects that the plan of an ADD needs, and
//! publishes the outcome of the ADD.
//!
//! One [`Question`] gets one [`Answer`] with everything that the plan needs:
//! - the pod,
//! - the NetworkAttachmentDefinitions to which the pod's annotations or the node configuration
//!   refer,
//! - the IPAMClaims to which the pod's annotations refer,
//! - the pod's devices according to kubelet.
//!
//! After the ADD, one [`Publication`] reports the outcome.
//!
//! The node configuration decides which [`Cluster`] a call uses:
//! - [`Folder`] reads a folder of manifests.
//! - [`Agent`] is the agent's client. If no agent listens and a kubeconfig is configured, the
//!   client asks the API server itself ([`Api`]).

pub mod agent;
pub mod api;
pub mod catalog;
pub mod census;
pub mod claim_status;
pub mod conf_dir;
mod devices;
mod error;
pub mod figures;
pub mod folder;
pub mod frame;
pub mod identity;
mod installation;
pub mod lookup;
pub mod manifests;
pub mod owed_writes;
mod pod;
pub mod publication;
mod question;
mod sandbox_networks;

use std::os::fd::OwnedFd;
use std::time::Instant;

pub use agent::{AGENT_WAIT, Agent, Informant};
pub use api::{Api, ApiError};
pub use catalog::{Catalog, Network, NetworkError, administrators_definitions};
pub use census::Census;
pub use claim_status::{ClaimStatus, ClaimedDevice, NetworkData};
pub use conf_dir::{ConfDirError, OnDisk};
pub use error::{AgentProblem, ClusterError};
pub use figures::{CheckFigure, Examination, Figures, OnRecord, Phase};
pub use folder::Folder;
pub use installation::{Installation, InstallationState};
pub use lookup::LookupResult;
pub use owed_writes::{OwedSurvey, OwedWrite, OwedWrites};
pub use pod::{Container, Pod, PodAnnotations, PodName};
pub use publication::{Event, EventKind, Publication};
pub use question::{Answer, Question};
pub use sandbox_networks::SandboxNetworks;

/// Answers questions and publishes outcomes.
pub trait Cluster {
    /// Answers a question. The whole answer has to arrive by `until`.
    ///
    /// # Errors
    /// When the cluster does not answer, does not have the pod, or refuses the question. The CNI
    /// code is 11 if the agent does not answer, and 107 for all other errors.
    fn ask(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError>;

    /// Announces a question, so that the cluster can look up the objects in advance. Does not wait
    /// for the answer. [`Cluster::ask`] reports any error later.
    fn announce(&self, _question: &Question) {}

    /// Checks that the cluster answers a question about this node by `until` (CNI 1.1.0 §2 STATUS).
    /// Returns the answer. If no agent listens but a kubeconfig is configured, the client
    /// [`Agent`] returns an empty answer and does not check the API server.
    ///
    /// # Errors
    /// As [`Cluster::ask`].
    fn ready(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError> {
        self.ask(question, until)
    }

    /// Sends the agent the list of the attached sandboxes.
    fn hand_over(&self, _sandboxes: Vec<SandboxNetworks>, _until: Instant) {}

    /// Returns the names of a node's pods and, if `with_definitions` is set, of all definitions.
    ///
    /// # Errors
    /// As [`Cluster::ask`].
    fn census(&self, node: &str, with_definitions: bool) -> Result<Census, ClusterError>;

    /// Publishes the outcome of an ADD or of a change of a running pod's networks. `until` is the
    /// deadline. If publishing is the agent's task, only stores the outcome, and the agent
    /// publishes it later.
    ///
    /// # Errors
    /// When the outcome can be neither published nor stored.
    fn publish(&self, publication: &Publication, until: Instant) -> Result<(), ClusterError>;

    /// Stores `removal` on disk for the agent. The agent then removes the detached attachments from
    /// the status of the pod's ResourceClaims. Does not wait for the agent or the API server. Drops
    /// `removal` if no agent listens but a kubeconfig is configured.
    fn withdraw(&self, _removal: &Publication) {}

    /// Removes each unfinished publication file of `_pod`, unless the file's writer is still
    /// running. An implementation may also remove such files of other pods.
    fn sweep(&self, _pod: &PodName) {}

    /// Drops the unpublished statuses and events of a pod that is gone.
    fn forget(&self, _pod: &PodName) {}

    /// Reports the figures of a call after the plugin has answered the runtime. Does not wait for
    /// the cluster. `_record` opens the journal record that the call wrote, so that another process
    /// can sync the record to disk.
    fn over(&self, _figures: Figures, _record: &dyn Fn() -> Option<OwnedFd>) {}

    /// Reports the findings of `doctor` on this node. Does not wait for the cluster.
    fn examined(&self, _examination: Examination) {}

    /// Closes all connections. Only a process that keeps running after its last question needs to
    /// call `close`. A peer can make `close` block.
    fn close(&self) {}
}
