//! Keeps changes of running pods and a GC apart.
//!
//! During a GC, each network's plugins free what the GC does not name. So nothing may be attached
//! after the GC has read the journal. The runtime therefore calls neither ADD nor DEL during a GC
//! (CNI 1.1.0 §2, Lifecycle & Ordering). But the runtime does not know of changes, because
//! Jackfield starts them. If changes hold the lock for too long, the GC still detaches sandboxes,
//! but does not call GC of the networks' plugins.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use super::{LockError, lock_directory};
use crate::disk;

/// The name of the locked directory, among the locks.
const FOLDER: &str = "changes";

/// A lock that any number of changes hold together, or one GC holds alone.
///
/// The lock is a `flock`, so it ends with its process. If a change is killed, the record of the
/// sandbox already names what the orphaned delegate of the change attaches.
#[derive(Debug)]
pub struct ChangesLock {
    _dir: File,
}

impl ChangesLock {
    /// Waits until no GC has the lock, and lets no GC begin. `locks` is the directory of the locks.
    ///
    /// # Errors
    /// [`LockError::Busy`] after the deadline. [`LockError::Io`] if the directory cannot be used.
    pub fn change(locks: &Path, deadline: Instant) -> Result<ChangesLock, LockError> {
        ChangesLock::take(locks, disk::try_lock_shared, deadline)
    }

    /// Waits until no change has the lock, and lets no change begin.
    ///
    /// # Errors
    /// As [`ChangesLock::change`].
    pub fn exclude(locks: &Path, deadline: Instant) -> Result<ChangesLock, LockError> {
        ChangesLock::take(locks, disk::try_lock, deadline)
    }

    fn take(
        locks: &Path,
        try_lock: fn(&File) -> Result<(), std::fs::TryLockError>,
        deadline: Instant,
    ) -> Result<ChangesLock, LockError> {
        let dir = lock_directory(&locks.join(FOLDER), try_lock, deadline)?;
        Ok(ChangesLock { _dir: dir })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn changes_run_together_and_a_gc_alone() {
        let dir = tempfile::tempdir().unwrap();
        let soon = || Instant::now() + Duration::from_millis(20);
        let first = ChangesLock::change(dir.path(), soon()).unwrap();
        let second = ChangesLock::change(dir.path(), soon()).unwrap();
        drop(first);
        let busy = ChangesLock::exclude(dir.path(), soon()).unwrap_err();
        assert!(matches!(busy, LockError::Busy { .. }), "{busy}");
        drop(second);
        let _gc = ChangesLock::exclude(dir.path(), soon()).unwrap();
        assert!(ChangesLock::change(dir.path(), soon()).is_err());
    }
}
