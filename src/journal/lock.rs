//! One lock per sandbox, across processes.
//!
//! It is a `flock` whose descriptor every delegate inherits, so it lives as long as any of them:
//! when Jackfield is ended in the middle of an ADD, its orphaned delegate keeps the lock, and the
//! DEL that comes next sees that orphan out before it goes on. No ADD runs on beside a DEL.
//!
//! An orphan first has a moment to finish: a plugin that is ended half way may leave what its own
//! DEL does not know of, such as an interface that has not got its name yet.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid, getpgrp};

use crate::cni::ContainerId;

/// How long it takes at most to look again whether the lock is free.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// How long the orphans of a dead Jackfield may take to finish what they are at; plugins take
/// milliseconds.
const ORPHANS_FINISH_WITHIN: Duration = Duration::from_millis(500);
/// How long they may take to die.
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
    /// A live Jackfield that holds it is waited for. Orphans of a dead one are ended when they do
    /// not end by themselves, by half of the time that there is at the latest.
    ///
    /// # Errors
    /// [`LockError::Busy`] past the deadline: the runtime may try again (code 11).
    pub fn take(dir: &Path, container: &ContainerId, deadline: Instant) -> Result<Lock, LockError> {
        let name: String = container.as_str().chars().take(200).collect();
        let sum = if name.len() < container.as_str().len() {
            format!("~{:08x}", crc32fast::hash(container.as_str().as_bytes()))
        } else {
            String::new()
        };
        let path = dir.join(format!("{name}{sum}.lock"));
        let mut pause = Duration::from_micros(500);
        let mut orphans_seen: Option<Instant> = None;
        let patience = deadline.saturating_duration_since(Instant::now()) / 2;
        let patience = patience.min(ORPHANS_FINISH_WITHIN);
        loop {
            let file = open(&path).map_err(|cause| LockError::io(&path, &cause))?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => {
                    return Lock {
                        file,
                        path: path.clone(),
                    }
                    .claim()
                    .map_err(|cause| LockError::io(&path, &cause));
                }
                // Its holder took the file away with it: there is a new one to lock.
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => return Err(LockError::io(&path, &cause)),
            }
            let holders = holders(&file);
            let owner_lives = owner(&file).is_some_and(|owner| holders.contains(&owner));
            if !owner_lives && !holders.is_empty() {
                let waited = orphans_seen.get_or_insert_with(Instant::now).elapsed();
                if waited >= patience {
                    end(&holders);
                }
                if waited > patience + ORPHANS_DIE_WITHIN {
                    return Err(LockError::busy(&path, &holders));
                }
            } else {
                orphans_seen = None;
            }
            if Instant::now() >= deadline {
                return Err(LockError::busy(&path, &holders));
            }
            std::thread::sleep(pause.min(deadline.saturating_duration_since(Instant::now())));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Writes down who holds it, and lets the delegates inherit it.
    fn claim(mut self) -> io::Result<Lock> {
        fcntl(&self.file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        self.file.set_len(0)?;
        self.file
            .write_all(std::process::id().to_string().as_bytes())?;
        Ok(self)
    }
}

impl Drop for Lock {
    /// Takes the file away while it is still locked: what a delegate left running in the
    /// background holds on to is then nobody's lock.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

fn open(path: &Path) -> io::Result<File> {
    let open = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(path)
    };
    open().or_else(|error| match (error.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(dir)) => {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            open()
        }
        _ => Err(error),
    })
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// The Jackfield that took the lock, by what it wrote.
fn owner(mut file: &File) -> Option<i32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// The processes other than ourselves that have the lock's file open.
fn holders(file: &File) -> Vec<i32> {
    let Ok(held) = file.metadata() else {
        return Vec::new();
    };
    let ours = i32::try_from(std::process::id()).unwrap_or_default();
    let has_open = |pid: &i32| {
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        descriptors.flatten().any(|entry| {
            fs::metadata(entry.path())
                .is_ok_and(|open| (open.dev(), open.ino()) == (held.dev(), held.ino()))
        })
    };
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != ours)
        .filter(has_open)
        .collect()
}

