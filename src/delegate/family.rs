//! A delegate with all its children, and how to end them.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// How many descendants outside of the process group are looked for; a fork bomb must not keep
/// the one who ends it busy for ever.
const MOST_STRAYS: usize = 1024;

/// A delegate's process group, and those of its descendants that left it.
///
/// Ending the group alone would leave a child that called `setsid`, which then goes on changing a
/// pod that was given up. Such a child is found as long as its parents live, so before the first
/// signal; one whose parent was gone before is out of reach here.
pub(super) struct Family {
    leader: Pid,
    strays: Vec<OwnedFd>,
}

impl Family {
    /// The family of a delegate that leads its own process group.
    ///
    /// The leader must not be reaped yet: until then nobody else can get its number.
    pub(super) fn of(leader: Pid) -> Self {
        Self {
            leader,
            strays: Vec::new(),
        }
    }

    /// Notes the descendants that live now, those noted before included.
    ///
    /// They are kept as descriptors, not as numbers: a number may belong to somebody else by the
    /// time it gets its signal.
    pub(super) fn look(&mut self) {
        let mut parents = vec![self.leader];
        let mut seen = 0;
        while let Some(parent) = parents.pop() {
            for child in children(parent) {
                seen += 1;
                if seen > MOST_STRAYS {
                    return;
                }
                parents.push(child);
                self.strays
                    .extend(pidfd_open(child, PidfdFlags::empty()).ok());
            }
        }
    }

    /// Sends a signal to all of them; who is gone already is no error.
    pub(super) fn signal(&self, signal: Signal) {
        let _gone = kill_process_group(self.leader, signal);
        for stray in &self.strays {
            let _gone = pidfd_send_signal(stray, signal);
        }
    }
}

/// The children of a process by `/proc`; none where the kernel does not list them.
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
