//! The watch of objects that are kept: all are listed at first, and each change is shown.

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

/// A shelf that a watch fills.
pub(super) struct ObjectWatch<'a, K, T, Keep, Heard> {
    objects: Objects,
    shelf: &'a ObjectCache<T>,
    /// What is kept of an object; says too whether the watch shows it for the first time.
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
    /// `shelf` is to hold what `keep` makes of `objects`.
    pub(super) fn new(
        objects: Objects,
        shelf: &'a ObjectCache<T>,
        keep: Keep,
        heard: Heard,
    ) -> Self {
        ObjectWatch {
            objects,
            shelf,
            keep,
            heard,
            version: RefCell::default(),
            wire: PhantomData,
        }
    }

    /// What is kept of an object; nothing where it cannot be read. It is read at its use then, and
    /// whoever uses it hears why it cannot be.
    fn kept(&self, object: &ObjectRef, text: &str, is_new: bool) -> Option<T> {
        match serde_json::from_str(text) {
            Ok(read) => (self.keep)(object, read, is_new),
            Err(cause) => {
                let kind = self.objects.kind;
                warn!(kind, "{object} cannot be read and is not kept: {cause}");
                None
            }
        }
    }

    /// The name of an object that has one.
    fn named(&self, object: Result<ObjectRef, ObjectNameError>) -> Option<ObjectRef> {
        let kind = self.objects.kind;
        object
            .inspect_err(|cause| warn!(kind, "an object cannot be read and is not kept: {cause}"))
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
        self.shelf.begin();
        let listed = server.list(&self.objects, |item| {
            if let Some(object) = self.named(item.object())
                && let Some(kept) = self.kept(&object, item.text(), true)
            {
                self.shelf.list(object, kept);
            }
            true
        });
        let version = listed.await?;
        self.shelf.end();
        let (kind, count) = (self.objects.kind, self.shelf.len());
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
                Some(kept) => self.shelf.apply(object, kept),
                None => self.shelf.remove(&object),
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
        self.shelf.begin();
        self.shelf.end();
    }
}
