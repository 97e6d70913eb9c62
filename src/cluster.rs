//! The seam to the cluster: what a pod is to get, and where the outcome is told.
//!
//! One [`Question`], one [`Answer`] with everything that the plan needs: the pod, every definition
//! that its annotations and the administrator name, the claims they refer to. One
//! [`Publication`] afterwards. Who answers is the node configuration's choice: a folder of
//! manifests ([`Folder`]), the agent behind its socket ([`Agent`]), or the API server itself
//! ([`Api`]).

pub mod agent;
pub mod api;
pub mod catalog;
mod census;
pub mod conf_dir;
mod devices;
mod error;
pub mod figures;
pub mod folder;
pub mod frame;
pub mod identity;
mod installation;
mod manifests;
pub mod owed_writes;
mod pod;
pub mod publication;
mod question;

use std::os::fd::OwnedFd;
use std::time::Instant;

pub use agent::{AGENT_WAIT, Agent, Informant};
pub use api::{Api, ApiError};
pub use catalog::{Catalog, Network, administrators_definitions};
pub use census::{Census, MOST_PODS};
pub use conf_dir::{ConfDirError, OnDisk};
pub use error::ClusterError;
pub use figures::{CheckFigure, Examination, Figures, OnRecord, Phase};
pub use folder::Folder;
pub use installation::{Installation, InstallationState};
pub use owed_writes::{OwedSurvey, OwedWrite, OwedWrites};
pub use pod::{Container, Pod, PodAnnotations, PodName};
pub use publication::{Event, EventKind, Publication};
pub use question::{Answer, Found, Question};

/// What knows the pods and is told of them.
pub trait Cluster {
    /// Answers a question by `until`, which holds for the whole answer, however slowly it arrives.
    ///
    /// # Errors
    /// When the cluster cannot be asked or does not know the pod: code 107, or 11 when a later
    /// try may do.
    fn ask(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError>;

    /// A question that is about to be asked: who can looks it up already. Nobody is waited for, and
    /// what goes wrong shows when it is asked.
    fn announce(&self, question: &Question) {
        let _ = question;
    }

    /// Whether a question would be answered now, by `until` (CNI 1.1.0 §2 STATUS).
    ///
    /// # Errors
    /// As [`Cluster::ask`].
    fn ready(&self, until: Instant) -> Result<(), ClusterError> {
        self.ask(&Question::default(), until).map(drop)
    }

    /// The pods of a node by name, and all definitions where they are asked for: for whoever looks at
    /// a whole node.
    ///
    /// # Errors
    /// As [`Cluster::ask`].
    fn census(&self, node: &str, with_definitions: bool) -> Result<Census, ClusterError>;

    /// Tells what became of an ADD, by `until`.
    ///
    /// # Errors
    /// When it can neither be told nor be kept for later.
    fn publish(&self, publication: &Publication, until: Instant) -> Result<(), ClusterError>;

    /// Takes away what a process that was ended while it published for the pod left half made.
    fn sweep(&self, pod: &PodName) {
        let _ = pod;
    }

    /// Drops what is still to be told of a pod that is gone.
    fn forget(&self, pod: &PodName) {
        let _ = pod;
    }

    /// Reports a finished call, whose answer the runtime has, without waiting for anybody. `record`
    /// opens the record that the call wrote, so that another process can sync it to disk.
    fn over(&self, figures: Figures, record: &dyn Fn() -> Option<OwnedFd>) {
        let _ = (figures, record);
    }

    /// Reports what `doctor` found on this node, likewise.
    fn examined(&self, examination: Examination) {
        let _ = examination;
    }
}