/// Ends what a dead Jackfield left running, with its process groups. Another Jackfield has the
/// file open too while it waits, or has just taken the lock and not yet said so: it has no
/// delegates then, and is no orphan.
fn end(holders: &[i32]) {
    let program = program("self");
    let orphans = holders
        .iter()
        .filter(|pid| program.is_none() || self::program(pid) != program);
    for pid in orphans.copied().map(Pid::from_raw) {
        match getpgid(Some(pid)) {
            Ok(group) if group != getpgrp() && group.as_raw() > 1 => {
                let _ = killpg(group, Signal::SIGKILL);
            }
            _ => {}
        }
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// The file name of the program that a process runs, also after that file was replaced.
fn program(pid: impl std::fmt::Display) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = path.file_name()?.to_str()?;
    Some(name.strip_suffix(" (deleted)").unwrap_or(name).to_owned())
}

/// Why the lock was not to be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else works on the sandbox.
    #[error("sandbox lock {path} is held by process {holders}; try again once it has ended")]
    Busy {
        /// The lock's file.
        path: String,
        /// Who holds it.
        holders: String,
    },
    /// The file cannot be used.
    #[error("sandbox lock {path}: {cause}; make its directory writable")]
    Io {
        /// The lock's file.
        path: String,
        /// Why.
        cause: String,
    },
}

impl LockError {
    fn io(path: &Path, cause: &io::Error) -> LockError {
        LockError::Io {
            path: path.display().to_string(),
            cause: cause.to_string(),
        }
    }

    fn busy(path: &Path, holders: &[i32]) -> LockError {
        let holders: Vec<String> = holders.iter().map(ToString::to_string).collect();
        LockError::Busy {
            path: path.display().to_string(),
            holders: holders.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Command;

    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(200)
    }

    fn container() -> ContainerId {
        "c1".parse().unwrap()
    }

    #[test]
    fn it_leaves_no_file_behind() {
        let dir = tempfile::tempdir().unwrap();
        drop(Lock::take(&dir.path().join("locks"), &container(), soon()).unwrap());
        assert_eq!(fs::read_dir(dir.path().join("locks")).unwrap().count(), 0);
    }

    // clause: CNI-1.1.0 §3 serial
    // clause: CNI-1.1.0 §3 concurrent: locked by sandbox
    // clause: NPWG-1.3 §7.3
    #[test]
    fn a_second_taker_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path(), &container(), soon()).unwrap();
        // The same process counts as the live owner only through another descriptor, so hold it
        // in a child that says that it is the owner.
        let mut child = Command::new("sleep").arg("5").spawn().unwrap();
        fs::write(&first.path, child.id().to_string()).unwrap();
        let error = Lock::take(dir.path(), &container(), soon()).unwrap_err();
        assert!(
            error.to_string().contains(&child.id().to_string()),
            "{error}"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        drop(first);
        Lock::take(dir.path(), &container(), soon()).unwrap();
    }

    /// A process that holds the lock of a Jackfield that is dead.
    fn orphan_in(dir: &Path, work: &str) -> std::process::Child {
        let dead = open(&dir.join("c1.lock")).unwrap();
        dead.lock().unwrap();
        fcntl(&dead, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        (&dead).write_all(b"1999999999").unwrap();
        let mut orphan = Command::new("sh");
        orphan.args(["-c", work]).process_group(0).spawn().unwrap()
    }

    #[test]
    fn orphans_of_a_dead_owner_are_ended() {
        let dir = tempfile::tempdir().unwrap();
        let mut orphan = orphan_in(dir.path(), "sleep 60; true");
        let by = Instant::now() + Duration::from_secs(3);
        drop(Lock::take(dir.path(), &container(), by).unwrap());
        let status = orphan.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "the orphan was ended");
    }

    #[test]
    fn orphans_of_a_dead_owner_may_finish_first() {
        let dir = tempfile::tempdir().unwrap();
        let mut orphan = orphan_in(dir.path(), "sleep 0.1");
        let by = Instant::now() + Duration::from_secs(3);
        drop(Lock::take(dir.path(), &container(), by).unwrap());
        assert!(orphan.wait().unwrap().success(), "it ended by itself");
    }
}
