//! The objects that the agent knows without a request.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use super::definition_cache::DefinitionCache;
use crate::cluster::api::{PodView, SliceView};
use crate::npwg::ObjectRef;

/// This node's pods and ResourceSlices, and the definitions that its pods select.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// This node's pods.
    pub(super) pods: ObjectCache<PodView>,
    /// The definitions that pods of this node select.
    pub(super) definitions: DefinitionCache,
    /// The ResourceSlices of DRA drivers on this node.
    pub(super) slices: ObjectCache<SliceView>,
}

/// The memory for the objects of one kind, in bytes.
const BUDGET: usize = 4 << 20;
/// The memory of an object besides its texts, in bytes.
const OVERHEAD: usize = 768;

/// An object that the agent can keep.
pub(super) trait Cacheable: Sized {
    /// Its memory, in bytes.
    fn length(&self) -> usize;

    /// The object as it is kept where there is little room; `None` where it is not kept then.
    fn shortened(&self) -> Option<Self>;
}

impl Cacheable for PodView {
    fn length(&self) -> usize {
        PodView::length(self)
    }

    fn shortened(&self) -> Option<PodView> {
        Some(self.identity_alone())
    }
}

impl Cacheable for SliceView {
    fn length(&self) -> usize {
        SliceView::length(self)
    }

    fn shortened(&self) -> Option<SliceView> {
        None
    }
}

/// Objects by their names, within [`BUDGET`].
#[derive(Debug)]
struct ObjectSet<T> {
    objects: HashMap<ObjectRef, Rc<T>>,
    size: usize,
    /// Whether any were left out.
    is_cut: bool,
}

impl<T> Default for ObjectSet<T> {
    fn default() -> Self {
        ObjectSet {
            objects: HashMap::new(),
            size: 0,
            is_cut: false,
        }
    }
}

impl<T: Cacheable> ObjectSet<T> {
    /// Keeps an object. Where there is no room, it is shortened or left out, and read at its use.
    fn put(&mut self, object: ObjectRef, value: T) {
        self.remove(&object);
        let fits = |value: &T| self.size + size(&object, value) <= BUDGET;
        let kept = if fits(&value) {
            Some(value)
        } else {
            value.shortened().filter(fits)
        };
        match kept {
            Some(value) => {
                self.size += size(&object, &value);
                self.objects.insert(object, Rc::new(value));
            }
            None => self.is_cut = true,
        }
    }

    fn remove(&mut self, object: &ObjectRef) {
        if let Some(value) = self.objects.remove(object) {
            self.size -= size(object, &*value);
        }
    }
}

fn size(object: &ObjectRef, value: &impl Cacheable) -> usize {
    value.length() + object.namespace().len() + object.name().len() + OVERHEAD
}

/// The objects of one kind, as a watch reports them.
#[derive(Debug)]
pub(super) struct ObjectCache<T> {
    held: RefCell<ObjectSet<T>>,
    /// The objects of a new list so far. The old ones hold until the list is whole.
    listing: RefCell<Option<ObjectSet<T>>>,
    synced: Cell<bool>,
    heard: Cell<Option<Instant>>,
}

impl<T> Default for ObjectCache<T> {
    fn default() -> Self {
        ObjectCache {
            held: RefCell::default(),
            listing: RefCell::default(),
            synced: Cell::default(),
            heard: Cell::default(),
        }
    }
}

impl<T: Cacheable> ObjectCache<T> {
    /// The object of that name, if it is known.
    pub(super) fn get(&self, object: &ObjectRef) -> Option<Rc<T>> {
        self.held.borrow().objects.get(object).cloned()
    }

    /// All objects that are known.
    pub(super) fn all(&self) -> Vec<Rc<T>> {
        self.held.borrow().objects.values().cloned().collect()
    }

    /// The same with their names, in the order of these.
    pub(super) fn entries(&self) -> Vec<(ObjectRef, Rc<T>)> {
        let held = self.held.borrow();
        let entries = held.objects.iter();
        let mut entries: Vec<(ObjectRef, Rc<T>)> = entries
            .map(|(name, object)| (name.clone(), Rc::clone(object)))
            .collect();
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
        entries
    }

    /// How many objects are known.
    pub(super) fn len(&self) -> usize {
        self.held.borrow().objects.len()
    }

    /// Whether objects were left out for lack of room.
    pub(super) fn is_cut(&self) -> bool {
        self.held.borrow().is_cut
    }

    /// Whether there has been a whole list.
    pub(super) fn is_synced(&self) -> bool {
        self.synced.get()
    }

    /// When the watch last brought anything.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.heard.get()
    }

    /// Keeps an object that was read past the watch.
    pub(super) fn replaced(&self, object: &ObjectRef, value: T) {
        self.put(object.clone(), value);
    }

    /// Begins a new list.
    pub(super) fn begin(&self) {
        *self.listing.borrow_mut() = Some(ObjectSet::default());
    }

    /// Adds an object to the new list.
    pub(super) fn list(&self, object: ObjectRef, value: T) {
        self.hear();
        match self.listing.borrow_mut().as_mut() {
            Some(listing) => {
                listing.put(object, value);
            }
            None => self.put(object, value),
        }
    }

    /// Ends the new list, which replaces all objects.
    pub(super) fn end(&self) {
        self.hear();
        if let Some(mut listing) = self.listing.borrow_mut().take() {
            listing.objects.shrink_to_fit();
            *self.held.borrow_mut() = listing;
        }
        self.synced.set(true);
    }

    /// Keeps an object that the watch reported.
    pub(super) fn apply(&self, object: ObjectRef, value: T) {
        self.hear();
        self.put(object, value);
    }

    /// Drops an object.
    pub(super) fn remove(&self, object: &ObjectRef) {
        self.hear();
        self.held.borrow_mut().remove(object);
    }

    fn put(&self, object: ObjectRef, value: T) {
        self.held.borrow_mut().put(object, value);
    }

    fn hear(&self) {
        self.heard.set(Some(Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number, which takes as many bytes.
    impl Cacheable for u32 {
        fn length(&self) -> usize {
            *self as usize
        }

        fn shortened(&self) -> Option<u32> {
            Some(0)
        }
    }

    #[test]
    fn objects_are_shortened_and_then_left_out_to_stay_within_the_budget() {
        let shelf: ObjectCache<u32> = ObjectCache::default();
        let name = |number: usize| ObjectRef::new("a", &format!("p{number:04}")).unwrap();
        let each = 16 << 10;
        let whole = BUDGET / (16 << 10);
        for number in 0..9_000 {
            shelf.apply(name(number), each);
        }
        let held = shelf.held.borrow();
        assert!(held.size <= BUDGET && held.is_cut, "{}", held.size);
        assert!(held.objects.len() * OVERHEAD <= BUDGET);
        let kept = held.objects.values().filter(|it| ***it == each).count();
        assert!(kept > whole * 9 / 10 && held.objects.len() > kept);
        drop(held);
        for number in 0..9_000 {
            shelf.remove(&name(number));
        }
        assert_eq!(shelf.held.borrow().size, 0);
    }

    #[test]
    fn a_new_list_replaces_the_old_one_only_when_it_is_whole() {
        let shelf: ObjectCache<u32> = ObjectCache::default();
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
