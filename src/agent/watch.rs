//! The watches that fill the cache.

mod definitions;

use std::fmt::Debug;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tracing::{info, warn};

use super::cache::{Cache, Shelf};
use super::connection::Connection;
use super::knowledge::Knowledge;
use super::metrics::Metrics;
use super::pause::Pause;
use super::publisher::Publisher;
pub(super) use definitions::definitions;

use crate::cluster::api::objects::PodObject;
use crate::cluster::api::slices::SliceObject;
use crate::cluster::api::{ApiError, ApiServer, PodView, SliceView};
use crate::npwg::ObjectRef;

/// Objects a page of a list: what is in memory at once while a list is read.
const PAGE: u32 = 100;
/// Where objects of the cluster as a whole are kept, which are in no namespace.
const NO_NAMESPACE: &str = "cluster";
/// The longest pause after failures that go on: an API server that comes up has all nodes before it.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How soon it is looked again for a resource that the cluster does not have.
const ABSENT_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause before credentials that were refused are read again.
const CREDENTIALS_PAUSE: Duration = Duration::from_secs(5);

/// Watches this node's pods, for ever. That it hears something shows that the API server is back:
/// what is owed is tried then.
pub(super) async fn pods(
    connection: Rc<Connection>,
    knowledge: Rc<Knowledge>,
    publisher: Rc<Publisher>,
    metrics: Rc<Metrics>,
) {
    let node = &knowledge.node;
    let config = watcher::Config::default()
        .fields(&format!("spec.nodeName={node}"))
        .page_size(PAGE);
    let heard = || publisher.api_server_is_back();
    let told = Told {
        heard,
        failed: || metrics.watch_failed("pod"),
    };
    let keep = |object: PodObject| {
        let name = name(&object);
        let view = PodView::from(object);
        if let Some(pod) = name {
            knowledge.foresee(&pod, &view);
        }
        view.to_be_kept()
    };
    watch::<PodObject, PodView>(&connection, config, &knowledge.cache.pods, keep, told).await;
}

/// Watches what DRA drivers have on this node, for ever.
pub(super) async fn slices(
    connection: Rc<Connection>,
    cache: Rc<Cache>,
    metrics: Rc<Metrics>,
    node: String,
) {
    let config = watcher::Config::default()
        .fields(&format!("spec.nodeName={node}"))
        .page_size(PAGE);
    let shelf = &cache.slices;
    let told = Told {
        heard: || {},
        failed: || metrics.watch_failed("slice"),
    };
    watch::<SliceObject, SliceView>(&connection, config, shelf, SliceView::from, told).await;
}

/// Who else is told of a watch: that it brings something, that it failed.
struct Told<H, F> {
    heard: H,
    failed: F,
}

async fn watch<K, T>(
    connection: &Connection,
    config: watcher::Config,
    shelf: &Shelf<T>,
    keep: impl Fn(K) -> T,
    told: Told<impl Fn(), impl Fn()>,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let kind = K::kind(&()).into_owned();
    let pause = Pause::default();
    let mut last = String::new();
    loop {
        let server = connection.server();
        let api: Api<K> = Api::all(server.client());
        let mut stream = pin!(watcher(api, config.clone()));
        while let Some(event) = stream.next().await {
            let error = match event {
                Ok(event) => {
                    // The beginning of a list is nothing that the API server has said yet.
                    if !matches!(event, Event::Init) {
                        pause.clear();
                        last.clear();
                        (told.heard)();
                    }
                    take(event, shelf, &keep, &kind);
                    continue;
                }
                Err(error) => failure::<K>(&server, error),
            };
            (told.failed)();
            let cause = error.to_string();
            if cause != last {
                warn!(kind, "the watch failed and begins again: {cause}");
                last = cause;
            }
            let longest = match error {
                ApiError::NotServed { .. } => {
                    // There is none of it.
                    shelf.begin();
                    shelf.end();
                    ABSENT_PAUSE
                }
                _ if error.code() == Some(401) => CREDENTIALS_PAUSE,
                _ => LONGEST_PAUSE,
            };
            tokio::time::sleep(pause.lengthen(longest, Duration::ZERO)).await;
            if error.code() == Some(401) {
                break;
            }
        }
        if let Err(error) = connection.renew().await {
            warn!(kind, "{error}");
        }
    }
}

fn take<K, T>(event: Event<K>, shelf: &Shelf<T>, keep: impl Fn(K) -> T, kind: &str)
where
    K: Resource<DynamicType = ()>,
{
    match event {
        Event::Init => shelf.begin(),
        Event::InitApply(object) => {
            if let Some(name) = name(&object) {
                shelf.list(name, keep(object));
            }
        }
        Event::InitDone => {
            shelf.end();
            info!(kind, count = shelf.len(), "the list is whole");
        }
        Event::Apply(object) => {
            if let Some(name) = name(&object) {
                shelf.apply(name, keep(object));
            }
        }
        Event::Delete(object) => {
            if let Some(name) = name(&object) {
                shelf.remove(&name);
            }
        }
    }
}

fn name<K: Resource>(object: &K) -> Option<ObjectRef> {
    let meta = object.meta();
    let namespace = meta.namespace.as_deref().unwrap_or(NO_NAMESPACE);
    ObjectRef::new(namespace, meta.name.as_deref()?).ok()
}

/// Why a watch failed, with the API server and what to do.
fn failure<K>(server: &ApiServer, error: watcher::Error) -> ApiError
where
    K: Resource<DynamicType = ()>,
{
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    let request = format!(
        "a watch of {} objects ({})",
        K::kind(&()),
        K::api_version(&())
    );
    match error {
        WatchError(status) => server.explain(&request, kube::Error::Api(status)),
        InitialListFailed(error) | WatchStartFailed(error) | WatchFailed(error) => {
            server.explain(&request, error)
        }
        error => server.unreachable(&request, error.to_string()),
    }
}
