//! Definitions that the agent keeps: those that pods of this node select, within a budget.
//!
//! A definition is read from the API server when a pod first selects it, and kept until the watch
//! shows that it changed. A watch of metadata that begins at the version of that moment costs the
//! API server the same however many definitions there are, and none of them is listed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::OnceCell;

use crate::cluster::lookup::LookupError;
use crate::npwg::{Definition, ObjectRef};

/// The longest configuration that is kept, in bytes; a longer one is read at each use. That of our
/// own CustomResourceDefinition is never longer.
pub(super) const KEPT_TEXT: usize = 64 << 10;
/// All that is kept, in bytes.
const BUDGET: usize = 1 << 20;
/// What a definition takes besides its texts, in bytes.
const OVERHEAD: usize = 512;

/// A definition as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CachedDefinition {
    /// All of it.
    Whole(Rc<Definition>),
    /// It is too long to be kept.
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

/// What came of reading a definition for the cache, with its resource version.
pub(super) type ReadOutcome = Result<(CachedDefinition, String), Rc<LookupError>>;
/// A definition that is being read, by whoever asked first.
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
    /// Up to which version changes have been shown; while there is none, nothing is kept.
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

    /// Whether changes are being shown, or were at least once.
    pub(super) fn is_synced(&self) -> bool {
        self.synced.get()
    }

    /// When the watch last brought anything.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.heard.get()
    }

    /// A reading to take part in: all who ask for a definition at once share one.
    pub(super) fn reading(&self, object: &ObjectRef) -> Reading {
        let mut readings = self.readings.borrow_mut();
        Rc::clone(readings.entry(object.clone()).or_default())
    }

    /// A reading has come to its end. What it brought is kept unless the definition has changed
    /// meanwhile.
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

    /// Where the watch goes on; `None` when it has to begin anew.
    pub(super) fn version(&self) -> Option<String> {
        self.version.borrow().clone()
    }

    /// A watch is about to begin at `version`: what was read before may have changed unseen.
    pub(super) fn begin(&self, version: String) {
        self.forget_all();
        *self.version.borrow_mut() = Some(version);
        self.synced.set(true);
        self.heard.set(Some(Instant::now()));
    }

    /// Changes are not shown any more: nothing is kept until the watch begins anew.
    pub(super) fn lose(&self) {
        self.forget_all();
        *self.version.borrow_mut() = None;
    }

    /// The cluster has no such kind: there is nothing to be shown.
    pub(super) fn none_served(&self) {
        self.lose();
        self.synced.set(true);
    }

    /// The watch has shown everything up to `version`.
    pub(super) fn progress(&self, version: String) {
        *self.version.borrow_mut() = Some(version);
        self.heard.set(Some(Instant::now()));
    }

    /// A definition is of this version now, or was when it was deleted. The one that is kept may be
    /// that very one: it was read before the watch showed it.
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
    fn what_changed_while_it_was_read_is_not_kept() {
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
    fn nothing_is_kept_while_no_watch_shows_changes() {
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
