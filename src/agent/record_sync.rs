//! Syncs the journal's records to disk, so that no call waits for it.
//!
//! A disk may be slow, so this has a thread of its own. The plugin sends each record as a descriptor:
//! the agent has no access to the journal.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use prometheus_client::metrics::counter::Counter;
use tracing::warn;

use super::AgentError;

/// How many records wait for the disk. The kernel writes back others in its own time.
const WAITING: usize = 256;

/// Syncs records in the order in which they come.
#[derive(Debug)]
pub(super) struct RecordSync {
    queue: SyncSender<OwnedFd>,
}

impl RecordSync {
    /// Starts the thread; `done` counts the records that are on the disk.
    pub(super) fn start(done: Counter) -> Result<RecordSync, AgentError> {
        let (queue, records) = sync_channel(WAITING);
        thread::Builder::new()
            .name("journal".into())
            .spawn(move || sync(&records, &done))
            .map_err(AgentError::Runtime)?;
        Ok(RecordSync { queue })
    }

    /// Syncs `record`, unless [`WAITING`] others wait.
    pub(super) fn written(&self, record: OwnedFd) {
        let _ = self.queue.try_send(record);
    }
}

fn sync(records: &Receiver<OwnedFd>, done: &Counter) {
    let mut failing = false;
    while let Ok(record) = records.recv() {
        let outcome = File::from(record).sync_all();
        if let Err(error) = &outcome
            && !failing
        {
            warn!(
                phase = "journal",
                "cannot sync a record: {error}; look into the health of the disk"
            );
        }
        failing = outcome.is_err();
        done.inc_by(u64::from(!failing));
    }
}
