//! A delegate's process and its descendants.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// How many descendants to look for, so that a fork bomb does not keep the search busy for ever.
const MOST_DESCENDANTS: usize = 1024;

/// A delegate's process group, and the descendants that have left it.
///
/// A signal to the group does not reach a child that called `setsid`, which would go on changing a
/// pod after its ADD failed. Such a child can be found only while its parents live, and therefore
/// before the first signal. A child whose parent ended earlier cannot be found.
pub(super) struct ProcessFamily {
    leader: Pid,
    descendants: Vec<OwnedFd>,
}

impl ProcessFamily {
    /// The family of a delegate that leads its own process group.
    ///
    /// The leader must not be reaped yet, since the kernel could reuse its process ID.
    pub(super) fn of(leader: Pid) -> Self {
        Self {
            leader,
            descendants: Vec::new(),
        }
    }

    /// Adds the descendants that live now.
    ///
    /// They are kept as descriptors, since another process may have a process ID by the time of the
    /// signal.
    pub(super) fn add_descendants(&mut self) {
        let mut parents = vec![self.leader];
        let mut count = 0;
        while let Some(parent) = parents.pop() {
            for child in children(parent) {
                count += 1;
                if count > MOST_DESCENDANTS {
                    return;
                }
                parents.push(child);
                self.descendants
                    .extend(pidfd_open(child, PidfdFlags::empty()).ok());
            }
        }
    }

    /// Sends a signal to all processes, and ignores those that have ended.
    pub(super) fn signal(&self, signal: Signal) {
        let _ended = kill_process_group(self.leader, signal);
        for descendant in &self.descendants {
            let _ended = pidfd_send_signal(descendant, signal);
        }
    }
}

/// The children of a process in `/proc`; empty if the kernel does not list them.
fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else {
        return Vec::new();
    };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(
            list.split_whitespace()
                .filter_map(|pid| Pid::from_raw(pid.parse().ok()?)),
        );
    }
    children
}
