//! Lets a unit test replace the clocks, the disk, the boot ID, the network namespaces and the
//! processes with those of a simulated machine. Builds without tests contain no simulated machine.
//!
//! A test runs the unchanged CNI verbs on a simulated machine under conditions that are rare on a
//! real machine. For example, the disk loses acknowledged writes, the power fails between two
//! writes, or the clock jumps.

use std::fs::File;
use std::io;
use std::path::Path;

#[cfg(test)]
pub(crate) use simulated::{Machine, current, on};

/// If there is a simulated machine, asks the machine, and returns its answer from the enclosing
/// function. Otherwise, the enclosing function continues.
macro_rules! ask_machine {
    ($question:ident($($argument:expr),*)) => {
        #[cfg(test)]
        if let Some(machine) = crate::machine::current() {
            return machine.$question($($argument),*);
        }
    };
}
pub(crate) use ask_machine;

/// One operation on a file of the journal or on a lock file.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "only a simulated machine reads the fields")
)]
pub(crate) enum Operation<'a> {
    /// Opens or creates a file.
    Open(&'a Path),
    /// Writes bytes to an open file. A write may stop before the last byte.
    Write(&'a File, &'a [u8]),
    /// Renames a file. Replaces any file that already has the new name.
    Rename(&'a Path, &'a Path),
    /// Removes a file or a symbolic link.
    Remove(&'a Path),
    /// Creates a symbolic link.
    Link(&'a Path),
    /// Reads a file, a symbolic link or a directory.
    Read(&'a Path),
    /// Locks an open file.
    Lock(&'a File),
    /// Unlocks an open file.
    Unlock(&'a File),
}

/// The machine's decision about an operation.
#[cfg_attr(
    not(test),
    allow(dead_code, reason = "only a simulated machine refuses and pretends")
)]
pub(crate) enum Verdict {
    /// The operation takes place.
    Proceed,
    /// The operation reports this error.
    Refuse(io::Error),
    /// The operation reports success, but changes nothing.
    Pretend,
}

/// Asks the simulated machine about an operation. Without a simulated machine, the operation takes
/// place.
#[cfg(test)]
pub(crate) fn judge(operation: Operation<'_>) -> Verdict {
    current().map_or(Verdict::Proceed, |machine| machine.disk(operation))
}

#[cfg(not(test))]
pub(crate) const fn judge(_: Operation<'_>) -> Verdict {
    Verdict::Proceed
}

#[cfg(test)]
mod simulated {
    use std::cell::RefCell;
    use std::fs::File;
    use std::path::Path;
    use std::rc::Rc;
    use std::time::{Duration, Instant, SystemTime};

    use super::{Operation, Verdict};

    /// A simulated machine.
    pub(crate) trait Machine {
        /// The time of the monotonic clock.
        fn now(&self) -> Instant;

        /// The time of day.
        fn time_of_day(&self) -> SystemTime;

        /// Blocks the calling thread until the monotonic clock has advanced by `pause`.
        fn sleep(&self, pause: Duration);

        /// The ID of the current boot.
        fn boot_id(&self) -> String;

        /// Decides about an operation on a file of the journal or of a lock.
        fn disk(&self, operation: Operation<'_>) -> Verdict;

        /// The inode number of the network namespace that the file at `path` represents; `None` if
        /// the file represents no namespace.
        fn netns(&self, path: &Path) -> Option<u64>;

        /// The ID of the process that the calling thread simulates.
        fn process_id(&self) -> u32;

        /// Whether the process `pid` runs.
        fn is_running(&self, pid: i32) -> bool;

        /// The orphaned delegates that hold the lock of `file`.
        fn orphans(&self, file: &File) -> Vec<i32>;

        /// Kills orphaned delegates.
        fn kill(&self, orphans: &[i32]);
    }

    thread_local! {
        static MACHINE: RefCell<Option<Rc<dyn Machine>>> = const { RefCell::new(None) };
    }

    /// Returns the simulated machine that the calling thread runs on, if there is one.
    pub(crate) fn current() -> Option<Rc<dyn Machine>> {
        MACHINE.with_borrow(Clone::clone)
    }

    /// Runs `act` on a simulated machine. Calls must not be nested.
    pub(crate) fn on<T>(machine: Rc<dyn Machine>, act: impl FnOnce() -> T) -> T {
        struct Reset;
        impl Drop for Reset {
            fn drop(&mut self) {
                MACHINE.set(None);
            }
        }
        MACHINE.set(Some(machine));
        let _reset = Reset;
        act()
    }
}
