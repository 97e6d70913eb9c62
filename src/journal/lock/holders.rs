//! Who has a lock's file open, and the end of those who should not.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid, getpgrp};

/// The processes other than ourselves that have the lock's file open.
pub(super) fn holders(file: &File) -> Vec<i32> {
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
pub(super) fn end(holders: &[i32]) {
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
