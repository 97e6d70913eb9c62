//! One lock per `CNI_CONTAINERID`, across processes. Records that differ only in `CNI_IFNAME` share
//! the lock.
//!
//! The lock is a `flock` on a descriptor that every delegate inherits. If Jackfield is killed in
//! the middle of an ADD, its delegate becomes an orphan that still holds the lock, and the next DEL
//! waits for the orphan. So no delegate's ADD runs at the same time as a DEL of the same container.
//!
//! The DEL first gives the orphan time to finish, and kills the orphan only after that time (see
//! [`Lock::take`]). A plugin that is killed halfway may leave state that its own DEL does not find,
//! such as an interface without its final name.

mod changes;
mod error;
mod holders;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use self::holders::{end, holders, holds, runs_jackfield};
use super::files::{entries, options};
use super::key;
use crate::boot;
use crate::clock;
use crate::cni::ContainerId;
use crate::disk;
use crate::private_dir;

pub use self::changes::ChangesLock;
pub use self::error::LockError;

/// The extension of a lock's file.
const ENDING: &str = "lock";
/// The first pause between two attempts to take a lock. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_micros(500);
/// The longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// How long the orphans of a dead Jackfield may take to finish. Plugins usually take milliseconds.
const ORPHANS_FINISH_WITHIN: Duration = Duration::from_millis(500);
/// How long to search for the processes that hold the lock. The error message names these
/// processes.
const NAMES_WITHIN: Duration = Duration::from_millis(200);
/// How long the orphans may take to end after SIGKILL.
const ORPHANS_DIE_WITHIN: Duration = Duration::from_secs(5);

