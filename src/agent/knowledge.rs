//! Look-ups in the cache. If an object is not in the cache, the agent reads it from the API server.
//!
//! A question is a request of the plugin, such as a look-up for an ADD. A definition is a
//! NetworkAttachmentDefinition.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tracing::warn;

use super::cache::Cache;
use super::connection::ApiConnection;
use super::definition_cache::{CachedDefinition, KEPT_TEXT, ReadOutcome};
use super::metrics::Metrics;
use super::spread_start::SpreadStart;
use crate::cluster::PodAnnotations;
use crate::cluster::api::{ApiError, ApiServer, Lookup, PodView, definitions};
use crate::cluster::lookup::LookupError;
use crate::kubelet::{PodResources, Usage};
use crate::npwg::{Dialect, ObjectRef};

/// The limit of the memory for the definitions in all pending answers, in KiB. If a definition
/// needs more memory than is free, the agent sends it in a separate message before the answer.
const ROOM: usize = 1024;
/// The maximum number of cached definitions that the agent sends in such separate messages at the
/// same time. The number is small to save memory, because each message copies its definition.
const COPIES: usize = 8;
/// The default socket of kubelet's pod-resources API, used until a question names a socket.
const KUBELET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

/// How many definitions the agent reads for the cache at the same time.
const READS: usize = 8;
/// The largest definition that the agent reads for the cache, in bytes. This is enough for a
/// configuration of [`KEPT_TEXT`] bytes and the copy that `kubectl apply` puts into an annotation.
const READ_TO_KEEP: usize = 256 << 10;
/// The maximum number of definitions that the agent reads for a pod before the pod's ADD.
const FORESEEN: usize = 32;
/// The maximum number of pods for which the agent concurrently reads definitions in advance.
const FORESIGHT: usize = 4;
/// The maximum number of pods outside the cache that the agent reads at the same time. The number
/// is small to save memory, because a pod object may be as large as etcd allows.
const PODS: usize = 2;

/// Everything that the agent can look up.
#[derive(Debug)]
pub(super) struct Knowledge {
    /// The name of this node.
    pub(super) node: String,
    /// The objects that the agent can look up without a request.
    pub(super) cache: Rc<Cache>,
    /// The free memory for the definitions in pending answers, in KiB.
    pub(super) room: Semaphore,
    /// Permits to copy a definition from the cache, up to [`COPIES`].
    pub(super) copies: Semaphore,
    /// A single permit to read and send a definition that is too long for the cache.
    pub(super) turn: Semaphore,
    /// Permits to read a pod that is not in the cache, up to [`PODS`].
    pub(super) pod_turns: Semaphore,
    /// The metrics of the agent.
    pub(super) metrics: Rc<Metrics>,
    /// The random wait before the agent's first requests to the API server. Without the wait, the
    /// agents of all nodes could send these requests at the same time.
    pub(super) start: SpreadStart,
    connection: Rc<ApiConnection>,
    /// The connection to the kubelet socket that the last question named.
    kubelet: RefCell<Option<Rc<PodResources>>>,
    reads: Semaphore,
    foresight: Arc<Semaphore>,
}

impl Knowledge {
    /// Creates the agent's look-ups. They use `connection` for objects that `cache` does not have.
    /// `start` delays the watches and the publisher, but not the look-ups.
    pub(super) fn new(
        node: String,
        cache: Rc<Cache>,
        metrics: Rc<Metrics>,
        connection: Rc<ApiConnection>,
        start: SpreadStart,
    ) -> Knowledge {
        Knowledge {
            node,
            cache,
            room: Semaphore::new(ROOM),
            copies: Semaphore::new(COPIES),
            turn: Semaphore::new(1),
            pod_turns: Semaphore::new(PODS),
            metrics,
            start,
            connection,
            kubelet: RefCell::default(),
            reads: Semaphore::new(READS),
            foresight: Arc::new(Semaphore::new(FORESIGHT)),
        }
    }

    /// Returns the current connection to the API server.
    pub(super) fn server(&self) -> ApiServer {
        self.connection.server()
    }

    /// Asks kubelet how many devices of each resource this node has, and how many of them are
    /// allocated. Returns `None` if the request fails.
    pub(super) async fn devices(&self) -> Option<Vec<Usage>> {
        let kept = self.kubelet.borrow().clone();
        // The agent learns the configured socket from questions. Before the first question, try
        // the default socket.
        let kubelet = kept.unwrap_or_else(|| Rc::new(PodResources::at(Path::new(KUBELET))));
        kubelet.usage().await.ok()
    }

    /// Reads the credentials again if the API server refused them.
    pub(super) async fn renew_after(&self, error: &ApiError) {
        if is_refused(error)
            && let Err(error) = self.connection.renew().await
        {
            warn!("{error}");
        }
    }

    /// Asks the API server. If the server refuses the credentials, reads them again and asks once
    /// more.
    async fn ask<T, E>(
        &self,
        is_refused: impl FnOnce(&E) -> bool,
        ask: impl AsyncFn(ApiServer) -> Result<T, E>,
    ) -> Result<T, E> {
        match ask(self.server()).await {
            Err(error) if is_refused(&error) && self.connection.renew().await.is_ok() => {
                ask(self.server()).await
            }
            answer => answer,
        }
    }

