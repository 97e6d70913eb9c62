//! Bringing records to the disk: the plugin does not wait for that, and the agent has nobody
//! waiting.
//!
//! A disk may take its time, so a thread of its own does it. It has what the agent has: no
//! capability, and a journal that it may read.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use prometheus_client::metrics::counter::Counter;
use tracing::warn;

use super::AgentError;
use crate::journal::{Journal, Key};

/// Brings records to the disk, in the order in which they are named.
#[derive(Debug)]
pub(super) struct Durable {
    queue: Sender<Key>,
}

impl Durable {
    /// Starts; `done` counts the records that are on the disk.
    pub(super) fn start(journal: Journal, done: Counter) -> Result<Durable, AgentError> {
        let (queue, records) = channel();
        thread::Builder::new()
            .name("journal".into())
            .spawn(move || bring(&journal, &records, &done))
            .map_err(AgentError::Runtime)?;
        Ok(Durable { queue })
    }

    /// The record of `key` has been written.
    pub(super) fn written(&self, key: Key) {
        // The thread lives as long as this does.
        let _ = self.queue.send(key);
    }
}

fn bring(journal: &Journal, records: &Receiver<Key>, done: &Counter) {
    let mut failing = false;
    while let Ok(first) = records.recv() {
        // What has come meanwhile goes with it: the directory is brought to the disk once.
        let keys: Vec<Key> = std::iter::once(first).chain(records.try_iter()).collect();
        let outcome = journal.bring_to_disk(&keys);
        if let Err(error) = &outcome
            && !failing
        {
            warn!(phase = "journal", "{error}");
        }
        failing = outcome.is_err();
        done.inc_by(outcome.unwrap_or_default());
    }
}
