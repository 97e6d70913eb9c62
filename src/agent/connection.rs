//! The connection to the API server. New credentials and new certificate authorities need a new
//! connection.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tracing::info;

use crate::cluster::api::{ApiError, ApiServer};

/// The interval between reads of the credentials. Kubelet replaces a one-hour token about 12
/// minutes before the token expires, so the interval must be shorter than 12 minutes.
const FRESH_FOR: Duration = Duration::from_secs(300);

/// The connection to the API server with the current credentials.
#[derive(Debug)]
pub(super) struct ApiConnection {
    kubeconfig: Option<PathBuf>,
    node: String,
    server: RefCell<ApiServer>,
}

impl ApiConnection {
    /// Reads the credentials of the agent on `node` from `kubeconfig`. Without a `kubeconfig`,
    /// reads the service account of the agent's pod. Sends no request.
    pub(super) async fn open(
        kubeconfig: Option<PathBuf>,
        node: String,
    ) -> Result<ApiConnection, ApiError> {
        let server = RefCell::new(open(kubeconfig.as_deref(), &node).await?);
        Ok(ApiConnection {
            kubeconfig,
            node,
            server,
        })
    }

    /// Returns the current connection.
    pub(super) fn server(&self) -> ApiServer {
        self.server.borrow().clone()
    }

    /// Reads the credentials every [`FRESH_FOR`] and never returns. Kubelet replaces the token well
    /// before it expires, and also updates the file of certificate authorities. If the API server
    /// refuses the credentials before the next read, [`ApiConnection::renew`] reads them again.
    pub(super) async fn keep_fresh(self: Rc<Self>) {
        loop {
            tokio::time::sleep(FRESH_FOR).await;
            // Ignore a failed read, because the current credentials may still be valid.
            if let Ok(server) = open(self.kubeconfig.as_deref(), &self.node).await
                && !server.has_credentials_of(&self.server())
            {
                *self.server.borrow_mut() = server;
            }
        }
    }

    /// Reads the credentials again after the API server refused them. If the token of a service
    /// account has expired, kubelet has already written a new token to the file.
    pub(super) async fn renew(&self) -> Result<(), ApiError> {
        let server = open(self.kubeconfig.as_deref(), &self.node).await?;
        *self.server.borrow_mut() = server;
        info!("the API server refused the credentials; the agent has read them again");
        Ok(())
    }
}

async fn open(kubeconfig: Option<&Path>, node: &str) -> Result<ApiServer, ApiError> {
    let caller = format!("agent; {node}");
    match kubeconfig {
        Some(path) => ApiServer::from_kubeconfig(path, &caller).await,
        None => ApiServer::in_cluster(&caller),
    }
}
