//! The objects that the agent can look up without a request to the API server.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Instant;

use super::definition_cache::DefinitionCache;
use crate::cluster::api::{PodView, SliceView};
use crate::npwg::ObjectRef;

/// This node's pods and ResourceSlices, and the definitions that its pods select.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// This node's pods, except pods that have ended or use the host's network.
    pub(super) pods: ObjectCache<PodView>,
    /// The definitions that pods of this node select.
    pub(super) definitions: DefinitionCache,
    /// The ResourceSlices of DRA drivers on this node.
    pub(super) slices: ObjectCache<SliceView>,
}

/// The limit of the memory for the objects of one kind, in bytes.
const BUDGET: usize = 4 << 20;
/// The memory that an empty object takes, in bytes.
const OVERHEAD: usize = 768;

/// An object that the agent can keep.
pub(super) trait Cacheable: Sized {
    /// Returns the memory that the object needs in addition to an empty object, in bytes.
    fn length(&self) -> usize;

    /// Returns a shorter form of the object, if there is one. The cache keeps the shorter form if
    /// the whole object does not fit.
    fn shortened(&self) -> Option<Self> {
        None
    }
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
}

/// Objects by name. Together they take at most [`BUDGET`] bytes.
#[derive(Debug, Default)]
pub(super) struct ObjectSet<T> {
    objects: HashMap<ObjectRef, Rc<T>>,
    size: usize,
    /// Whether the set has omitted an object for lack of room.
    is_cut: bool,
}

impl<T: Cacheable> ObjectSet<T> {
    /// Adds or replaces an object. If there is no room, shortens or omits the object. The agent
    /// then reads the object from the API server whenever a plugin's question needs the object.
    pub(super) fn put(&mut self, object: ObjectRef, value: T) {
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
#[derive(Debug, Default)]
pub(super) struct ObjectCache<T> {
    held: RefCell<ObjectSet<T>>,
    heard: Cell<Option<Instant>>,
}

impl<T: Cacheable> ObjectCache<T> {
    /// Returns the object with this name, if the cache has it.
    pub(super) fn get(&self, object: &ObjectRef) -> Option<Rc<T>> {
        self.held.borrow().objects.get(object).cloned()
    }

    /// Returns all objects in the cache.
    pub(super) fn all(&self) -> Vec<Rc<T>> {
        self.held.borrow().objects.values().cloned().collect()
    }

    /// Returns all objects in the cache by name.
    pub(super) fn entries(&self) -> BTreeMap<ObjectRef, Rc<T>> {
        self.held.borrow().objects.clone().into_iter().collect()
    }

    /// Returns the number of objects in the cache.
    pub(super) fn len(&self) -> usize {
        self.held.borrow().objects.len()
    }

    /// Whether the cache has omitted objects for lack of room.
    pub(super) fn is_cut(&self) -> bool {
        self.held.borrow().is_cut
    }

    /// Whether the watch has listed the objects at least once. Also `true` after the API server has
    /// answered that it does not serve objects of this kind.
    pub(super) fn is_synced(&self) -> bool {
        self.heard.get().is_some()
    }

    /// Returns when the API server last sent a list, a watch event, or the answer that it does not
    /// serve objects of this kind.
    pub(super) fn heard(&self) -> Option<Instant> {
        self.heard.get()
    }

    /// Sets the time that [`ObjectCache::heard`] returns to the current time.
    pub(super) fn hear(&self) {
        self.heard.set(Some(Instant::now()));
    }

    /// Replaces all objects with a new list.
    pub(super) fn replace(&self, mut listed: ObjectSet<T>) {
        self.hear();
        listed.objects.shrink_to_fit();
        *self.held.borrow_mut() = listed;
    }

    /// Adds or replaces an object. With `None`, removes it.
    pub(super) fn put(&self, object: ObjectRef, value: Option<T>) {
        let mut held = self.held.borrow_mut();
        match value {
            Some(value) => held.put(object, value),
            None => held.remove(&object),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number `n` stands for an object of `n` bytes.
    impl Cacheable for u32 {
        fn length(&self) -> usize {
            *self as usize
        }

        fn shortened(&self) -> Option<u32> {
            Some(0)
        }
    }

    #[test]
    fn a_full_cache_shortens_objects_and_then_omits_them() {
        let shelf: ObjectCache<u32> = ObjectCache::default();
        let name = |number: usize| ObjectRef::new("a", &format!("p{number:04}")).unwrap();
        let each = 16 << 10;
        let whole = BUDGET / (16 << 10);
        for number in 0..9_000 {
            shelf.put(name(number), Some(each));
        }
        let held = shelf.held.borrow();
        assert!(held.size <= BUDGET && held.is_cut, "{}", held.size);
        assert!(held.objects.len() * OVERHEAD <= BUDGET);
        let kept = held.objects.values().filter(|it| ***it == each).count();
        assert!(kept > whole * 9 / 10 && held.objects.len() > kept);
        drop(held);
        for number in 0..9_000 {
            shelf.put(name(number), None);
        }
        assert_eq!(shelf.held.borrow().size, 0);
    }

    #[test]
    fn a_new_list_replaces_all_objects() {
        let shelf: ObjectCache<u32> = ObjectCache::default();
        let name = |text: &str| text.parse::<ObjectRef>().unwrap();
        let listed = |objects: &[(&str, u32)]| {
            let mut listed = ObjectSet::default();
            for (text, each) in objects {
                listed.put(name(text), *each);
            }
            listed
        };
        shelf.put(name("a/w"), Some(0));
        assert!(!shelf.is_synced(), "no list has arrived yet");
        shelf.replace(listed(&[("a/x", 1), ("a/y", 2)]));
        assert!(shelf.is_synced() && shelf.get(&name("a/w")).is_none());
        assert_eq!(shelf.get(&name("a/x")).as_deref(), Some(&1));
        shelf.replace(listed(&[("a/y", 3)]));
        assert_eq!(shelf.get(&name("a/x")), None);
        assert_eq!(shelf.get(&name("a/y")).as_deref(), Some(&3));
        shelf.put(name("a/z"), Some(4));
        shelf.put(name("a/y"), None);
        assert_eq!(shelf.len(), 1);
    }
}
