//! Prevents a GC from running at the same time as changes of the networks of running pods.
//!
//! During a GC, the plugins of each network release the resources of every attachment that the GC
//! does not list. An attachment that begins after the GC has read the journal is not in the list
//! and would lose its resources. For this reason, CNI forbids the runtime to call ADD or DEL during
//! a GC (CNI 1.1.0 §2, Lifecycle & Ordering). But the runtime cannot prevent a change of a running
//! pod, because Jackfield itself starts the change. If a change does not end in time, the GC still
//! detaches the sandboxes that the runtime no longer lists, but calls no plugin with the verb GC.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use super::{LockError, lock_directory};
use crate::disk;

/// The name of the directory that a change or a GC locks.
const FOLDER: &str = "changes";
/// The name of the directory that a GC locks before it waits for running changes. A new change then
/// waits for the GC, so a flow of changes cannot keep the GC waiting.
const GATE: &str = "gc";

/// A lock that any number of changes share, or that one GC holds alone.
///
/// Delegates do not inherit the lock, so the lock ends with the process that took it. If a change
/// is killed, a GC may therefore begin while an orphaned delegate still attaches a network. The GC
/// keeps this attachment, because the record of the sandbox already contains the attachment.
#[derive(Debug)]
pub struct ChangesLock {
    _dir: File,
    /// The lock on [`GATE`]. A GC keeps this lock until the GC ends. A change releases this lock as
    /// soon as the change has the lock on [`FOLDER`].
    _gate: Option<File>,
}

impl ChangesLock {
    /// Waits until no GC holds the lock, then takes the lock for a change. No GC can begin until
    /// the lock is dropped. `locks` is the directory that contains `FOLDER` and `GATE`.
    ///
    /// # Errors
    /// [`LockError::Busy`] after the deadline. [`LockError::Io`] if the directory cannot be used.
    pub fn change(locks: &Path, deadline: Instant) -> Result<ChangesLock, LockError> {
        let shared = disk::try_lock_shared;
        let _gate = lock_directory(&locks.join(GATE), shared, deadline)?;
        let dir = lock_directory(&locks.join(FOLDER), shared, deadline)?;
        Ok(ChangesLock {
            _dir: dir,
            _gate: None,
        })
    }

    /// Waits until no change holds the lock, then takes the lock for a GC. No change can begin
    /// until the lock is dropped.
    ///
    /// # Errors
    /// The errors of [`ChangesLock::change`].
    pub fn exclude(locks: &Path, deadline: Instant) -> Result<ChangesLock, LockError> {
        let gate = lock_directory(&locks.join(GATE), disk::try_lock, deadline)?;
        let dir = lock_directory(&locks.join(FOLDER), disk::try_lock, deadline)?;
        Ok(ChangesLock {
            _dir: dir,
            _gate: Some(gate),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;

    #[test]
    fn several_changes_share_the_lock_but_a_gc_holds_it_alone() {
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

    #[test]
    fn new_changes_cannot_keep_a_gc_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let locks = dir.path();
        let soon = || Instant::now() + Duration::from_millis(20);
        let first = ChangesLock::change(locks, soon()).unwrap();
        std::thread::scope(|scope| {
            let patient = Instant::now() + Duration::from_secs(20);
            let gc = scope.spawn(move || ChangesLock::exclude(locks, patient));
            while ChangesLock::change(locks, soon()).is_ok() {}
            drop(first);
            assert!(gc.join().unwrap().is_ok());
        });
    }

    #[test]
    fn no_other_user_can_open_the_locked_directories() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        std::fs::create_dir(&folder).unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&folder, open).unwrap();
        let _lock = ChangesLock::change(dir.path(), Instant::now()).unwrap();
        let mode = folder.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}
