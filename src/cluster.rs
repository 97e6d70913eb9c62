//! The seam to the cluster: where a plan's objects come from, and where the outcome of an ADD goes.
//!
//! One [`Question`] gets one [`Answer`] with everything that the plan needs: the pod, every
//! definition that its annotations and the administrator name, and the claims that they refer to.
//! One [`Publication`] follows. The node configuration chooses what answers: a folder of manifests
//! ([`Folder`]), the agent behind its socket ([`Agent`]), or the API server itself ([`Api`]).

pub mod agent;
pub mod api;
pub mod catalog;
pub mod census;
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

use std::os::fd::OwnedFd;
use std::time::Instant;

pub use agent::{AGENT_WAIT, Agent, Informant};
pub use api::{Api, ApiError};
pub use catalog::{Catalog, Network, NetworkError, administrators_definitions};
pub use census::Census;
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

/// Where questions are answered, and outcomes published.
pub trait Cluster {
    /// Answers a question. The whole answer arrives by `until`.
    ///
    /// # Errors
    /// When the cluster does not answer or does not know the pod: code 107, or 11 when a retry may
    /// succeed.
    fn ask(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError>;

    /// Announces a question, so that the cluster can look up its objects already. It does not wait,
    /// and errors come up when the question is asked.
    fn announce(&self, _question: &Question) {}

    /// Checks that the cluster answers questions, by `until` (CNI 1.1.0 §2 STATUS).
    ///
    /// # Errors
    /// As [`Cluster::ask`].
    fn ready(&self, until: Instant) -> Result<(), ClusterError> {
        self.ask(&Question::default(), until).map(drop)
    }

    /// The names of a node's pods, and of all definitions where `with_definitions` is set.
    ///
    /// # Errors
    /// As [`Cluster::ask`].
    fn census(&self, node: &str, with_definitions: bool) -> Result<Census, ClusterError>;

    /// Publishes the outcome of an ADD, or keeps it for later, by `until`.
    ///
    /// # Errors
    /// When it can do neither.
    fn publish(&self, publication: &Publication, until: Instant) -> Result<(), ClusterError>;

    /// Removes the files that a process left behind when it was killed while it published for the pod.
    fn sweep(&self, _pod: &PodName) {}

    /// Drops the publications that are still owed for a pod that is gone.
    fn forget(&self, _pod: &PodName) {}

    /// Reports a finished call, whose answer the runtime has. It does not wait. `_record` opens the
    /// record that the call wrote, so that another process can sync it to disk.
    fn over(&self, _figures: Figures, _record: &dyn Fn() -> Option<OwnedFd>) {}

    /// Reports the findings of `doctor` on this node. It does not wait.
    fn examined(&self, _examination: Examination) {}
}
