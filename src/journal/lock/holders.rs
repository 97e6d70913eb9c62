//! Finds the processes that have a lock's file open, and kills orphans among them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgid, getpgrp};
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::clock;
use crate::machine::ask_machine;

/// Whether the process `pid` has the file of the lock open. `pid` must not be this process, which
/// always has the file open.
pub(super) fn holds(pid: i32, file: &File, name: &OsStr) -> bool {
    ask_machine!(is_running(pid));
    let Ok(held) = file.metadata() else {
        return false;
    };
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter();
    descriptors.flatten().flatten().any(|entry| {
        // Compares the name in the link first, so that `stat` runs only for a matching file. A
        // `stat` of a file on a broken file system may hang.
        let has_name = |path: PathBuf| names(&path, name);
        let is_it = || {
            let open = fs::metadata(entry.path());
            open.is_ok_and(|open| (open.dev(), open.ino()) == (held.dev(), held.ino()))
        };
        fs::read_link(entry.path()).is_ok_and(has_name) && is_it()
    })
}

/// Whether the link of a descriptor ends with this file name. If the file has been removed, the
/// kernel appends ` (deleted)` to the name.
fn names(link: &Path, name: &OsStr) -> bool {
    let last = link.file_name().unwrap_or_default().as_encoded_bytes();
    last.strip_suffix(b" (deleted)").unwrap_or(last) == name.as_encoded_bytes()
}

/// Finds the processes that have the file of the lock open, except this process. Stops searching at
/// `until`.
///
/// Searches the processes of root first. If none has the file open, searches the processes of other
/// users, because a delegate may have dropped its privileges. Other users can prolong the search,
/// for example with many open descriptors, but only if no process of root has the file open.
pub(super) fn holders(file: &File, name: &OsStr, until: Instant) -> Vec<i32> {
    ask_machine!(orphans(file));
    let ours = i32::try_from(std::process::id()).unwrap_or_default();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered = processes.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, entry.metadata().ok()?.uid()))
    });
    let (mut roots, mut others) = (Vec::new(), Vec::new());
    for (pid, user) in numbered.filter(|(pid, _)| *pid != ours) {
        if user == 0 { &mut roots } else { &mut others }.push(pid);
    }
    for some in [roots, others] {
        let found: Vec<i32> = some
            .into_iter()
            .take_while(|_| clock::now() < until)
            .filter(|pid| holds(*pid, file, name))
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// Kills the orphans of a dead Jackfield, and the process groups of the orphans. Does not kill a
/// process that runs Jackfield. Such a process is waiting for the lock, or has just taken the lock
/// and not yet written its process ID.
pub(super) fn end(holders: &[i32], file: &File, name: &OsStr) {
    ask_machine!(kill(holders));
    for pid in holders {
        // If the process `pid` ends and a new process gets the same ID, a signal to the pidfd does
        // not reach the new process. `holds` below checks that the process is still a holder.
        let Some(number) = rustix::process::Pid::from_raw(*pid) else {
            continue;
        };
        let Ok(process) = pidfd_open(number, PidfdFlags::empty()) else {
            continue;
        };
        if runs_jackfield(*pid) || !holds(*pid, file, name) {
            continue;
        }
        match getpgid(Some(Pid::from_raw(*pid))) {
            Ok(group) if group != getpgrp() && group.as_raw() > 1 => {
                let _ = killpg(group, Signal::SIGKILL);
            }
            _ => {}
        }
        let _ = pidfd_send_signal(process, rustix::process::Signal::KILL);
    }
}

/// Whether a process runs Jackfield. False if the name of its program cannot be read.
pub(super) fn runs_jackfield(pid: i32) -> bool {
    program("self").is_some_and(|ours| program(pid) == Some(ours))
}

/// Returns the file name of the program that a process runs, even if the file has been replaced.
fn program(pid: impl std::fmt::Display) -> Option<String> {
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = path.file_name()?.to_str()?;
    Some(name.strip_suffix(" (deleted)").unwrap_or(name).to_owned())
}
