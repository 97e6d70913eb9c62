//! Mutants: each mutant is a defect in the journal or in the locks. Each mutant must break a rule
//! in some simulated world. A rule is a property that every world must have.
//!
//! There is no mutant for the step `detached`: if a record lacks the step, a later DEL repeats the
//! detachment, and plugins must accept a repeated DEL (CNI 1.1.0 §2 DEL).

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::conditions::Conditions;
use super::disk::cut;
use super::machine::Process;
use crate::machine::{Operation, Verdict};

/// A defect that a test adds on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mutant {
    /// The header of a record is not written.
    NoHeader,
    /// The step `started` is not written.
    NoStarted,
    /// The step `attached` is not written.
    NoAttached,
    /// The step `baseline` is not written.
    NoBaseline,
    /// The step `complete` is not written.
    NoComplete,
    /// The file that records a failed detachment is not written.
    NoOwed,
    /// Nothing reserves devices and addresses.
    NoExclusive,
    /// A record stays after its sandbox is detached.
    KeepsRecord,
    /// A record is removed although a part of its sandbox is still attached.
    ForgetsOwed,
    /// Every container's lock is always free.
    FreeLock,
    /// Delegates do not inherit the container's lock.
    NotInherited,
    /// A file is replaced in place, not by a rename.
    InPlace,
    /// A change of a running pod is not recorded before it begins.
    NoPendingChange,
    /// The step `routes` is not written.
    NoRoutes,
    /// Several calls reserve devices and addresses at the same time.
    FreeTurn,
    /// A GC runs at the same time as changes of running pods.
    FreeChanges,
}

impl Mutant {
    pub(super) const ALL: [Mutant; 16] = [
        Mutant::NoHeader,
        Mutant::NoStarted,
        Mutant::NoAttached,
        Mutant::NoBaseline,
        Mutant::NoComplete,
        Mutant::NoOwed,
        Mutant::NoExclusive,
        Mutant::KeepsRecord,
        Mutant::ForgetsOwed,
        Mutant::FreeLock,
        Mutant::NotInherited,
        Mutant::InPlace,
        Mutant::NoPendingChange,
        Mutant::NoRoutes,
        Mutant::FreeTurn,
        Mutant::FreeChanges,
    ];

    /// Changes the conditions so that this mutant is more likely to break a rule.
    pub(super) fn favour(self, conditions: Conditions) -> Conditions {
        let quiet = Conditions {
            disk_faults: 0,
            has_full_disk: false,
            power_loss: None,
            ..conditions.clone()
        };
        match self {
            Mutant::NoOwed => Conditions {
                kills: 0,
                delegate_faults: 200,
                runtime_gives_up: true,
                ..quiet
            },
            Mutant::NotInherited | Mutant::InPlace | Mutant::NoPendingChange => Conditions {
                kills: 40,
                pods: 30,
                at_once: 30,
                ..quiet
            },
            // A reservation is a symlink, and the kernel creates a symlink atomically. So the lock
            // for making reservations matters only if two calls replace the same stale
            // reservation. A reservation becomes stale if the disk fails to remove its symlink.
            Mutant::FreeTurn => Conditions {
                pods: 200,
                at_once: 30,
                steadiness: 0,
                step: Duration::from_millis(1),
                disk_faults: 30,
                has_one_mac: true,
                delegate_faults: 0,
                cluster_faults: 0,
                disturbances: 0,
                kills: 0,
                ..quiet
            },
            Mutant::NoRoutes => Conditions {
                pods: 40,
                kills: 0,
                ..quiet
            },
            Mutant::FreeChanges => Conditions {
                pods: 40,
                at_once: 10,
                collections: 100,
                step: Duration::from_millis(1),
                kills: 0,
                delegate_faults: 0,
                cluster_faults: 0,
                ..quiet
            },
            _ => conditions,
        }
    }

    /// If the mutant omits one kind of line from records, returns the first bytes of the JSON in
    /// such a line.
    fn lost_step(self) -> Option<&'static [u8]> {
        Some(match self {
            Mutant::NoHeader => b"{\"format\":",
            Mutant::NoStarted => b"{\"started\":",
            Mutant::NoAttached => b"{\"attached\":",
            Mutant::NoBaseline => b"{\"baseline\":",
            Mutant::NoComplete => b"\"complete\"",
            Mutant::NoRoutes => b"{\"routes\":",
            _ => return None,
        })
    }
}

/// The number of bytes that precede the JSON in a line of a record.
const FRONT: usize = 18;

/// Applies the mutant to the operation. Returns [`Verdict::Pretend`] for an operation that must
/// report success but change nothing. For every other operation, returns `None`, and the simulated
/// disk then decides whether the operation succeeds.
pub(super) fn judge(process: &Process, operation: &Operation<'_>) -> Option<Verdict> {
    let mutant = process.sim.mutant?;
    let place = &process.sim.place;
    let journal = place.journal();
    match *operation {
        Operation::Write(_, bytes) => {
            let json = bytes.get(FRONT..).unwrap_or_default();
            let is_lost = mutant
                .lost_step()
                .is_some_and(|step| json.starts_with(step));
            return is_lost.then_some(Verdict::Pretend);
        }
        Operation::Rename(from, to) => {
            let is_pending = || {
                let bytes = fs::read(from).unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes);
                text.lines()
                    .next()
                    .unwrap_or_default()
                    .contains("\"change\":{")
            };
            match mutant {
                Mutant::NoOwed if to.starts_with(journal.join("owed")) => {
                    return Some(Verdict::Pretend);
                }
                Mutant::ForgetsOwed if to.starts_with(journal.join("owed")) => {
                    let name = to.file_name().unwrap_or_default();
                    let _ = fs::remove_file(journal.join("sandboxes").join(name));
                }
                Mutant::NoPendingChange
                    if to.starts_with(journal.join("sandboxes")) && is_pending() =>
                {
                    return Some(Verdict::Pretend);
                }
                Mutant::InPlace if to.starts_with(&journal) => {
                    let bytes = fs::read(from).unwrap_or_default();
                    let mut file = fs::File::create(to).unwrap();
                    let end = cut(&process.sim, &bytes);
                    let _ = file.write(&bytes[..end]);
                    drop(file);
                    if process.is_doomed() {
                        process.kill();
                    }
                }
                _ => {}
            }
        }
        Operation::Link(_) if mutant == Mutant::NoExclusive => return Some(Verdict::Pretend),
        Operation::Remove(path)
            if mutant == Mutant::KeepsRecord && path.starts_with(journal.join("sandboxes")) =>
        {
            return Some(Verdict::Pretend);
        }
        Operation::Lock(file) => {
            let (locks, found) = (place.locks(), file.metadata().ok()?);
            let is = |path: &Path| fs::metadata(path).is_ok_and(|it| it.ino() == found.ino());
            let is_broken = match mutant {
                // Only the containers' locks are on files. The other locks are on directories.
                Mutant::FreeLock => !found.is_dir(),
                Mutant::FreeTurn => is(&locks),
                Mutant::FreeChanges => is(&locks.join("changes")) || is(&locks.join("gc")),
                _ => false,
            };
            return is_broken.then_some(Verdict::Pretend);
        }
        _ => {}
    }
    None
}
