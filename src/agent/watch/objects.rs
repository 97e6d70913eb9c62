//! The watch of objects with their content: a list of all at first, and then each change.

use std::cell::RefCell;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use tracing::{info, warn};

use super::WatchTarget;
use crate::agent::cache::{Cacheable, ObjectCache};
use crate::cluster::api::events::{Change, Event};
use crate::cluster::api::kinds::{ObjectNameError, Objects};
use crate::cluster::api::{ApiError, ApiServer};
use crate::npwg::ObjectRef;

/// Fills a cache from a watch.
pub(super) struct ObjectWatch<'a, K, T, Keep, Heard> {
    objects: Objects,
    cache: &'a ObjectCache<T>,
    /// Makes the kept form of an object; the flag says whether the object is new to the watch.
    keep: Keep,
    /// Called when the API server has brought something.
    heard: Heard,
    version: RefCell<Option<String>>,
    wire: PhantomData<K>,
}

impl<'a, K, T, Keep, Heard> ObjectWatch<'a, K, T, Keep, Heard>
where
    K: DeserializeOwned,
    Keep: Fn(&ObjectRef, K, bool) -> Option<T>,
    T: Cacheable,
    Heard: Fn(),
{
    /// A watch that fills `cache` with the kept forms of `objects`.
    pub(super) fn new(
        objects: Objects,
        cache: &'a ObjectCache<T>,
        keep: Keep,
        heard: Heard,
    ) -> Self {
        ObjectWatch {
            objects,
            cache,
            keep,
            heard,
            version: RefCell::default(),
            wire: PhantomData,
        }
    }

    /// The kept form of an object; `None` after a warning where it cannot be read. A question reads it
    /// again, and gets the error.
    fn kept(&self, object: &ObjectRef, text: &str, is_new: bool) -> Option<T> {
        match serde_json::from_str(text) {
            Ok(read) => (self.keep)(object, read, is_new),
            Err(cause) => {
                let kind = self.objects.kind;
                warn!(kind, "cannot read {object}: {cause}");
                None
            }
        }
    }

    /// The name of an object that has one.
    fn named(&self, object: Result<ObjectRef, ObjectNameError>) -> Option<ObjectRef> {
        let kind = self.objects.kind;
        object
            .inspect_err(|cause| warn!(kind, "skipped an object without a valid name: {cause}"))
            .ok()
    }
}

impl<K, T, Keep, Heard> WatchTarget for ObjectWatch<'_, K, T, Keep, Heard>
where
    K: DeserializeOwned,
    Keep: Fn(&ObjectRef, K, bool) -> Option<T>,
    T: Cacheable,
    Heard: Fn(),
{
    fn objects(&self) -> &Objects {
        &self.objects
    }

    fn version(&self) -> Option<String> {
        self.version.borrow().clone()
    }

    async fn begin(&self, server: &ApiServer) -> Result<String, ApiError> {
        self.cache.begin();
        let listed = server.list(&self.objects, |item| {
            if let Some(object) = self.named(item.object())
                && let Some(kept) = self.kept(&object, item.text(), true)
            {
                self.cache.list(object, kept);
            }
            true
        });
        let version = listed.await?;
        self.cache.end();
        let (kind, count) = (self.objects.kind, self.cache.len());
        info!(kind, count, "the list is whole");
        *self.version.borrow_mut() = Some(version.clone());
        (self.heard)();
        Ok(version)
    }

    fn take(&self, event: Event<'_>) {
        (self.heard)();
        let change = event.change;
        if change != Change::Bookmark
            && let Some(object) = self.named(event.object)
        {
            let kept = match change {
                Change::Deleted => None,
                _ => self.kept(&object, event.text, change == Change::Added),
            };
            match kept {
                Some(kept) => self.cache.apply(object, kept),
                None => self.cache.remove(&object),
            }
        }
        if !event.version.is_empty() {
            *self.version.borrow_mut() = Some(event.version);
        }
    }

    fn lose(&self) {
        self.version.take();
    }

    fn none_served(&self) {
        self.lose();
        self.cache.begin();
        self.cache.end();
    }
}
