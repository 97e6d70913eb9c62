//! Look-ups: in the cache, else once at the API server.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tracing::warn;

use super::cache::Cache;
use super::connection::ApiConnection;
use super::definition_cache::{CachedDefinition, KEPT_TEXT, ReadOutcome};
use super::lookups::{COPIES, ROOM};
use super::metrics::Metrics;
use crate::cluster::PodAnnotations;
use crate::cluster::api::{ApiError, ApiServer, Lookup, PodView, definitions};
use crate::cluster::lookup::LookupError;
use crate::kubelet::{PodResources, Usage};
use crate::npwg::{Dialect, IpamClaim, ObjectRef};

/// The default socket of kubelet's pod-resources API, until a question names another.
const KUBELET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

/// How many definitions are read at once for the cache, and how many bytes of each: a configuration
/// of [`KEPT_TEXT`] that `kubectl apply` has also put into an annotation.
const READS: usize = 8;
const READ_TO_KEEP: usize = 256 << 10;
/// How many of a pod's definitions are read before the pod's ADD asks for them, and for how many
/// pods at once.
const FORESEEN: usize = 32;
const FORESIGHT: usize = 4;
/// How many pods that are not in the cache are read at once: each may be as long as etcd allows.
const PODS: usize = 2;

/// Everything that the agent can look up.
#[derive(Debug)]
pub(super) struct Knowledge {
    /// This node.
    pub(super) node: String,
    /// The objects that are known.
    pub(super) cache: Rc<Cache>,
    /// The room of answers that are being written, in KiB.
    pub(super) room: Semaphore,
    /// Turns to copy a definition of the cache.
    pub(super) copies: Semaphore,
    /// Turns to hold a definition that is not in the cache.
    pub(super) turn: Semaphore,
    /// Turns to hold a pod that is not in the cache.
    pub(super) pod_turns: Semaphore,
    /// The counters.
    pub(super) metrics: Rc<Metrics>,
    connection: Rc<ApiConnection>,
    /// The connection to kubelet, as the last question named it.
    kubelet: RefCell<Option<Rc<PodResources>>>,
    reads: Semaphore,
    foresight: Arc<Semaphore>,
}

impl Knowledge {
    /// Look-ups in `cache`, else over `connection`.
    pub(super) fn new(
        node: String,
        cache: Rc<Cache>,
        metrics: Rc<Metrics>,
        connection: Rc<ApiConnection>,
    ) -> Knowledge {
        Knowledge {
            node,
            cache,
            room: Semaphore::new(ROOM),
            copies: Semaphore::new(COPIES),
            turn: Semaphore::new(1),
            pod_turns: Semaphore::new(PODS),
            metrics,
            connection,
            kubelet: RefCell::default(),
            reads: Semaphore::new(READS),
            foresight: Arc::new(Semaphore::new(FORESIGHT)),
        }
    }

    /// The API server, for requests other than look-ups.
    pub(super) fn server(&self) -> ApiServer {
        self.connection.server()
    }

    /// The devices of this node, as kubelet has them; `None` where it cannot be asked.
    pub(super) async fn devices(&self) -> Option<Vec<Usage>> {
        let kept = self.kubelet.borrow().clone();
        // No question has named the socket yet, but kubelet may be on the default one.
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

    /// Asks the API server. If it refuses the credentials, they are read again for a second try.
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

    /// A pod of the cache, if all of it is there.
    pub(super) fn cached_pod(&self, namespace: &str, name: &str) -> Option<PodView> {
        let pod = ObjectRef::new(namespace, name).ok()?;
        let view = self.cache.pods.get(&pod)?;
        (!view.is_partial).then(|| PodView::clone(&view))
    }

    /// Reads a pod from the API server. The caller holds one of the turns.
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

    /// A definition, from the cache or read for it.
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

    /// The API server's text of a definition of at most `most` bytes. If the token has expired, it
    /// reads the token again.
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

    /// Reads the definitions that a new pod selects before its ADD asks for them. It does so for at most
    /// [`FORESIGHT`] pods at once and skips others, whose definitions are read with the question.
    pub(super) fn foresee(self: &Rc<Self>, pod: &ObjectRef, view: &PodView) {
        if view.status.is_some() || view.is_unattached || self.cache.pods.get(pod).is_some() {
            return;
        }
        // The node configuration decides in which namespace a bare default network is looked up.
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
                // The watch drops a reading when the definition changes, so one is repeated.
                for _ in 0..2 {
                    let is_wanted = !this.cache.definitions.has(&object);
                    // Errors come up when the pod is attached.
                    if !is_wanted || this.definition(&object).await.is_err() {
                        break;
                    }
                }
            }
            drop(turn);
        });
    }

    /// Reads a claim from the API server.
    pub(super) async fn claim(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<IpamClaim, LookupError> {
        self.metrics.looked_up("claim", "api");
        self.server().claim(namespace, name).await
    }

    /// kubelet's pod-resources API behind a socket.
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