    /// Returns a pod from the cache, if the cache has the whole pod.
    pub(super) fn cached_pod(&self, namespace: &str, name: &str) -> Option<PodView> {
        let pod = ObjectRef::new(namespace, name).ok()?;
        let view = self.cache.pods.get(&pod)?;
        (!view.is_partial).then(|| PodView::clone(&view))
    }

    /// Reads a pod from the API server. Updates the cache if the pod is on this node. The caller
    /// must hold a permit of `pod_turns`.
    pub(super) async fn current_pod(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<PodView>, ApiError> {
        self.metrics.looked_up("pod", "api");
        let ask = async |server: ApiServer| server.pod(namespace, name).await;
        let fetched = self.ask(is_refused, ask).await;
        if let (Ok(Some(view)), Ok(pod)) = (&fetched, ObjectRef::new(namespace, name))
            && view.node.as_deref() == Some(self.node.as_str())
        {
            self.cache.pods.put(pod, view.to_be_kept());
        }
        fetched
    }

    /// Returns a definition from the cache. Reads the definition first if the cache does not have
    /// it.
    pub(super) async fn definition(
        &self,
        object: &ObjectRef,
    ) -> Result<CachedDefinition, Rc<LookupError>> {
        let kept = &self.cache.definitions;
        if let Some(known) = kept.get(object) {
            self.metrics.looked_up("definition", "cache");
            return Ok(known);
        }
        let reading = kept.reading(object);
        let read = async || {
            let permit = self.reads.acquire().await;
            let _permit = permit.map_err(LookupError::from)?;
            self.read_to_keep(object).await
        };
        let outcome = reading.get_or_init(read).await;
        kept.read(object, &reading);
        outcome.clone().map(|(known, _)| known)
    }

    /// Reads the text of a definition from the API server. Fails with [`LookupError::TooLong`] if
    /// the text has more than `most` bytes.
    pub(super) async fn text(
        &self,
        object: &ObjectRef,
        most: usize,
    ) -> Result<Vec<u8>, LookupError> {
        self.metrics.looked_up("definition", "api");
        let is_refused =
            |error: &LookupError| matches!(error, LookupError::Api(error) if is_refused(error));
        let ask = async |server: ApiServer| server.definition_text(object, most).await;
        self.ask(is_refused, ask).await
    }

    async fn read_to_keep(&self, object: &ObjectRef) -> ReadOutcome {
        let text = match self.text(object, READ_TO_KEEP).await {
            Err(LookupError::TooLong(..)) => {
                return Ok((CachedDefinition::TooLong, String::new()));
            }
            text => text?,
        };
        let (definition, version) = definitions::read(&text)?;
        let length = definition.config.as_ref().map_or(0, String::len);
        let known = match length {
            0..=KEPT_TEXT => CachedDefinition::Whole(Rc::new(definition)),
            _ => CachedDefinition::TooLong,
        };
        Ok((known, version))
    }

    /// Starts reading the definitions that a new pod selects, before the ADD of the pod asks for
    /// them. Reads nothing if the agent is already reading in advance for [`FORESIGHT`] pods. In
    /// that case, the agent reads the definitions when the ADD asks for them.
    pub(super) fn foresee(self: &Rc<Self>, pod: &ObjectRef, view: &PodView) {
        if view.status.is_some() || view.is_unattached || self.cache.pods.get(pod).is_some() {
            return;
        }
        // Omit the definition that the pod requests in place of the cluster network. Its namespace
        // may depend on the node configuration, which the agent does not read.
        let annotations = PodAnnotations {
            networks: view.annotations.networks.clone(),
            default_network: None,
        };
        let mut selected = annotations.references(pod.namespace(), "", Dialect::default());
        selected.truncate(FORESEEN);
        selected.retain(|object| !self.cache.definitions.has(object));
        let turn = match Arc::clone(&self.foresight).try_acquire_owned() {
            Ok(turn) if !selected.is_empty() => turn,
            _ => return,
        };
        let this = Rc::clone(self);
        tokio::task::spawn_local(async move {
            for object in selected {
                // If the definition changes during a read, the cache drops the result. Retry once.
                for _ in 0..2 {
                    let is_wanted = !this.cache.definitions.has(&object);
                    // Ignore an error, because the ADD of the pod reports it.
                    if !is_wanted || this.definition(&object).await.is_err() {
                        break;
                    }
                }
            }
            drop(turn);
        });
    }

    /// Returns a client for kubelet's pod-resources API at `socket`. Keeps only the client for the
    /// last socket.
    pub(super) fn kubelet(&self, socket: &Path) -> Rc<PodResources> {
        let mut kept = self.kubelet.borrow_mut();
        match &*kept {
            Some(kubelet) if kubelet.socket() == socket => Rc::clone(kubelet),
            _ => Rc::clone(kept.insert(Rc::new(PodResources::at(socket)))),
        }
    }
}

fn is_refused(error: &ApiError) -> bool {
    error.code() == Some(401)
}
