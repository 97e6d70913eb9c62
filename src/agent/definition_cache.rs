//! The cache of the definitions that pods of this node select. The cache has a memory budget.
//!
//! The agent reads a definition from the API server when a new pod selects the definition, or when
//! the plugin needs a definition that the cache does not have. The cache drops a definition when
//! the watch reports a change of the definition, when the watch may have missed changes, or when
//! the budget is exhausted. The agent watches only the metadata of definitions. The watch begins at
//! the current resource version, without a list of the definitions. So the cost of the watch does
//! not depend on the number of definitions.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::OnceCell;
use tracing::info;

use super::watch::WatchTarget;
use crate::cluster::api::events::Event;
use crate::cluster::api::kinds::Objects;
use crate::cluster::api::{ApiError, ApiServer};
use crate::cluster::lookup::LookupError;
use crate::npwg::{Definition, ObjectRef};

/// The longest configuration that the cache keeps, in bytes. The agent reads a longer configuration
/// at each use. Jackfield's CustomResourceDefinition limits a configuration to this many
/// characters. Multus' CustomResourceDefinition has no limit.
pub(super) const KEPT_TEXT: usize = 64 << 10;
/// The limit of the memory for all definitions, in bytes.
const BUDGET: usize = 1 << 20;
/// The memory that a definition takes besides its configuration and resource name, in bytes.
const OVERHEAD: usize = 512;

/// What the cache keeps of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CachedDefinition {
    /// The whole definition.
    Whole(Rc<Definition>),
    /// Only the fact that the definition is too long for the cache.
    TooLong,
}

impl CachedDefinition {
    fn size(&self) -> usize {
        let texts = match self {
            CachedDefinition::TooLong => 0,
            CachedDefinition::Whole(definition) => {
                let texts = [&definition.config, &definition.resource_name];
                texts.into_iter().flatten().map(String::len).sum()
            }
        };
        texts + OVERHEAD
    }
}

/// The result of reading a definition for the cache: the definition and its resource version.
pub(super) type ReadOutcome = Result<(CachedDefinition, String), Rc<LookupError>>;
/// A pending read of a definition. The first task that needs the definition sends the request to
/// the API server. Other tasks wait for the same outcome.
pub(super) type Reading = Rc<OnceCell<ReadOutcome>>;

#[derive(Debug)]
struct Entry {
    known: CachedDefinition,
    version: String,
    used: u64,
}

/// The definitions. If they exceed the budget, the cache drops the least recently used definition.
#[derive(Debug, Default)]
pub(super) struct DefinitionCache {
    entries: RefCell<HashMap<ObjectRef, Entry>>,
    readings: RefCell<HashMap<ObjectRef, Reading>>,
    uses: Cell<u64>,
    size: Cell<usize>,
    /// Whether the watch reports changes. Without a watch, the cache keeps nothing.
    is_watched: Cell<bool>,
    heard: Cell<Option<Instant>>,
}

impl DefinitionCache {
    /// Returns the definition with this name, if the cache has it.
    pub(super) fn get(&self, object: &ObjectRef) -> Option<CachedDefinition> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(object)?;
        entry.used = self.next();
        Some(entry.known.clone())
    }

    /// Returns true if the definition is in the cache, and also while a read of the definition is
    /// pending.
    pub(super) fn has(&self, object: &ObjectRef) -> bool {
        self.entries.borrow().contains_key(object) || self.readings.borrow().contains_key(object)
    }

    /// Returns the number of definitions in the cache.
    pub(super) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Whether a watch has ever begun. Also `true` after the API server has answered that it does
    /// not serve definitions.
    pub(super) fn is_synced(&self) -> bool {
        self.heard.get().is_some()
    }

    /// Returns when the agent last heard about definitions from the API server. The start of a
    /// watch counts too.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.heard.get()
    }

    /// Returns the pending read of a definition. If there is none, adds a pending read. Tasks that
    /// need the definition at the same time share the read.
    pub(super) fn reading(&self, object: &ObjectRef) -> Reading {
        let mut readings = self.readings.borrow_mut();
        Rc::clone(readings.entry(object.clone()).or_default())
    }

    /// Ends a read. Keeps the definition if the read succeeded, and if the same watch was active
    /// during the whole read and reported no change of the definition.
    pub(super) fn read(&self, object: &ObjectRef, reading: &Reading) {
        let mut readings = self.readings.borrow_mut();
        let current = readings.get(object);
        if !current.is_some_and(|current| Rc::ptr_eq(current, reading)) {
            return;
        }
        readings.remove(object);
        if let Some(Ok((known, version))) = reading.get()
            && self.is_watched.get()
        {
            self.keep(object.clone(), known.clone(), version.clone());
        }
    }

    /// Notes that a watch begins. Drops all definitions, because they may have changed while there
    /// was no watch.
    pub(super) fn begin_watch(&self) {
        self.lose();
        self.is_watched.set(true);
        self.hear();
    }

    fn hear(&self) {
        self.heard.set(Some(Instant::now()));
    }

    /// Drops a pending read of a definition, because the watch reported that the definition changed
    /// or was deleted. Also drops the cached definition if its version differs from the reported
    /// `version`. The versions are equal if the agent read the changed definition before the watch
    /// reported the change.
    fn changed(&self, object: &ObjectRef, version: &str) {
        self.readings.borrow_mut().remove(object);
        let has_version = |entry: &Entry| entry.version == version;
        if !self.entries.borrow().get(object).is_some_and(has_version) {
            self.forget(object);
        }
    }

    fn keep(&self, object: ObjectRef, known: CachedDefinition, version: String) {
        self.forget(&object);
        self.size.set(self.size.get() + known.size());
        let entry = Entry {
            known,
            version,
            used: self.next(),
        };
        self.entries.borrow_mut().insert(object, entry);
        while self.size.get() > BUDGET {
            let entries = self.entries.borrow();
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(object, _)| object.clone()) else {
                return;
            };
            drop(entries);
            self.forget(&oldest);
        }
    }

    fn forget(&self, object: &ObjectRef) {
        if let Some(entry) = self.entries.borrow_mut().remove(object) {
            self.size.set(self.size.get() - entry.known.size());
        }
    }

    fn next(&self) -> u64 {
        let use_number = self.uses.get() + 1;
        self.uses.set(use_number);
        use_number
    }
}

