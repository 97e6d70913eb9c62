//! The definitions that pods of this node select, within a budget.
//!
//! The agent reads a definition when a pod first selects it, and keeps it until the watch reports a
//! change. The watch is one of metadata and begins at the current version. It lists no definition, so
//! its cost for the API server does not depend on their number.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::OnceCell;

use crate::cluster::lookup::LookupError;
use crate::npwg::{Definition, ObjectRef};

/// The longest configuration that is kept, in bytes; a longer one is read at each use. Jackfield's
/// own CustomResourceDefinition allows none.
pub(super) const KEPT_TEXT: usize = 64 << 10;
/// The memory for all definitions, in bytes.
const BUDGET: usize = 1 << 20;
/// The memory of a definition besides its texts, in bytes.
const OVERHEAD: usize = 512;

/// A definition in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CachedDefinition {
    /// All of it.
    Whole(Rc<Definition>),
    /// Only that it is too long to be kept.
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

/// A definition that was read for the cache, with its resource version.
pub(super) type ReadOutcome = Result<(CachedDefinition, String), Rc<LookupError>>;
/// A definition that is being read, by the first question that needs it.
pub(super) type Reading = Rc<OnceCell<ReadOutcome>>;

#[derive(Debug)]
struct Entry {
    known: CachedDefinition,
    version: String,
    used: u64,
}

/// The definitions, least recently used first to go.
#[derive(Debug, Default)]
pub(super) struct DefinitionCache {
    entries: RefCell<HashMap<ObjectRef, Entry>>,
    by_use: RefCell<BTreeMap<u64, ObjectRef>>,
    readings: RefCell<HashMap<ObjectRef, Reading>>,
    uses: Cell<u64>,
    size: Cell<usize>,
    /// The version up to which the watch has reported changes. Without one, nothing is kept.
    version: RefCell<Option<String>>,
    synced: Cell<bool>,
    heard: Cell<Option<Instant>>,
}

