//! Syncs the records of the journal to disk, so that no call of the plugin waits for the disk.
//!
//! A separate thread syncs the records, so that a slow disk does not delay the agent's answers. The
//! plugin sends a descriptor of each record, because the DaemonSet does not mount the records into
//! the agent's container.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use prometheus_client::metrics::counter::Counter;
use tracing::warn;

use super::AgentError;

/// The maximum number of records that wait for the thread. The agent does not sync a record that
/// arrives while this many records wait. The kernel writes such a record to disk later.
const WAITING: usize = 256;

/// Syncs records in the order in which they arrive.
#[derive(Debug)]
pub(super) struct RecordSync {
    queue: SyncSender<OwnedFd>,
}

impl RecordSync {
    /// Starts the thread. `done` counts the synced records.
    pub(super) fn start(done: Counter) -> Result<RecordSync, AgentError> {
        let (queue, records) = sync_channel(WAITING);
        thread::Builder::new()
            .name("journal".into())
            .spawn(move || sync(&records, &done))
            .map_err(AgentError::Runtime)?;
        Ok(RecordSync { queue })
    }

    /// Queues `record` for the thread. Does nothing if [`WAITING`] records are queued already.
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
                "cannot sync a record: {error}; check the health of the disk"
            );
        }
        failing = outcome.is_err();
        done.inc_by(u64::from(!failing));
    }
}
