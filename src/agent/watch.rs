//! The watches that fill the cache.
//!
//! A watch resumes at the resource version where it stopped, so the API server sends only what has
//! changed since. If the API server no longer has that version, the watch begins again. A watch
//! reads the API server's answers in parts. At any time, only one page of a list or one event is in
//! memory.

mod objects;

use std::rc::Rc;
use std::time::{Duration, Instant};

use tracing::warn;

use super::attached_sandboxes::AttachedSandboxes;
use super::knowledge::Knowledge;
use super::pause::Pause;
use super::publisher::Publisher;
use crate::cluster::api::events::{Change, Event};
use crate::cluster::api::kinds::Objects;
use crate::cluster::api::{ApiError, ApiServer, PodView, SliceView};
use crate::npwg::ObjectRef;
use objects::ObjectWatch;

/// The longest pause after repeated failures. The pause protects an API server that is starting
/// while the agents of all nodes wait for it.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The longest pause after the API server answers that it does not serve the watched kind.
const ABSENT_PAUSE: Duration = Duration::from_secs(10);
/// The longest pause before the agent reads the credentials again after a refusal.
const CREDENTIALS_PAUSE: Duration = Duration::from_secs(5);
/// The shortest interval between the beginnings of two watches.
const SHORTEST: Duration = Duration::from_secs(1);
/// The HTTP status for a resource version that the API server no longer has.
const GONE: u16 = 410;

/// Receives what a watch reports.
#[allow(async_fn_in_trait, reason = "everything runs on one thread")]
pub(super) trait WatchTarget {
    /// Prepares for a new watch and returns the version at which the watch begins.
    async fn begin(&self, server: &ApiServer, objects: &Objects) -> Result<String, ApiError>;

    /// Handles an event.
    fn take(&self, event: Event<'_>);

    /// Notes that the watch may have missed events and has to begin again.
    fn lose(&self);

    /// Notes that the API server does not serve objects of this kind.
    fn none_served(&self);
}

/// Watches the pods of this node and never returns. At each list or event, tells the publisher that
/// the API server answers.
pub(super) async fn pods(
    knowledge: Rc<Knowledge>,
    publisher: Rc<Publisher>,
    sandboxes: Rc<AttachedSandboxes>,
) {
    let objects = Objects::pods(&knowledge.node);
    let pods = ObjectWatch {
        kind: objects.kind,
        cache: &knowledge.cache.pods,
        keep: &|pod: &ObjectRef, text: &str, change| {
            let view = serde_json::from_str::<PodView>(text)?;
            if change == Change::Added {
                knowledge.foresee(pod, &view);
            }
            match change {
                Change::Deleted => sandboxes.forget(pod, &view),
                _ => sandboxes.observe(pod, &view),
            }
            Ok(view.to_be_kept())
        },
        heard: &|| publisher.api_server_is_back(),
    };
    watch(&knowledge, "pod", &objects, &pods).await;
}

/// Watches the ResourceSlices of this node and never returns.
pub(super) async fn slices(knowledge: Rc<Knowledge>) {
    let objects = Objects::slices(&knowledge.node);
    let slices = ObjectWatch {
        kind: objects.kind,
        cache: &knowledge.cache.slices,
        keep: &|_: &ObjectRef, text: &str, _| Ok(Some(serde_json::from_str::<SliceView>(text)?)),
        heard: &|| {},
    };
    watch(&knowledge, "slice", &objects, &slices).await;
}

/// Watches the definitions and never returns.
pub(super) async fn definitions(knowledge: Rc<Knowledge>) {
    let (objects, cache) = (Objects::definitions(), &knowledge.cache.definitions);
    watch(&knowledge, "definition", &objects, cache).await;
}

/// Watches `objects` and never returns.
async fn watch(
    knowledge: &Knowledge,
    metric: &'static str,
    objects: &Objects,
    target: &impl WatchTarget,
) {
    let kind = objects.kind;
    knowledge.start.wait().await;
    let pause = Pause::default();
    // The version at which the watch resumes. `None` if the watch has to begin again.
    let mut version = None;
    let mut last = String::new();
    loop {
        let began = Instant::now();
        let heard = || {
            pause.clear();
            last.clear();
        };
        let server = knowledge.server();
        let error = match once(&server, objects, target, &mut version, heard).await {
            Err(error) if error.code() != Some(GONE) || began.elapsed() <= SHORTEST => error,
            ended => {
                if ended.is_err() {
                    // The version is too old, so the watch has to begin again.
                    version = None;
                    target.lose();
                }
                tokio::time::sleep(SHORTEST.saturating_sub(began.elapsed())).await;
                continue;
            }
        };
        let error = error.of(&format!("a watch of {objects}"));
        knowledge.metrics.watch_failed(metric);
        let cause = error.to_string();
        if cause != last {
            warn!(kind, "the watch failed: {cause}; the agent retries");
            last = cause;
        }
        let longest = match &error {
            error if error.is_not_served() => {
                version = None;
                target.none_served();
                ABSENT_PAUSE
            }
            _ if error.code() == Some(401) => CREDENTIALS_PAUSE,
            // The error affects every request, so a new list would fail too. The cache stays in
            // use and the watch resumes.
            _ if error.is_general() => LONGEST_PAUSE,
            _ => {
                version = None;
                target.lose();
                LONGEST_PAUSE
            }
        };
        tokio::time::sleep(pause.lengthen(longest, error.retry_after())).await;
        knowledge.renew_after(&error).await;
    }
}

/// Watches until the API server ends the watch, which happens after at most five minutes. The watch
/// begins at `version`. If `version` is `None`, the watch begins at the version that
/// [`WatchTarget::begin`] returns.
async fn once(
    server: &ApiServer,
    objects: &Objects,
    target: &impl WatchTarget,
    version: &mut Option<String>,
    mut heard: impl FnMut(),
) -> Result<(), ApiError> {
    let from = match version {
        Some(version) => version.clone(),
        None => target.begin(server, objects).await?,
    };
    *version = Some(from.clone());
    let take = |event: Event<'_>| {
        if !event.version.is_empty() {
            *version = Some(event.version.clone());
        }
        target.take(event);
        heard();
    };
    server.watch(objects, &from, take).await
}
