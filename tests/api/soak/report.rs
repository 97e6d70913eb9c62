//! What happened, counted, and what must not have happened.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Further findings are counted only.
const MOST_FINDINGS: usize = 40;

/// The counters that all workers share.
pub(super) struct Report {
    since: Instant,
    /// Pods that came and went.
    pub(super) done: AtomicU32,
    /// Pods that were attached.
    pub(super) attached: AtomicU32,
    /// Pods whose networks were changed while they ran.
    pub(super) changed: AtomicU32,
    faults: Mutex<BTreeMap<String, u32>>,
    findings: Mutex<Vec<String>>,
}

impl Report {
    pub(super) fn new() -> Report {
        Report {
            since: Instant::now(),
            done: AtomicU32::new(0),
            attached: AtomicU32::new(0),
            changed: AtomicU32::new(0),
            faults: Mutex::default(),
            findings: Mutex::default(),
        }
    }

    /// Counts one.
    pub(super) fn count(counter: &AtomicU32) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// A fault struck.
    pub(super) fn fault(&self, name: &str) {
        let mut faults = self.faults.lock().unwrap();
        *faults.entry(name.to_owned()).or_default() += 1;
    }

    /// Something is wrong with the program under test.
    pub(super) fn finding(&self, finding: String) {
        self.findings.lock().unwrap().push(finding);
    }

    /// Whether nothing is wrong so far.
    pub(super) fn is_clean(&self) -> bool {
        self.findings.lock().unwrap().is_empty()
    }

    /// The findings, as far as somebody can read them.
    pub(super) fn findings(&self) -> String {
        let findings = self.findings.lock().unwrap();
        let mut text = format!("{} findings:\n", findings.len());
        for finding in findings.iter().take(MOST_FINDINGS) {
            let _ = writeln!(text, "- {finding}");
        }
        text
    }

    /// Pods and rate.
    pub(super) fn progress(&self) -> String {
        let done = self.done.load(Ordering::Relaxed);
        let seconds = self.since.elapsed().as_secs_f64();
        format!(
            "{done} pods in {seconds:.0} s ({:.1}/s), {} attached, {} changed",
            f64::from(done) / seconds,
            self.attached.load(Ordering::Relaxed),
            self.changed.load(Ordering::Relaxed),
        )
    }

    /// How many faults struck.
    pub(super) fn fault_count(&self) -> u32 {
        self.faults.lock().unwrap().values().sum()
    }

    /// How often each fault struck.
    pub(super) fn faults(&self) -> String {
        let faults = self.faults.lock().unwrap();
        let faults = faults.iter().map(|(name, count)| format!("{name} {count}"));
        faults.collect::<Vec<_>>().join(", ")
    }
}
