//! Look-ups: in the cache, and for what is not there yet once at the API server.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use tracing::warn;

use super::cache::Cache;
use super::connection::Connection;
use super::metrics::{Metrics, Origin, What};
use crate::cluster::Found;
use crate::cluster::api::{ApiError, ApiServer, Lookup, PodView, SliceView};
use crate::kubelet::{PodResources, Usage};
use crate::npwg::{Definition, IpamClaim, ObjectRef};

/// Where kubelet's pod-resources API is unless a plugin's question has said otherwise.
const KUBELET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

/// All that the agent can find out.
#[derive(Debug)]
pub(super) struct Knowledge {
    /// This node.
    pub(super) node: String,
    /// What is known.
    pub(super) cache: Rc<Cache>,
    /// Who knows the rest.
    pub(super) connection: Rc<Connection>,
    /// What is counted.
    pub(super) metrics: Rc<Metrics>,
    /// The connection to kubelet, as the last question named it.
    pub(super) kubelet: RefCell<Option<Rc<PodResources>>>,
}

impl Knowledge {
    /// The API server, for requests other than look-ups.
    pub(super) fn server(&self) -> ApiServer {
        self.connection.server()
    }

    /// The devices of this node, as kubelet has them; `None` where it cannot be asked.
    pub(super) async fn devices(&self) -> Option<Vec<Usage>> {
        let kept = self.kubelet.borrow().clone();
        // Nobody has asked for a device yet: kubelet may be there all the same.
        let kubelet = kept.unwrap_or_else(|| Rc::new(PodResources::at(Path::new(KUBELET))));
        kubelet.usage().await.ok()
    }

    /// Reads the credentials again.
    pub(super) async fn renew(&self) {
        if let Err(error) = self.connection.renew().await {
            warn!("{error}");
        }
    }

    /// A pod as the API server has it; a token that has expired meanwhile is read again.
    async fn fetch_pod(&self, namespace: &str, name: &str) -> Result<Option<PodView>, ApiError> {
        self.metrics.looked_up(What::Pod, Origin::Api);
        match self.server().pod(namespace, name).await {
            Err(error) if error.code() == Some(401) && self.connection.renew().await.is_ok() => {
                self.server().pod(namespace, name).await
            }
            fetched => fetched,
        }
    }
}

impl Lookup for Knowledge {
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodView>, ApiError> {
        // A pod that is not known is fetched by `pod_uncached`, once.
        let known = ObjectRef::new(namespace, name)
            .ok()
            .and_then(|pod| self.cache.pods.get(&pod));
        if known.is_some() {
            self.metrics.looked_up(What::Pod, Origin::Cache);
        }
        Ok(known.map(|view| PodView::clone(&view)))
    }

    async fn pod_uncached(
        &self,
        namespace: &str,
        name: &str,
    ) -> Option<Result<Option<PodView>, ApiError>> {
        let fetched = self.fetch_pod(namespace, name).await;
        if let (Ok(Some(view)), Ok(pod)) = (&fetched, ObjectRef::new(namespace, name))
            && view.node.as_deref() == Some(self.node.as_str())
        {
            self.cache.pods.replaced(&pod, view.clone());
        }
        Some(fetched)
    }

    async fn definition(&self, object: &ObjectRef) -> Found<Definition> {
        if let Some(known) = self.cache.definitions.get(object) {
            self.metrics.looked_up(What::Definition, Origin::Cache);
            return Found::clone(&known);
        }
        self.metrics.looked_up(What::Definition, Origin::Api);
        let fetched = self.server().definition(object).await;
        if fetched.is_ok() {
            self.cache.definitions.fetched(object, fetched.clone());
        }
        fetched
    }

    async fn claim(&self, namespace: &str, name: &str) -> Found<IpamClaim> {
        self.metrics.looked_up(What::Claim, Origin::Api);
        self.server().claim(namespace, name).await
    }

    fn kubelet(&self, socket: &Path) -> Rc<PodResources> {
        let mut kept = self.kubelet.borrow_mut();
        match &*kept {
            Some(kubelet) if kubelet.socket() == socket => Rc::clone(kubelet),
            _ => Rc::clone(kept.insert(Rc::new(PodResources::at(socket)))),
        }
    }

    async fn slices(&self, _: &str) -> Result<Vec<Rc<SliceView>>, ApiError> {
        Ok(self.cache.slices.all())
    }

    async fn slices_uncached(&self, node: &str) -> Option<Result<Vec<Rc<SliceView>>, ApiError>> {
        Some(self.server().slices(node).await)
    }
}
