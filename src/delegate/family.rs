//! A delegate's process and its descendants.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// The maximum number of descendants to look for. Without a limit, the search might never catch up
/// with a fork bomb.
const MOST_DESCENDANTS: usize = 1024;

/// A delegate's process group, and the delegate's descendants, which may have left the group.
///
/// A signal to the group does not reach a child that called `setsid`. Such a child could continue
/// to change a pod after the pod's ADD has failed. [`Self::add_descendants`] finds such a child
/// only while the child's parent lives. A signal may end the parent, so the caller must add the
/// descendants before the first signal.
pub(super) struct ProcessFamily {
    leader: Pid,
    descendants: Vec<OwnedFd>,
}

impl ProcessFamily {
    /// The family of a delegate that leads its own process group.
    ///
    /// The caller must not reap the leader before the last signal. Otherwise the kernel could reuse
    /// the leader's process ID.
    pub(super) fn of(leader: Pid) -> Self {
        Self {
            leader,
            descendants: Vec::new(),
        }
    }

    /// Adds the descendants that are alive now.
    ///
    /// Stores pidfds, since the kernel may reuse the ID of a process that ends before the signal.
    /// Adds nothing on a kernel without pidfds.
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

    /// Sends a signal to all processes, and ignores processes that have ended.
    pub(super) fn signal(&self, signal: Signal) {
        let _ended = kill_process_group(self.leader, signal);
        for descendant in &self.descendants {
            let _ended = pidfd_send_signal(descendant, signal);
        }
    }
}

/// Reads the children of a process from `/proc`. Returns an empty list if the kernel does not list
/// children.
fn children(parent: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter();
    let mut children = Vec::new();
    for thread in threads.flatten().flatten() {
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        let pids = list.split_whitespace();
        children.extend(pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
    }
    children
}
