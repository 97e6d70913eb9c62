//! The watches that fill the cache.
//!
//! A watch begins at the current version and resumes where it stopped, so the API server sends nothing
//! twice. One page of a list, or one event, is in memory at a time.

mod definitions;
mod objects;

use std::rc::Rc;
use std::time::{Duration, Instant};

use tracing::warn;

use super::cache::Cache;
use super::connection::ApiConnection;
use super::knowledge::Knowledge;
use super::metrics::Metrics;
use super::pause::Pause;
use super::publisher::Publisher;
use crate::cluster::api::events::Event;
use crate::cluster::api::kinds::Objects;
use crate::cluster::api::objects::PodObject;
use crate::cluster::api::slices::SliceObject;
use crate::cluster::api::{ApiError, ApiServer, PodView, SliceView};
use definitions::DefinitionWatch;
use objects::ObjectWatch;

/// The longest pause after repeated failures: all nodes wait for an API server that comes up.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The pause before a retry for a kind that the cluster does not have.
const ABSENT_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause before refused credentials are read again.
const CREDENTIALS_PAUSE: Duration = Duration::from_secs(5);
/// After a shorter watch there is a pause.
const SHORTEST: Duration = Duration::from_secs(1);
/// The status for a version that the API server no longer has.
const GONE: u16 = 410;

/// Watches this node's pods, for ever. Its events show that the API server is back, so that owed writes
/// are retried.
pub(super) async fn pods(
    connection: Rc<ApiConnection>,
    knowledge: Rc<Knowledge>,
    publisher: Rc<Publisher>,
    metrics: Rc<Metrics>,
) {
    let keep = |pod: &_, object: PodObject, is_new| {
        let view = PodView::from(object);
        if is_new {
            knowledge.foresee(pod, &view);
        }
        view.to_be_kept()
    };
    let heard = || publisher.api_server_is_back();
    let objects = Objects::pods(&knowledge.node);
    let pods = ObjectWatch::new(objects, &knowledge.cache.pods, keep, heard);
    watch(&connection, &pods, || metrics.watch_failed("pod")).await;
}

/// Watches the ResourceSlices of this node, for ever.
pub(super) async fn slices(
    connection: Rc<ApiConnection>,
    cache: Rc<Cache>,
    metrics: Rc<Metrics>,
    node: String,
) {
    let keep = |_: &_, object: SliceObject, _| Some(SliceView::from(object));
    let slices = ObjectWatch::new(Objects::slices(&node), &cache.slices, keep, || {});
    watch(&connection, &slices, || metrics.watch_failed("slice")).await;
}

/// Watches the definitions, for ever.
pub(super) async fn definitions(
    connection: Rc<ApiConnection>,
    cache: Rc<Cache>,
    metrics: Rc<Metrics>,
) {
    let definitions = DefinitionWatch::new(&cache.definitions);
    let failed = || metrics.watch_failed("definition");
    watch(&connection, &definitions, failed).await;
}

/// The objects of a watch, and the cache that follows them.
#[allow(async_fn_in_trait, reason = "everything runs on one thread")]
trait WatchTarget {
    /// The objects that are watched.
    fn objects(&self) -> &Objects;

    /// The version at which the watch resumes; `None` when it has to begin again.
    fn version(&self) -> Option<String>;

    /// Begins again, and returns the version at which the watch begins.
    async fn begin(&self, server: &ApiServer) -> Result<String, ApiError>;

    /// Takes an event.
    fn take(&self, event: Event<'_>);

    /// Notes that events may have been missed, so that the watch begins again.
    fn lose(&self);

    /// Notes that the cluster has no such kind.
    fn none_served(&self);
}

async fn watch(connection: &ApiConnection, watched: &impl WatchTarget, failed: impl Fn()) {
    let kind = watched.objects().kind;
    let pause = Pause::default();
    let mut last = String::new();
    loop {
        let server = connection.server();
        let error = follow(&server, watched, &pause, &mut last).await;
        failed();
        let cause = error.to_string();
        if cause != last {
            warn!(kind, "the watch failed and begins again: {cause}");
            last = cause;
        }
        let longest = match &error {
            error if error.is_not_served() => {
                watched.none_served();
                ABSENT_PAUSE
            }
            _ if error.code() == Some(401) => CREDENTIALS_PAUSE,
            // Other requests would fail too, so the cache stays in use.
            _ if error.is_general() => LONGEST_PAUSE,
            _ => {
                watched.lose();
                LONGEST_PAUSE
            }
        };
        tokio::time::sleep(pause.lengthen(longest, Duration::ZERO)).await;
        if error.code() == Some(401)
            && let Err(error) = connection.renew().await
        {
            warn!(kind, "{error}");
        }
    }
}

/// Watches until an error, which it returns.
async fn follow(
    server: &ApiServer,
    watched: &impl WatchTarget,
    pause: &Pause,
    last: &mut String,
) -> ApiError {
    loop {
        let began = Instant::now();
        let heard = || {
            pause.clear();
            last.clear();
        };
        match once(server, watched, heard).await {
            Ok(()) => {}
            // The watch begins again at once, and objects are read again when they are needed.
            Err(error) if error.code() == Some(GONE) && began.elapsed() > SHORTEST => {
                watched.lose();
            }
            Err(error) => return error.of(&format!("a watch of {}", watched.objects())),
        }
        tokio::time::sleep(SHORTEST.saturating_sub(began.elapsed())).await;
    }
}

/// Watches until the API server ends the watch, as it does every few minutes.
async fn once(
    server: &ApiServer,
    watched: &impl WatchTarget,
    mut heard: impl FnMut(),
) -> Result<(), ApiError> {
    let version = match watched.version() {
        Some(version) => version,
        None => watched.begin(server).await?,
    };
    let take = |event: Event<'_>| {
        watched.take(event);
        heard();
    };
    server.watch(watched.objects(), &version, take).await
}
