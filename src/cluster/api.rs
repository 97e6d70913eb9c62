//! Asks the API server directly, for nodes without an agent. Multus' thin plugin works in this way.
//!
//! Each object costs a request. If the plugin cannot write the status, the ADD fails, because there
//! is no agent that would write the status later.
//!
//! The agent uses the modules below for its own requests.

pub mod answer;
mod body;
mod claim_status;
mod connection;
mod credentials;
pub mod definitions;
pub mod error;
pub mod events;
pub mod kinds;
mod lookups;
pub mod objects;
pub mod pages;
pub mod publish;
pub mod server;
pub mod slices;
mod tls;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use answer::{Lookup, answer};
pub use claim_status::publish_claims;
pub use error::{ApiError, CredentialsError};
pub use objects::PodView;
pub use publish::{EventContext, PublishError, PublishOutcome, create_node_event, publish};
pub use server::ApiServer;
pub use slices::SliceView;

use error::RequestError;

use super::owed_writes::period_now;
use super::{Answer, Census, Cluster, ClusterError, Publication, Question};

/// The API server that a kubeconfig names.
#[derive(Debug)]
pub struct Api {
    kubeconfig: PathBuf,
    connected: OnceCell<Connected>,
}

#[derive(Debug)]
struct Connected {
    runtime: tokio::runtime::Runtime,
    server: ApiServer,
}

impl Api {
    /// Creates a client of the API server in `kubeconfig`. Reads nothing and does not connect yet.
    pub fn new(kubeconfig: &Path) -> Api {
        Api {
            kubeconfig: kubeconfig.to_owned(),
            connected: OnceCell::new(),
        }
    }

    fn connected(&self) -> Result<&Connected, ApiError> {
        if let Some(connected) = self.connected.get() {
            return Ok(connected);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ApiError::Runtime)?;
        let server = runtime.block_on(ApiServer::from_kubeconfig(&self.kubeconfig, "plugin"))?;
        Ok(self.connected.get_or_init(|| Connected { runtime, server }))
    }

    /// Runs requests, which have to complete by `until`.
    fn run<T>(
        &self,
        until: Instant,
        requests: impl AsyncFnOnce(&ApiServer) -> Result<T, ClusterError>,
    ) -> Result<T, ClusterError> {
        let Connected { runtime, server } = self.connected()?;
        runtime.block_on(async {
            let done = tokio::time::timeout_at(until.into(), requests(server)).await;
            let late = || server.failed("the request", RequestError::Deadline);
            done.unwrap_or_else(|_| Err(late().into()))
        })
    }
}

impl Cluster for Api {
    fn ask(&self, question: &Question, until: Instant) -> Result<Answer, ClusterError> {
        // The plugin does not know its node's name in the cluster. So `answer` checks the pod's
        // UID, but not the pod's node.
        self.run(until, async |server| answer(server, None, question).await)
    }

    fn census(&self, node: &str, with_definitions: bool) -> Result<Census, ClusterError> {
        let Connected { runtime, server } = self.connected()?;
        Ok(runtime.block_on(server.census(node, with_definitions))?)
    }

    fn publish(&self, publication: &Publication, until: Instant) -> Result<(), ClusterError> {
        let occasion = EventContext {
            node: "",
            period: &period_now(),
        };
        self.run(until, async |server| {
            match publish(server, None, publication, occasion).await {
                Ok(_) => Ok(()),
                Err(PublishError::Status(error)) => Err(error.into()),
                Err(PublishError::Event(error)) => Err(ClusterError::Event(error)),
            }
        })
    }
}
