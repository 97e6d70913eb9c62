//! Watches objects with their content. The watch begins with a list of all objects. The API server
//! then reports every change.

use tracing::{info, warn};

use crate::agent::cache::{Cacheable, ObjectCache, ObjectSet};
use crate::agent::watch::WatchTarget;
use crate::cluster::api::events::{Change, Event};
use crate::cluster::api::kinds::{ObjectNameError, Objects};
use crate::cluster::api::{ApiError, ApiServer};
use crate::npwg::ObjectRef;

/// Parses an object into the form that the cache keeps. Returns `None` for an object that the cache
/// does not keep. The [`Change`] of an object from a list is [`Change::Added`]. For
/// [`Change::Deleted`], the caller ignores the returned value.
type Keep<'a, T> = dyn Fn(&ObjectRef, &str, Change) -> serde_json::Result<Option<T>> + 'a;

/// Fills a cache from a watch.
pub(super) struct ObjectWatch<'a, T> {
    /// The kind of the objects.
    pub(super) kind: &'static str,
    /// The cache to fill.
    pub(super) cache: &'a ObjectCache<T>,
    /// Parses an object into the form that the cache keeps.
    pub(super) keep: &'a Keep<'a, T>,
    /// Called after every list and before every event.
    pub(super) heard: &'a dyn Fn(),
}

impl<T: Cacheable> ObjectWatch<'_, T> {
    /// Parses an object into the form that the cache keeps. If parsing fails, logs a warning and
    /// returns `None`. The agent then reads the object from the API server when a plugin's question
    /// needs the object.
    fn kept(&self, object: &ObjectRef, text: &str, change: Change) -> Option<T> {
        let kept = (self.keep)(object, text, change);
        kept.unwrap_or_else(|cause| {
            warn!(kind = self.kind, "cannot read {object}: {cause}");
            None
        })
    }

    /// Returns the name of an object. If the name is invalid, logs a warning and returns `None`.
    fn named(&self, object: Result<ObjectRef, ObjectNameError>) -> Option<ObjectRef> {
        let kind = self.kind;
        object
            .inspect_err(|cause| warn!(kind, "skipped an object without a valid name: {cause}"))
            .ok()
    }
}

impl<T: Cacheable + Default> WatchTarget for ObjectWatch<'_, T> {
    async fn begin(&self, server: &ApiServer, objects: &Objects) -> Result<String, ApiError> {
        let mut all = ObjectSet::default();
        let listed = server.list(objects, |item| {
            if let Some(object) = self.named(item.object())
                && let Some(kept) = self.kept(&object, item.text(), Change::Added)
            {
                all.put(object, kept);
            }
            true
        });
        let version = listed.await?;
        self.cache.replace(all);
        let (kind, count) = (self.kind, self.cache.len());
        info!(kind, count, "the list is complete");
        (self.heard)();
        Ok(version)
    }

    fn take(&self, event: Event<'_>) {
        (self.heard)();
        self.cache.hear();
        if event.change != Change::Bookmark
            && let Some(object) = self.named(event.object)
        {
            let kept = self.kept(&object, event.text, event.change);
            let kept = kept.filter(|_| event.change != Change::Deleted);
            self.cache.put(object, kept);
        }
    }

    /// Keeps the objects until a new list replaces them.
    fn lose(&self) {}

    fn none_served(&self) {
        self.cache.replace(ObjectSet::default());
    }
}
