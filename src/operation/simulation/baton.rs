//! The baton: the permission to run, which one thread passes to the next.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

/// The permission of one thread to run.
#[derive(Default)]
pub(super) struct Baton {
    is_here: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Baton {
    /// Registers the calling thread as the thread that `pass` wakes.
    pub(super) fn hold(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    /// Lets the registered thread run.
    pub(super) fn pass(&self) {
        self.is_here.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Blocks the calling thread, which must be the registered thread, until `pass` lets it run.
    pub(super) fn wait(&self) {
        while !self.is_here.swap(false, Ordering::SeqCst) {
            std::thread::park();
        }
    }
}
