//! What the agent knows without asking.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use super::kept::Kept;
use crate::cluster::api::{PodView, SliceView};
use crate::npwg::ObjectRef;

/// This node's pods and ResourceSlices, and the definitions that its pods select.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// This node's pods.
    pub(super) pods: Shelf<PodView>,
    /// The definitions that pods of this node select.
    pub(super) definitions: Kept,
    /// What DRA drivers have on this node.
    pub(super) slices: Shelf<SliceView>,
}

/// Objects of one kind, as a watch shows them.
#[derive(Debug)]
pub(super) struct Shelf<T> {
    objects: RefCell<HashMap<ObjectRef, Rc<T>>>,
    /// What a new list has brought so far; the old one holds until it is whole.
    listing: RefCell<Option<HashMap<ObjectRef, Rc<T>>>>,
    synced: Cell<bool>,
    heard: Cell<Option<Instant>>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf {
            objects: RefCell::default(),
            listing: RefCell::default(),
            synced: Cell::default(),
            heard: Cell::default(),
        }
    }
}

impl<T> Shelf<T> {
    /// The object of that name, if it is known.
    pub(super) fn get(&self, object: &ObjectRef) -> Option<Rc<T>> {
        self.objects.borrow().get(object).cloned()
    }

    /// All objects that are known.
    pub(super) fn all(&self) -> Vec<Rc<T>> {
        self.objects.borrow().values().cloned().collect()
    }

    /// The same with their names, in the order of these.
    pub(super) fn entries(&self) -> Vec<(ObjectRef, Rc<T>)> {
        let objects = self.objects.borrow();
        let entries = objects.iter();
        let mut entries: Vec<(ObjectRef, Rc<T>)> = entries
            .map(|(name, object)| (name.clone(), Rc::clone(object)))
            .collect();
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        entries
    }

    /// How many objects are known.
    pub(super) fn len(&self) -> usize {
        self.objects.borrow().len()
    }

    /// Whether there has been a whole list.
    pub(super) fn is_synced(&self) -> bool {
        self.synced.get()
    }

    /// When the watch last brought anything.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.heard.get()
    }

    /// An object that was fetched since the known one is not the one that is meant.
    pub(super) fn replaced(&self, object: &ObjectRef, value: T) {
        self.put(object.clone(), value);
    }

    /// A new list is asked for; nothing is heard yet.
    pub(super) fn begin(&self) {
        *self.listing.borrow_mut() = Some(HashMap::new());
    }

    /// The new list has this object.
    pub(super) fn list(&self, object: ObjectRef, value: T) {
        self.hear();
        match self.listing.borrow_mut().as_mut() {
            Some(listing) => {
                listing.insert(object, Rc::new(value));
            }
            None => self.put(object, value),
        }
    }

    /// The new list is whole: what it does not have is gone.
    pub(super) fn end(&self) {
        self.hear();
        if let Some(mut listing) = self.listing.borrow_mut().take() {
            listing.shrink_to_fit();
            *self.objects.borrow_mut() = listing;
        }
        self.synced.set(true);
    }

    /// The object is now this.
    pub(super) fn apply(&self, object: ObjectRef, value: T) {
        self.hear();
        self.put(object, value);
    }

    /// The object is gone.
    pub(super) fn remove(&self, object: &ObjectRef) {
        self.hear();
        self.objects.borrow_mut().remove(object);
    }

    fn put(&self, object: ObjectRef, value: T) {
        self.objects.borrow_mut().insert(object, Rc::new(value));
    }

    fn hear(&self) {
        self.heard.set(Some(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_list_replaces_the_old_one_only_when_it_is_whole() {
        let shelf: Shelf<u32> = Shelf::default();
        let name = |text: &str| text.parse::<ObjectRef>().unwrap();
        shelf.begin();
        assert!(shelf.heard().is_none());
        shelf.list(name("a/x"), 1);
        shelf.list(name("a/y"), 2);
        assert!(!shelf.is_synced() && shelf.get(&name("a/x")).is_none());
        shelf.end();
        assert!(shelf.is_synced());
        shelf.begin();
        shelf.list(name("a/y"), 3);
        assert_eq!(
            shelf.get(&name("a/x")).as_deref(),
            Some(&1),
            "the old list still holds"
        );
        shelf.end();
        assert_eq!(shelf.get(&name("a/x")), None);
        assert_eq!(shelf.get(&name("a/y")).as_deref(), Some(&3));
        shelf.apply(name("a/z"), 4);
        shelf.remove(&name("a/y"));
        assert_eq!(shelf.len(), 1);
    }
}
