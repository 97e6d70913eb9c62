//! The watch of definitions: which of them changed, not what they are.
//!
//! It begins at the version of the moment, so that the API server sends nothing for definitions
//! that stay as they are, and goes on where it stopped.

use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use kube::Api;
use kube::api::WatchParams;
use kube::core::WatchEvent;
use tracing::{info, warn};

use super::{ABSENT_PAUSE, CREDENTIALS_PAUSE, LONGEST_PAUSE, name};
use crate::agent::cache::Cache;
use crate::agent::connection::Connection;
use crate::agent::kept::Kept;
use crate::agent::metrics::Metrics;
use crate::agent::pause::Pause;
use crate::cluster::api::definitions::DefinitionObject;
use crate::cluster::api::{ApiError, ApiServer};

/// How a failure names the request.
const REQUEST: &str = "a watch of NetworkAttachmentDefinition objects (k8s.cni.cncf.io/v1)";
/// How long the API server may take to begin.
const START: Duration = Duration::from_secs(10);
/// A watch that ends sooner is not begun again at once.
const SHORTEST: Duration = Duration::from_secs(1);
/// The API server has no memory of a version that is too old.
const GONE: u16 = 410;

/// Watches the definitions, for ever.
pub(in crate::agent) async fn definitions(
    connection: Rc<Connection>,
    cache: Rc<Cache>,
    metrics: Rc<Metrics>,
) {
    let kept = &cache.definitions;
    let pause = Pause::default();
    let mut last = String::new();
    loop {
        let server = connection.server();
        let error = follow(&server, kept, &pause).await;
        metrics.watch_failed("definition");
        let cause = error.to_string();
        if cause != last {
            warn!(
                kind = "NetworkAttachmentDefinition",
                "the watch failed and begins again: {cause}"
            );
            last = cause;
        }
        let longest = match error {
            ApiError::NotServed { .. } => {
                kept.none_served();
                ABSENT_PAUSE
            }
            _ if error.code() == Some(401) => CREDENTIALS_PAUSE,
            // Other requests fare no better: what is kept has to do.
            _ if error.is_general() => LONGEST_PAUSE,
            _ => {
                kept.lose();
                LONGEST_PAUSE
            }
        };
        tokio::time::sleep(pause.lengthen(longest, Duration::ZERO)).await;
        if error.code() == Some(401)
            && let Err(error) = connection.renew().await
        {
            warn!(kind = "NetworkAttachmentDefinition", "{error}");
        }
    }
}

/// Watches until something goes wrong, which is the answer.
async fn follow(server: &ApiServer, kept: &Kept, pause: &Pause) -> ApiError {
    loop {
        let began = Instant::now();
        match once(server, kept, pause).await {
            Ok(()) => {}
            // It is begun anew at once, and what was kept is read again when it is needed.
            Err(error) if error.code() == Some(GONE) && began.elapsed() > SHORTEST => kept.lose(),
            Err(error) => return error,
        }
        tokio::time::sleep(SHORTEST.saturating_sub(began.elapsed())).await;
    }
}

/// Watches until the API server ends the watch, as it does every few minutes.
async fn once(server: &ApiServer, kept: &Kept, pause: &Pause) -> Result<(), ApiError> {
    let version = match kept.version() {
        Some(version) => version,
        None => {
            let version = server.version_of_definitions().await;
            let version = version.map_err(|error| match error {
                ApiError::NotServed { server, .. } => ApiError::NotServed {
                    server,
                    request: REQUEST.to_owned(),
                },
                error => error,
            })?;
            kept.begin(version.clone());
            info!(
                kind = "NetworkAttachmentDefinition",
                version, "changes are watched"
            );
            version
        }
    };
    let failed = |error| server.explain(REQUEST, error);
    let api: Api<DefinitionObject> = Api::all(server.client());
    let params = WatchParams::default();
    let begun = tokio::time::timeout(START, api.watch_metadata(&params, &version)).await;
    let begun = begun.map_err(|_| {
        let cause = format!("nothing within {} s", START.as_secs());
        server.unreachable(REQUEST, cause)
    })?;
    let mut events = pin!(begun.map_err(failed)?);
    while let Some(event) = events.next().await {
        match event.map_err(failed)? {
            WatchEvent::Added(object)
            | WatchEvent::Modified(object)
            | WatchEvent::Deleted(object) => {
                let version = object.metadata.resource_version.clone().unwrap_or_default();
                if let Some(name) = name(&object) {
                    kept.changed(&name, &version);
                }
                kept.progress(version);
            }
            WatchEvent::Bookmark(bookmark) => kept.progress(bookmark.metadata.resource_version),
            WatchEvent::Error(status) => return Err(failed(kube::Error::Api(status))),
        }
        pause.clear();
    }
    Ok(())
}
