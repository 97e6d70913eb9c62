//! Interrupts: the running case finishes, the VFs are removed, then the suite stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::signal::{SigSet, Signal};

/// Whether the user or the CI system asked the suite to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Handles Ctrl-C and the signals of CI systems from now on. Threads that start later inherit
    /// this; programs that the suite runs do not.
    pub(super) fn watch() -> nix::Result<Self> {
        let mut signals = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            signals.add(signal);
        }
        signals.thread_block()?;
        let interrupt = Self::default();
        let asked = interrupt.clone();
        // This thread waits for as long as the process lives.
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