impl DefinitionCache {
    /// The definition of that name, if it is kept.
    pub(super) fn get(&self, object: &ObjectRef) -> Option<CachedDefinition> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(object)?;
        let mut by_use = self.by_use.borrow_mut();
        by_use.remove(&entry.used);
        entry.used = self.next();
        by_use.insert(entry.used, object.clone());
        Some(entry.known.clone())
    }

    /// Whether it is kept or being read.
    pub(super) fn has(&self, object: &ObjectRef) -> bool {
        self.entries.borrow().contains_key(object) || self.readings.borrow().contains_key(object)
    }

    /// How many definitions are kept.
    pub(super) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// Whether there is a watch, or was at least once.
    pub(super) fn is_synced(&self) -> bool {
        self.synced.get()
    }

    /// When the watch last brought anything.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.heard.get()
    }

    /// The reading of a definition, which all questions at the same time share.
    pub(super) fn reading(&self, object: &ObjectRef) -> Reading {
        let mut readings = self.readings.borrow_mut();
        Rc::clone(readings.entry(object.clone()).or_default())
    }

    /// Ends a reading, and keeps its definition unless that has changed meanwhile.
    pub(super) fn read(&self, object: &ObjectRef, reading: &Reading) {
        let mut readings = self.readings.borrow_mut();
        if !readings
            .get(object)
            .is_some_and(|current| Rc::ptr_eq(current, reading))
        {
            return;
        }
        readings.remove(object);
        if let Some(Ok((known, version))) = reading.get()
            && self.version.borrow().is_some()
        {
            self.keep(object.clone(), known.clone(), version.clone());
        }
    }

    /// The version at which the watch goes on; `None` when it has to begin again.
    pub(super) fn version(&self) -> Option<String> {
        self.version.borrow().clone()
    }

    /// Begins a watch at `version`, and drops all definitions: they may have changed unnoticed.
    pub(super) fn begin(&self, version: String) {
        self.forget_all();
        *self.version.borrow_mut() = Some(version);
        self.synced.set(true);
        self.heard.set(Some(Instant::now()));
    }

    /// Ends the watch. Nothing is kept until the next one begins.
    pub(super) fn lose(&self) {
        self.forget_all();
        *self.version.borrow_mut() = None;
    }

    /// Notes that the cluster has no such kind.
    pub(super) fn none_served(&self) {
        self.lose();
        self.synced.set(true);
    }

    /// Notes that the watch has reported everything up to `version`.
    pub(super) fn progress(&self, version: String) {
        *self.version.borrow_mut() = Some(version);
        self.heard.set(Some(Instant::now()));
    }

    /// Drops a definition that changed to this version, or was deleted at it, unless the cache has just
    /// this version: it may have been read before the watch reported it.
    pub(super) fn changed(&self, object: &ObjectRef, version: &str) {
        self.readings.borrow_mut().remove(object);
        let is_known = self
            .entries
            .borrow()
            .get(object)
            .is_some_and(|entry| entry.version == version);
        if !is_known {
            self.forget(object);
        }
    }

    fn keep(&self, object: ObjectRef, known: CachedDefinition, version: String) {
        self.forget(&object);
        let used = self.next();
        self.size.set(self.size.get() + known.size());
        self.by_use.borrow_mut().insert(used, object.clone());
        let entry = Entry {
            known,
            version,
            used,
        };
        self.entries.borrow_mut().insert(object, entry);
        while self.size.get() > BUDGET {
            let oldest = self.by_use.borrow().values().next().cloned();
            let Some(oldest) = oldest else {
                return;
            };
            self.forget(&oldest);
        }
    }

    fn forget(&self, object: &ObjectRef) {
        if let Some(entry) = self.entries.borrow_mut().remove(object) {
            self.by_use.borrow_mut().remove(&entry.used);
            self.size.set(self.size.get() - entry.known.size());
        }
    }

    fn forget_all(&self) {
        self.entries.take();
        self.by_use.take();
        self.readings.take();
        self.size.set(0);
    }

    fn next(&self) -> u64 {
        let use_number = self.uses.get() + 1;
        self.uses.set(use_number);
        use_number
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

    /// Reads a definition as the agent would.
    fn read(kept: &DefinitionCache, name: &str, known: CachedDefinition, version: &str) {
        let reading = kept.reading(&object(name));
        reading.set(Ok((known, version.to_owned()))).unwrap();
        kept.read(&object(name), &reading);
    }

    #[test]
    fn what_is_kept_stays_within_the_budget_and_the_least_used_goes_first() {
        let kept = DefinitionCache::default();
        kept.begin("1".into());
        let fit = BUDGET / (KEPT_TEXT + OVERHEAD);
        for number in 0..fit {
            read(&kept, &format!("n{number}"), whole("n", KEPT_TEXT), "1");
        }
        assert_eq!(kept.len(), fit);
        assert!(kept.get(&object("n0")).is_some(), "it is used");
        read(&kept, "one-more", whole("n", KEPT_TEXT), "1");
        assert_eq!(kept.len(), fit);
        assert!(kept.get(&object("n1")).is_none() && kept.get(&object("n0")).is_some());
        for number in 0..100_000 {
            read(&kept, &format!("m{number}"), CachedDefinition::TooLong, "1");
        }
        assert!(kept.size.get() <= BUDGET && kept.len() <= BUDGET / OVERHEAD);
        assert_eq!(kept.len(), kept.by_use.borrow().len());
    }

    #[test]
    fn a_change_forgets_a_definition_unless_it_is_the_version_that_was_read() {
        let kept = DefinitionCache::default();
        kept.begin("1".into());
        read(&kept, "x", whole("x", 9), "5");
        kept.changed(&object("x"), "5");
        assert!(kept.get(&object("x")).is_some());
        kept.changed(&object("x"), "6");
        assert!(kept.get(&object("x")).is_none());
        assert_eq!(kept.size.get(), 0);
    }

    #[test]
    fn a_definition_that_changed_while_it_was_read_is_not_kept() {
        let kept = DefinitionCache::default();
        kept.begin("1".into());
        let reading = kept.reading(&object("x"));
        assert!(Rc::ptr_eq(&reading, &kept.reading(&object("x"))), "one");
        kept.changed(&object("x"), "6");
        reading.set(Ok((whole("x", 9), "5".into()))).unwrap();
        kept.read(&object("x"), &reading);
        assert!(!kept.has(&object("x")));
    }

    #[test]
    fn nothing_is_kept_without_a_watch() {
        let kept = DefinitionCache::default();
        read(&kept, "x", whole("x", 9), "5");
        assert!(!kept.has(&object("x")) && !kept.is_synced());
        kept.begin("1".into());
        read(&kept, "x", whole("x", 9), "5");
        kept.progress("7".into());
        assert_eq!(kept.version().as_deref(), Some("7"));
        assert!(kept.has(&object("x")));
        let reading = kept.reading(&object("y"));
        kept.lose();
        reading.set(Ok((whole("y", 9), "5".into()))).unwrap();
        kept.read(&object("y"), &reading);
        assert!(!kept.has(&object("x")) && !kept.has(&object("y")));
        assert_eq!((kept.version(), kept.size.get()), (None, 0));
    }
}
