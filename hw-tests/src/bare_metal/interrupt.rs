//! Being told to stop: the running case comes to its end, the VFs go as they came, then it stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};

/// Whether somebody asked for the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Takes Ctrl-C, and what CI systems send, as a wish from here on. Threads that start later
    /// inherit that; programs that the suite runs do not.
    pub(super) fn watch() -> nix::Result<Self> {
        let mut signals = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            signals.add(signal);
        }
        signals.thread_block()?;
        let interrupt = Self::default();
        let asked = interrupt.clone();
        // It waits for as long as the process lives.
        thread::spawn(move || {
            while signals.wait().is_ok() {
                asked.0.store(true, Ordering::Relaxed);
            }
        });
        Ok(interrupt)
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
