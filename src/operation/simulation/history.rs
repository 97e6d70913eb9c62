//! The effect of a power loss on the journal. Only the agent syncs files of the journal to disk,
//! and the simulated agent syncs none.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::disk::cut;
use super::simulated::Simulation;
use crate::machine::Operation;

/// The content of a path at one time.
#[derive(Clone, PartialEq)]
enum Version {
    Absent,
    Bytes(Vec<u8>),
    Link(PathBuf),
}

impl Version {
    fn of(path: &Path) -> Version {
        match fs::symlink_metadata(path) {
            Err(_) => Version::Absent,
            Ok(found) if found.is_symlink() => {
                fs::read_link(path).map_or(Version::Absent, Version::Link)
            }
            Ok(_) => fs::read(path).map_or(Version::Absent, Version::Bytes),
        }
    }

    fn put(&self, path: &Path) {
        let _ = fs::remove_file(path);
        match self {
            Version::Absent => {}
            Version::Bytes(bytes) => fs::write(path, bytes).unwrap(),
            Version::Link(target) => symlink(target, path).unwrap(),
        }
    }
}

/// The earlier versions of the journal's files.
pub(super) struct History {
    is_kept: bool,
    versions: BTreeMap<PathBuf, Vec<Version>>,
}

impl History {
    pub(super) fn new(is_kept: bool) -> History {
        History {
            is_kept,
            versions: BTreeMap::new(),
        }
    }

    /// Keeps the current version of each file that the operation is about to change.
    pub(super) fn keep(&mut self, operation: &Operation<'_>) {
        if !self.is_kept {
            return;
        }
        match operation {
            Operation::Open(path) | Operation::Remove(path) | Operation::Link(path) => {
                self.push(path);
            }
            Operation::Rename(from, to) => {
                // Every rename gives a temporary file its final name, except the renames of damaged
                // records to the quarantine and inside the quarantine. The simulation assumes that
                // a power loss does not undo these exceptions.
                let is_temporary = |path: &Path| {
                    let name = path.file_name().unwrap_or_default();
                    name.as_encoded_bytes().starts_with(b".")
                };
                if is_temporary(from) {
                    self.push(to);
                    self.push(from);
                } else {
                    self.versions.remove(*from);
                    self.versions.remove(*to);
                }
            }
            Operation::Write(..)
            | Operation::Read(_)
            | Operation::Lock(_)
            | Operation::Unlock(_) => {}
        }
    }

    fn push(&mut self, path: &Path) {
        let versions = self.versions.entry(path.to_owned()).or_default();
        let now = Version::of(path);
        if versions.last() != Some(&now) {
            versions.push(now);
        }
    }

    /// Simulates a power loss: every file independently keeps its last version, or reverts to one
    /// of its earlier versions. Some files also lose their end or have zeros there. Removes all
    /// locks.
    pub(super) fn lose_power(&mut self, sim: &Simulation) {
        let (journal, locks) = (sim.place.journal(), sim.place.locks());
        let _ = fs::remove_dir_all(&locks);
        for (path, mut versions) in std::mem::take(&mut self.versions) {
            if !path.starts_with(&journal) {
                continue;
            }
            let last = Version::of(&path);
            let choice = sim.below(4);
            let earlier = sim.below(1 << 10) as usize % (versions.len() + 1);
            versions.push(last.clone());
            let (mut version, later) = match choice {
                0 | 1 => (last.clone(), &versions[..0]),
                _ => (versions[earlier].clone(), &versions[earlier..]),
            };
            // Whether `path` had no file at the time of `version` or later. If so, `version` is
            // older than the file that is there now, and the power loss destroys that whole file.
            let is_of_earlier = last != Version::Absent && later.contains(&Version::Absent);
            if let Version::Bytes(bytes) = &mut version
                && choice % 2 == 1
            {
                let end = cut(sim, bytes);
                let whole = bytes.len();
                bytes.truncate(end);
                if sim.happens(1, 3) {
                    bytes.resize(whole, 0);
                }
            }
            if version == last {
                continue;
            }
            let name = path
                .strip_prefix(&journal)
                .unwrap_or(&path)
                .display()
                .to_string();
            sim.say(|| format!("the power loss changes {name}"));
            version.put(&path);
            let mut world = sim.world();
            if let Some(record) = name.strip_prefix("sandboxes/") {
                let container = record.split('@').next().unwrap_or_default();
                match is_of_earlier || version == Version::Absent {
                    true => world.forgotten.insert(container.to_owned()),
                    false => world.damaged.insert(container.to_owned()),
                };
            }
            world.changed_files.insert(name);
        }
    }
}