/// The watch begins at the current version, so the API server sends nothing for definitions that do
/// not change.
impl WatchTarget for DefinitionCache {
    async fn begin(&self, server: &ApiServer, objects: &Objects) -> Result<String, ApiError> {
        let version = server.definitions_version().await?;
        self.begin_watch();
        let kind = objects.kind;
        info!(kind, version, "watching for changes");
        Ok(version)
    }

    fn take(&self, event: Event<'_>) {
        self.hear();
        if let Ok(object) = &event.object {
            self.changed(object, &event.version);
        }
    }

    /// Drops all definitions. The cache then keeps nothing until the next watch begins.
    fn lose(&self) {
        self.entries.take();
        self.readings.take();
        self.size.set(0);
        self.is_watched.set(false);
    }

    fn none_served(&self) {
        self.lose();
        self.hear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str) -> ObjectRef {
        ObjectRef::new("a", name).unwrap()
    }

    fn whole(name: &str, length: usize) -> CachedDefinition {
        CachedDefinition::Whole(Rc::new(Definition {
            object: object(name),
            config: Some("x".repeat(length)),
            resource_name: None,
        }))
    }

    /// Reads a definition in the same way as the agent.
    fn read(kept: &DefinitionCache, name: &str, known: CachedDefinition, version: &str) {
        let reading = kept.reading(&object(name));
        reading.set(Ok((known, version.to_owned()))).unwrap();
        kept.read(&object(name), &reading);
    }

    #[test]
    fn a_full_cache_drops_the_least_recently_used_definition() {
        let kept = DefinitionCache::default();
        kept.begin_watch();
        let fit = BUDGET / (KEPT_TEXT + OVERHEAD);
        for number in 0..fit {
            read(&kept, &format!("n{number}"), whole("n", KEPT_TEXT), "1");
        }
        assert_eq!(kept.len(), fit);
        assert!(
            kept.get(&object("n0")).is_some(),
            "the cache has n0, and `get` marks n0 as the most recently used"
        );
        read(&kept, "one-more", whole("n", KEPT_TEXT), "1");
        assert_eq!(kept.len(), fit);
        assert!(kept.get(&object("n1")).is_none() && kept.get(&object("n0")).is_some());
        for number in 0..10_000 {
            read(&kept, &format!("m{number}"), CachedDefinition::TooLong, "1");
        }
        assert!(kept.size.get() <= BUDGET && kept.len() <= BUDGET / OVERHEAD);
    }

    #[test]
    fn a_change_drops_a_definition_unless_the_cache_has_the_new_version() {
        let kept = DefinitionCache::default();
        kept.begin_watch();
        read(&kept, "x", whole("x", 9), "5");
        kept.changed(&object("x"), "5");
        assert!(kept.get(&object("x")).is_some());
        kept.changed(&object("x"), "6");
        assert!(kept.get(&object("x")).is_none());
        assert_eq!(kept.size.get(), 0);
    }

    #[test]
    fn the_cache_does_not_keep_a_definition_that_changes_during_its_read() {
        let kept = DefinitionCache::default();
        kept.begin_watch();
        let reading = kept.reading(&object("x"));
        assert!(
            Rc::ptr_eq(&reading, &kept.reading(&object("x"))),
            "both tasks share one read"
        );
        kept.changed(&object("x"), "6");
        reading.set(Ok((whole("x", 9), "5".into()))).unwrap();
        kept.read(&object("x"), &reading);
        assert!(!kept.has(&object("x")));
    }

    #[test]
    fn the_cache_keeps_nothing_without_a_watch() {
        let kept = DefinitionCache::default();
        read(&kept, "x", whole("x", 9), "5");
        assert!(!kept.has(&object("x")) && !kept.is_synced());
        kept.begin_watch();
        read(&kept, "x", whole("x", 9), "5");
        assert!(kept.has(&object("x")));
        let reading = kept.reading(&object("y"));
        kept.lose();
        reading.set(Ok((whole("y", 9), "5".into()))).unwrap();
        kept.read(&object("y"), &reading);
        assert!(!kept.has(&object("x")) && !kept.has(&object("y")));
        assert_eq!(kept.size.get(), 0);
    }
}