/// The lock of one container, which this process holds.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of `container` in `dir`, or gives up at `deadline`.
    ///
    /// If a running Jackfield holds the lock, waits for the lock. If only orphans of a dead
    /// Jackfield hold the lock, waits 500 ms for the orphans to finish, and then kills them. If
    /// `deadline` is less than 1 s away, kills the orphans after half of the time until `deadline`.
    ///
    /// # Errors
    /// [`LockError::Busy`] after the deadline, or if an orphan does not end after SIGKILL. The
    /// runtime then tries again (code 11). [`LockError::Io`] if the file of the lock or its
    /// directory cannot be used.
    pub fn take(dir: &Path, container: &ContainerId, deadline: Instant) -> Result<Lock, LockError> {
        let path = named(dir, &key::short(container));
        // A user who can write to this directory could block this call.
        private_dir::check(dir).map_err(|cause| LockError::io(dir, cause))?;
        let mut pause = FIRST_PAUSE;
        let mut orphans_seen: Option<Instant> = None;
        let patience = deadline.saturating_duration_since(clock::now()) / 2;
        let patience = patience.min(ORPHANS_FINISH_WITHIN);
        loop {
            let file = open(dir, &path).map_err(|cause| LockError::io(&path, cause))?;
            match disk::try_lock(&file) {
                Ok(()) if is_at(&file, &path) => {
                    let lock = Lock {
                        file,
                        path: path.clone(),
                    };
                    return lock.claim().map_err(|cause| LockError::io(&path, cause));
                }
                // The previous holder has removed the file, so open the new one.
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => return Err(LockError::io(&path, cause)),
            }
            let name = path.file_name().unwrap_or_default();
            let owner_lives = owner(&file).is_some_and(|owner| holds(owner, &file, name));
            let orphans = match owner_lives {
                true => Vec::new(),
                // The recorded owner does not hold the lock, so search all processes.
                false => holders(&file, name, deadline),
            };
            if orphans.is_empty() {
                orphans_seen = None;
            } else {
                let waited = clock::now() - *orphans_seen.get_or_insert_with(clock::now);
                // After the computation of `owner_lives`, another call may have taken the lock and
                // started delegates. `orphans` may contain these delegates, which must not be
                // killed. A call writes its process ID into the file before it starts delegates, so
                // `has_owner` finds the call.
                if waited >= patience && !has_owner(&path) {
                    end(&orphans, &file, name);
                }
                if waited > patience + ORPHANS_DIE_WITHIN {
                    return Err(LockError::busy(&path, &orphans));
                }
            }
            if clock::now() >= deadline {
                let holders = holders(&file, name, clock::now() + NAMES_WITHIN);
                return Err(LockError::busy(&path, &holders));
            }
            clock::sleep(pause.min(deadline.saturating_duration_since(clock::now())));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Takes the lock of `container` in `dir` if the lock is free. Neither waits for a holder nor
    /// kills an orphan.
    #[must_use]
    pub fn take_if_free(dir: &Path, container: &ContainerId) -> Option<Lock> {
        Lock::take_named_if_free(dir, &key::short(container))
    }

    /// Takes a lock as [`Lock::take_if_free`] does. `container` is the part of a record's file name
    /// before `@`.
    pub(super) fn take_named_if_free(dir: &Path, container: &str) -> Option<Lock> {
        let path = named(dir, container);
        private_dir::check(dir).ok()?;
        let file = open(dir, &path).ok()?;
        disk::try_lock(&file).ok()?;
        if !is_at(&file, &path) {
            return None;
        }
        Lock { file, path }.claim().ok()
    }

    /// Whether a dead Jackfield has left orphans that [`Lock::take`] would kill. All of these
    /// conditions must hold for the lock of `container` in `dir`:
    /// - The dead Jackfield took the lock more than `age` ago.
    /// - Its orphans still hold the lock.
    /// - No running Jackfield holds the lock or waits for it.
    #[must_use]
    pub fn is_orphaned(dir: &Path, container: &ContainerId, age: Duration) -> bool {
        let path = named(dir, &key::short(container));
        let checked = private_dir::check(dir);
        let Ok(file) = checked.and_then(|()| disk::open(options().read(true), &path)) else {
            return false;
        };
        let taken = file.metadata().and_then(|file| file.modified());
        let held = taken.map(|taken| clock::time_of_day().duration_since(taken));
        let is_old = held.is_ok_and(|held| held.is_ok_and(|held| held > age));
        // Look at the owner first, because a search of all processes takes much longer.
        if !is_old || has_owner(&path) {
            return false;
        }
        let name = path.file_name().unwrap_or_default();
        let holders = holders(&file, name, clock::now() + NAMES_WITHIN);
        !holders.is_empty() && !holders.into_iter().any(runs_jackfield)
    }

    /// Removes the file of every free lock in `dir`. A killed call leaves the file of its lock
    /// behind, and so does a call that fails to remove the file.
    pub fn sweep(dir: &Path) {
        if private_dir::check(dir).is_err() {
            return;
        }
        for entry in entries(dir).unwrap_or_default() {
            let path = entry.path();
            if path.extension().is_none_or(|end| end != ENDING) {
                continue;
            }
            let Ok(file) = disk::open(options().read(true).write(true), &path) else {
                continue;
            };
            if disk::try_lock(&file).is_ok() && is_at(&file, &path) {
                drop(Lock { file, path }.claim());
            }
        }
    }

    /// Records this process as the owner, and lets delegates inherit the lock.
    fn claim(self) -> io::Result<Lock> {
        fcntl(&self.file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        self.file.set_len(0)?;
        disk::write(&self.file, boot::process_id().to_string().as_bytes())?;
        Ok(self)
    }
}

impl Drop for Lock {
    /// Removes the file while this process still has the lock. If this process released the lock
    /// first, another process could take it. This process would then remove the file that the other
    /// process has locked.
    fn drop(&mut self) {
        let _ = disk::remove(&self.path);
        let _ = disk::unlock(&self.file);
    }
}

/// The permission to reserve exclusive resources: devices, MACs and GUIDs. Only one process on the
/// node has this permission at a time.
///
/// The turn is a `flock` on the directory of the lock files. Only root can open this directory.
#[derive(Debug)]
pub struct Turn {
    _dir: File,
}

impl Turn {
    /// Waits for the turn until `deadline`. The turn ends when the caller drops the returned value.
    ///
    /// # Errors
    /// [`LockError::Busy`] after the deadline. The runtime then tries again (code 11).
    /// [`LockError::Io`] if the directory cannot be used.
    pub fn take(dir: &Path, deadline: Instant) -> Result<Turn, LockError> {
        let dir = lock_directory(dir, disk::try_lock, deadline)?;
        Ok(Turn { _dir: dir })
    }
}

/// Creates `dir` if it is missing, and locks it with `try_lock`, which takes a shared or an
/// exclusive `flock`. Waits for the lock until `deadline`. The lock ends when the caller drops the
/// returned file. Delegates do not inherit the lock.
pub(super) fn lock_directory(
    dir: &Path,
    try_lock: fn(&File) -> Result<(), TryLockError>,
    deadline: Instant,
) -> Result<File, LockError> {
    let failed = |cause: io::Error| LockError::io(dir, cause);
    private_dir::create(dir).map_err(failed)?;
    private_dir::check(dir).map_err(failed)?;
    let file = File::open(dir).map_err(failed)?;
    // Any user who can open the directory could hold its lock, so let only root open it.
    if file.metadata().map_err(failed)?.mode() & 0o077 != 0 {
        let closed = fs::Permissions::from_mode(0o700);
        file.set_permissions(closed).map_err(failed)?;
    }
    let mut pause = FIRST_PAUSE;
    loop {
        match try_lock(&file) {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            Err(TryLockError::WouldBlock) if clock::now() >= deadline => {
                let name = dir.file_name().unwrap_or_default();
                let until = clock::now() + NAMES_WITHIN;
                return Err(LockError::busy(dir, &holders(&file, name, until)));
            }
            Err(TryLockError::WouldBlock) => {}
        }
        clock::sleep(pause.min(deadline.saturating_duration_since(clock::now())));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn named(dir: &Path, container: &str) -> PathBuf {
    dir.join(format!("{container}.{ENDING}"))
}

fn open(dir: &Path, path: &Path) -> io::Result<File> {
    let mut options = options();
    options.read(true).write(true).create(true).truncate(false);
    private_dir::or_create(dir, || disk::open(&options, path))
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Whether the process whose ID is in the file has the file open.
fn has_owner(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let file = disk::open(options().read(true), path);
    file.is_ok_and(|file| owner(&file).is_some_and(|owner| holds(owner, &file, name)))
}

/// Reads the process ID that Jackfield wrote into the file when it took the lock.
fn owner(mut file: &File) -> Option<i32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests;
