//! One lock per sandbox, across processes.
//!
//! The lock is a `flock` whose descriptor every delegate inherits, so it lives as long as any of
//! them. If Jackfield is killed in the middle of an ADD, its orphaned delegate keeps the lock, and
//! the next DEL waits for that orphan before it goes on. So no ADD runs beside a DEL.
//!
//! An orphan first has a moment to finish: a plugin that is killed halfway may leave state behind
//! that its own DEL does not know about, such as an interface that does not have its name yet.

mod error;
mod holders;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use self::holders::{end, holders, holds};
use super::files::options;
use super::key;
use crate::cni::ContainerId;
use crate::private_dir;

pub use self::error::LockError;

/// The first pause before the next attempt; it doubles.
const FIRST_PAUSE: Duration = Duration::from_micros(500);
/// The longest pause before the next attempt.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// How long the orphans of a dead Jackfield may take to finish their work; plugins take
/// milliseconds.
const ORPHANS_FINISH_WITHIN: Duration = Duration::from_millis(500);
/// How long to search for the holders of the lock for the error message.
const NAMES_WITHIN: Duration = Duration::from_millis(200);
/// How long the orphans may take to die.
const ORPHANS_DIE_WITHIN: Duration = Duration::from_secs(5);

/// The lock of one sandbox, held.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of `container` below `dir`, by `deadline`.
    ///
    /// Waits for a live Jackfield that holds it. Kills the orphans of a dead one if they do not
    /// finish by themselves, after half of the available time at the latest.
    ///
    /// # Errors
    /// [`LockError::Busy`] past the deadline: the runtime may try again (code 11).
    pub fn take(dir: &Path, container: &ContainerId, deadline: Instant) -> Result<Lock, LockError> {
        let path = path(dir, container);
        // A user who can write here could make this call wait.
        private_dir::check(dir).map_err(|cause| LockError::io(dir, cause))?;
        let mut pause = FIRST_PAUSE;
        let mut orphans_seen: Option<Instant> = None;
        let patience = deadline.saturating_duration_since(Instant::now()) / 2;
        let patience = patience.min(ORPHANS_FINISH_WITHIN);
        loop {
            let file = open(dir, &path).map_err(|cause| LockError::io(&path, cause))?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => {
                    let lock = Lock {
                        file,
                        path: path.clone(),
                    };
                    return lock.claim().map_err(|cause| LockError::io(&path, cause));
                }
                // Its holder has removed the file; there is a new file to lock.
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => return Err(LockError::io(&path, cause)),
            }
            let name = path.file_name().unwrap_or_default();
            let owner_lives = owner(&file).is_some_and(|owner| holds(owner, &file, name));
            let orphans = match owner_lives {
                true => Vec::new(),
                // The recorded owner does not hold it, so search all processes.
                false => holders(&file, name, deadline),
            };
            if orphans.is_empty() {
                orphans_seen = None;
            } else {
                let waited = orphans_seen.get_or_insert_with(Instant::now).elapsed();
                if waited >= patience {
                    end(&orphans, &file, name);
                }
                if waited > patience + ORPHANS_DIE_WITHIN {
                    return Err(LockError::busy(&path, &orphans));
                }
            }
            if Instant::now() >= deadline {
                let holders = holders(&file, name, Instant::now() + NAMES_WITHIN);
                return Err(LockError::busy(&path, &holders));
            }
            std::thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Takes the lock of `container` below `dir` if it is free. Neither waits for a holder nor
    /// kills an orphan.
    #[must_use]
    pub fn take_if_free(dir: &Path, container: &ContainerId) -> Option<Lock> {
        let path = path(dir, container);
        private_dir::check(dir).ok()?;
        let file = open(dir, &path).ok()?;
        file.try_lock().ok()?;
        if !is_at(&file, &path) {
            return None;
        }
        Lock { file, path }.claim().ok()
    }

    /// Records this process as the owner, and lets delegates inherit the lock.
    fn claim(mut self) -> io::Result<Lock> {
        fcntl(&self.file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        self.file.set_len(0)?;
        self.file
            .write_all(std::process::id().to_string().as_bytes())?;
        Ok(self)
    }
}

impl Drop for Lock {
    /// Removes the file while it is still locked, so that a delegate left running in the background
    /// blocks no later call.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// The turn to reserve resources that only one sandbox may have: one process at a time on the node.
///
/// It is a `flock` on the directory of the locks, which only root can open.
#[derive(Debug)]
pub struct Turn {
    _dir: File,
}

impl Turn {
    /// Waits for the turn, by `deadline`. The turn ends when the value is dropped.
    ///
    /// # Errors
    /// [`LockError::Busy`] past the deadline: the runtime may try again (code 11).
    pub fn take(dir: &Path, deadline: Instant) -> Result<Turn, LockError> {
        let failed = |cause: io::Error| LockError::io(dir, cause);
        private_dir::create(dir).map_err(failed)?;
        private_dir::check(dir).map_err(failed)?;
        let file = File::open(dir).map_err(failed)?;
        let mut pause = FIRST_PAUSE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Turn { _dir: file }),
                Err(TryLockError::Error(cause)) => return Err(failed(cause)),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    let name = dir.file_name().unwrap_or_default();
                    let until = Instant::now() + NAMES_WITHIN;
                    return Err(LockError::busy(dir, &holders(&file, name, until)));
                }
                Err(TryLockError::WouldBlock) => {}
            }
            std::thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

fn path(dir: &Path, container: &ContainerId) -> PathBuf {
    dir.join(format!("{}.lock", key::short(container)))
}

fn open(dir: &Path, path: &Path) -> io::Result<File> {
    let mut options = options();
    options.read(true).write(true).create(true).truncate(false);
    private_dir::or_create(dir, || options.open(path))
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// The process ID of the Jackfield that took the lock, as it recorded it.
fn owner(mut file: &File) -> Option<i32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests;
