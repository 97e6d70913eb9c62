//! The look-ups for one question (a request of a plugin to the agent), and a limit on the memory of
//! the answer.
//!
//! The NetworkAttachmentDefinitions (definitions) in all pending answers share a limited amount of
//! memory (`ROOM` in `knowledge.rs`). If a definition does not fit, the agent sends it in a
//! separate message before the answer. A plugin that does not accept separate messages gets an
//! error. Separate messages need memory too. So the agent copies at most `COPIES` definitions
//! from its cache at the same time. If a definition is too long for its cache, the agent reads it
//! from the API server, one such definition at a time.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use tokio::net::UnixStream;
use tokio::sync::{Mutex, SemaphorePermit};

use super::definition_cache::{CachedDefinition, KEPT_TEXT};
use super::knowledge::Knowledge;
use super::serve::send_frame;
use crate::cluster::api::definitions::{LARGEST_DEFINITION, Unread};
use crate::cluster::api::{ApiError, Lookup, PodView, SliceView};
use crate::cluster::frame::{self, FromAgent, MAX_FROM_AGENT};
use crate::cluster::lookup::LookupError;
use crate::kubelet::PodResources;
use crate::npwg::{Definition, IpamClaim, ObjectRef};

/// The look-ups for one question.
#[derive(Debug)]
pub(super) struct QuestionLookups<'a, 's> {
    knowledge: &'a Knowledge,
    /// The connection to the plugin, if the plugin accepts definitions before the answer.
    plugin: Option<Mutex<&'s mut UnixStream>>,
    /// The permits for the memory of the answer.
    taken: RefCell<Vec<SemaphorePermit<'a>>>,
    is_plugin_gone: Cell<bool>,
}

impl<'a, 's> QuestionLookups<'a, 's> {
    /// Returns the look-ups for a question. `stream` is the connection to the plugin, if the plugin
    /// accepts definitions before the answer.
    pub(super) fn new(knowledge: &'a Knowledge, stream: Option<&'s mut UnixStream>) -> Self {
        QuestionLookups {
            knowledge,
            plugin: stream.map(Mutex::new),
            taken: RefCell::default(),
            is_plugin_gone: Cell::new(false),
        }
    }

    /// Whether the plugin closed the connection or stopped reading.
    pub(super) fn is_plugin_gone(&self) -> bool {
        self.is_plugin_gone.get()
    }

    /// Returns the permits for the memory of the answer. The caller drops them once it has sent
    /// the answer.
    pub(super) fn close(self) -> Vec<SemaphorePermit<'a>> {
        self.taken.into_inner()
    }

    fn takes_room_for(&self, definition: &Definition) -> bool {
        let length = definition.config.as_ref().map_or(0, String::len);
        let size = u32::try_from(length / 1024 + 1).unwrap_or(u32::MAX);
        let permit = self.knowledge.room.try_acquire_many(size);
        let has_room = permit.is_ok();
        self.taken.borrow_mut().extend(permit);
        has_room
    }

    /// Sends a definition from the cache in a separate message. Waits for a permit of `copies`, but
    /// not for the permit `turn`, which `read_and_send` may hold for long.
    async fn send_cached(
        &self,
        object: &ObjectRef,
        definition: &Definition,
    ) -> Result<Definition, LookupError> {
        let _copy = self.knowledge.copies.acquire().await?;
        let part = FromAgent::Definition(Box::new((object.clone(), definition.clone())));
        self.send(&frame::encode(&part, MAX_FROM_AGENT)?).await;
        Ok(for_answer(&definition.object, &definition.resource_name))
    }

    /// Reads a definition that is too long for the cache, and sends it in a separate message.
    async fn read_and_send(&self, object: &ObjectRef) -> Result<Definition, LookupError> {
        let _turn = self.knowledge.turn.acquire().await?;
        // This block drops `text`, so the agent holds only `part` while the plugin reads.
        let (left, part) = {
            let text = self.knowledge.text(object, LARGEST_DEFINITION).await?;
            let unread = Unread::of(&text)?;
            let left = for_answer(&unread.object, &unread.resource_name);
            (left, frame::definition(object, &unread)?)
        };
        self.send(&part).await;
        Ok(left)
    }

    async fn send(&self, part: &[u8]) {
        if let Some(plugin) = &self.plugin
            && !self.is_plugin_gone.get()
            && !send_frame(*plugin.lock().await, part).await
        {
            self.is_plugin_gone.set(true);
        }
    }
}

/// Returns the definition for the answer, without the configuration, which the agent sends in a
/// separate message.
fn for_answer(object: &ObjectRef, resource_name: &Option<String>) -> Definition {
    Definition {
        object: object.clone(),
        config: None,
        resource_name: resource_name.clone(),
    }
}

impl Lookup for QuestionLookups<'_, '_> {
    fn cached_pod(&self, namespace: &str, name: &str) -> Option<PodView> {
        let known = self.knowledge.cached_pod(namespace, name);
        if known.is_some() {
            self.knowledge.metrics.looked_up("pod", "cache");
        }
        known
    }

    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodView>, ApiError> {
        let turn = self.knowledge.pod_turns.acquire().await;
        let fetched = self.knowledge.current_pod(namespace, name).await;
        if matches!(&fetched, Ok(Some(view)) if view.is_long()) {
            // The permit limits the memory for pods. The answer contains the long annotations of
            // this pod, so keep the permit until the agent has sent the answer.
            self.taken.borrow_mut().extend(turn);
        }
        fetched
    }

    async fn definition(&self, object: &ObjectRef) -> Result<Definition, Rc<LookupError>> {
        match self.knowledge.definition(object).await? {
            CachedDefinition::Whole(definition) if self.takes_room_for(&definition) => {
                Ok(Definition::clone(&definition))
            }
            _ if self.plugin.is_none() => Err(Rc::new(LookupError::TooLongForPlugin(
                object.clone(),
                KEPT_TEXT,
            ))),
            CachedDefinition::Whole(definition) => {
                Ok(self.send_cached(object, &definition).await?)
            }
            CachedDefinition::TooLong => Ok(self.read_and_send(object).await?),
        }
    }

    async fn claim(&self, namespace: &str, name: &str) -> Result<IpamClaim, LookupError> {
        self.knowledge.metrics.looked_up("claim", "api");
        self.knowledge.server().claim(namespace, name).await
    }

    fn kubelet(&self, socket: &Path) -> Rc<PodResources> {
        self.knowledge.kubelet(socket)
    }

    fn cached_slices(&self) -> Option<Vec<Rc<SliceView>>> {
        Some(self.knowledge.cache.slices.all())
    }

    async fn slices(&self, node: &str) -> Result<Vec<Rc<SliceView>>, ApiError> {
        self.knowledge.server().slices(node).await
    }
}
