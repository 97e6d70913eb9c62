//! The simulated disk. It makes some operations fail. Some failed writes leave a part of their data
//! in the file.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::libc;

use super::machine::Process;
use super::mutants;
use super::records;
use super::simulated::Simulation;
use crate::machine::{Operation, Verdict};

const ERRORS: [i32; 5] = [
    libc::ENOSPC,
    libc::EIO,
    libc::EROFS,
    libc::EMFILE,
    libc::ENOMEM,
];

/// Decides whether an operation of a process succeeds.
pub(super) fn judge(process: &Process, operation: Operation<'_>) -> Verdict {
    if process.is_dead() {
        return refuse(libc::EIO);
    }
    process.step(number(&operation));
    process
        .sim
        .say(|| format!("[{}] {}", process.pid, words(&operation)));
    if let Some(container) = released(process, &operation) {
        records::check(&process.sim, container);
    }
    if let Operation::Read(_) = operation
        && process.is_gc
    {
        process.sim.world().is_listing = false;
    }
    if let Operation::Write(file, bytes) = operation {
        // A kill during a write may leave only a part of the bytes in the file.
        if process.is_doomed() && process.sim.happens(1, 40) {
            let _ = (&*file).write(&bytes[..cut(&process.sim, bytes)]);
            process.kill();
        }
        process.inherit(file, bytes);
    }
    if let Operation::Unlock(file) = operation {
        let lock = file.metadata().map_or(0, |it| it.ino());
        process.locks.borrow_mut().retain(|(own, _)| *own != lock);
    }
    if let Some(verdict) = mutants::judge(process, &operation) {
        return verdict;
    }
    if let Some(verdict) = fault(process, &operation) {
        return verdict;
    }
    process.sim.history.lock().unwrap().keep(&operation);
    Verdict::Proceed
}

/// If the operation removes a lock file, returns the container of the lock. A process removes the
/// lock file just before it releases the lock.
fn released<'p>(process: &Process, operation: &Operation<'p>) -> Option<&'p str> {
    match *operation {
        Operation::Remove(path) if path.starts_with(process.sim.place.locks()) => {
            path.file_stem()?.to_str()
        }
        _ => None,
    }
}

impl Process {
    /// Checks whether a write shows that this process has taken a lock. Records the time of the
    /// first lock. If this process may be killed, also duplicates the descriptor of the lock file.
    /// Like the descriptor that a real delegate inherits, the duplicate keeps the lock after the
    /// process is killed.
    fn inherit(&self, file: &File, bytes: &[u8]) {
        // A process that has taken a lock writes its ID into the lock file.
        let is_claim = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
        if is_claim && self.locked.get().is_none() {
            self.locked.set(Some(self.sim.scheduler.now()));
        }
        if is_claim && self.is_doomed() && self.sim.mutant != Some(mutants::Mutant::NotInherited) {
            let lock = file.metadata().map_or(0, |it| it.ino());
            self.locks
                .borrow_mut()
                .push((lock, file.try_clone().unwrap()));
        }
    }
}

/// Describes an operation for the output of the simulation.
fn words(operation: &Operation<'_>) -> String {
    let last = |path: &Path| {
        let mut parts: Vec<_> = path.iter().rev().take(2).collect();
        parts.reverse();
        parts.iter().collect::<PathBuf>().display().to_string()
    };
    let inode = |file: &File| file.metadata().map_or(0, |it| it.ino());
    match operation {
        Operation::Open(path) => format!("opens {}", last(path)),
        Operation::Write(_, bytes) => {
            let text = String::from_utf8_lossy(bytes);
            format!("writes {}", text.chars().take(60).collect::<String>())
        }
        Operation::Rename(from, to) => format!("renames {} to {}", last(from), last(to)),
        Operation::Remove(path) => format!("removes {}", last(path)),
        Operation::Link(path) => format!("links {}", last(path)),
        Operation::Read(path) => format!("reads {}", last(path)),
        Operation::Lock(file) => format!("locks inode {}", inode(file)),
        Operation::Unlock(file) => format!("unlocks inode {}", inode(file)),
    }
}

fn number(operation: &Operation<'_>) -> u64 {
    match operation {
        Operation::Open(_) => 1,
        Operation::Write(..) => 2,
        Operation::Rename(..) => 3,
        Operation::Remove(_) => 4,
        Operation::Link(_) => 5,
        Operation::Read(_) => 6,
        Operation::Lock(_) => 7,
        Operation::Unlock(_) => 8,
    }
}

fn refuse(error: i32) -> Verdict {
    Verdict::Refuse(io::Error::from_raw_os_error(error))
}

fn fault(process: &Process, operation: &Operation<'_>) -> Option<Verdict> {
    let sim = &process.sim;
    let (is_calm, is_full) = {
        let world = sim.world();
        (world.is_calm, world.disk_refuses)
    };
    let may_fail = match operation {
        Operation::Unlock(_) | Operation::Lock(_) => false,
        Operation::Read(path)
        | Operation::Open(path)
        | Operation::Remove(path)
        | Operation::Rename(_, path)
        | Operation::Link(path) => !path.starts_with(sim.place.locks()),
        Operation::Write(_, bytes) => !bytes.iter().all(u8::is_ascii_digit),
    };
    if is_calm || !may_fail {
        return None;
    }
    let is_change = !matches!(operation, Operation::Read(_));
    let fails = is_full && is_change || sim.happens(sim.conditions.disk_faults, 1000);
    if !fails {
        return None;
    }
    sim.world().figures.disk_faults += 1;
    let error = match is_full {
        true => libc::ENOSPC,
        false => ERRORS[sim.below(5) as usize],
    };
    sim.say(|| format!("[{}] the disk fails: error {error}", process.pid));
    if let Operation::Remove(path) = operation
        && let Ok(name) = path.strip_prefix(sim.place.journal())
    {
        // The file stays, and may outlive the record of its sandbox. At the end of the simulation,
        // `invariants` accepts a leftover that is in `changed_files`.
        let name = name.display().to_string();
        sim.world().changed_files.insert(name);
    }
    if let Operation::Write(file, bytes) = operation
        && sim.happens(1, 2)
    {
        let _ = (&**file).write(&bytes[..cut(sim, bytes)]);
    }
    Some(refuse(error))
}

/// Chooses where a write is cut. The random choice does not depend on the length of a line. So two
/// runs with the same seed make the same choice, although paths and numbers in the lines differ.
pub(super) fn cut(sim: &Simulation, bytes: &[u8]) -> usize {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let (line, kind) = (sim.below(16) as usize % lines.len().max(1), sim.below(5));
    let before: usize = lines.iter().take(line).map(|line| line.len()).sum();
    let length = lines.get(line).map_or(0, |line| line.len());
    before
        + match kind {
            0 => 0,
            1 => length.min(5),
            2 => length / 2,
            3 => length.saturating_sub(1),
            _ => length.saturating_sub(2),
        }
}
