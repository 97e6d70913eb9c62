//! The API server, asked directly: what a node without an agent does, as Multus' thin plugin.
//!
//! Everything costs a request then, and a status that cannot be written fails the ADD, since
//! nobody would write it later.

pub mod answer;
mod census;
pub mod error;
pub mod objects;
pub mod publish;
pub mod server;
pub mod slices;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

pub use answer::{Lookup, answer};
pub use error::ApiError;
pub use objects::PodView;
pub use publish::{NotPublished, Occasion, Published, publish};
pub use server::ApiServer;
pub use slices::SliceView;

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
    /// The API server of `kubeconfig`; nothing is read or opened yet.
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
        let server = runtime.block_on(ApiServer::from_kubeconfig(&self.kubeconfig))?;
        Ok(self.connected.get_or_init(|| Connected { runtime, server }))
    }
}

impl Cluster for Api {
    fn ask(&self, question: &Question) -> Result<Answer, ClusterError> {
        let Connected { runtime, server } = self.connected()?;
        // Which node this is, nobody has told: the pod's UID has to do.
        runtime.block_on(answer(server, None, question))
    }

    fn census(&self, node: &str) -> Result<Census, ClusterError> {
        let Connected { runtime, server } = self.connected()?;
        Ok(runtime.block_on(server.census(node))?)
    }

    fn publish(&self, publication: &Publication) -> Result<(), ClusterError> {
        let Connected { runtime, server } = self.connected()?;
        runtime.block_on(async {
            let name = publication.pod();
            let view = server.pod(&name.namespace, &name.name).await?;
            let occasion = Occasion {
                node: "",
                period: &period_now(),
            };
            match publish(server, view.as_ref(), publication, occasion).await {
                Ok(_) => Ok(()),
                Err(NotPublished::Status(error)) => Err(error.into()),
                Err(NotPublished::Events(error)) => Err(ClusterError::Untold(error)),
            }
        })
    }
}
