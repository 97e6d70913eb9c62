//! Owed writes: publications on disk that the API server does not have yet. They survive the end of
//! the plugin and of the agent, and any outage of the API server.
//!
//! The plugin writes each publication to a file, atomically. The agent sends the publication to the
//! API server and then removes the file. The files are not synced to disk, because every pod gets a
//! new sandbox and a new status after a power loss.

use std::cmp::Ordering;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::time::ClockId;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::{PodName, Publication};
use crate::boot::{boot_id, sweep_unfinished};
use crate::private_dir;
use crate::regular_file::{self, found};

/// The format of the files. This release does not touch files in a different format.
const FORM: u32 = 1;
const SUFFIX: &str = ".json";
/// The time since boot is divided into periods of this many seconds. Equal events about the same
/// object have the same name within a period, so the API server stores only one of them.
const PERIOD: u64 = 600;
const UNREADABLE: &str = ".unreadable";
/// The largest file that is read, in bytes. The publication of a real pod is smaller.
pub const MAX_FILE: u64 = 1 << 20;
/// The maximum number of directory entries that [`OwedWrites::survey`] examines. A search for a
/// pod's files has the same limit.
const MOST_ENTRIES: usize = 4096;
/// The maximum number of owed writes and unreadable files that a survey returns.
const MOST_SURVEYED: usize = 256;
/// The maximum number of earlier publications that [`OwedWrites::keep`] merges into a new one.
const MOST_REPLACED: usize = 16;

#[derive(Debug, Serialize, Deserialize)]
struct File<P> {
    form: u32,
    boot: String,
    publication: P,
}

/// One owed write.
#[derive(Debug, Clone, PartialEq)]
pub struct OwedWrite {
    /// The name of the file.
    pub file: String,
    /// The ID of the boot in which the plugin wrote the file.
    pub boot: String,
    /// The publication.
    pub publication: Publication,
}

impl OwedWrite {
    /// Makes a write that exists only in memory. Its age counts from now.
    pub fn in_memory(publication: Publication) -> OwedWrite {
        OwedWrite {
            file: time_since_boot(),
            boot: boot_id(),
            publication,
        }
    }

    /// Whether the file was written since the node booted.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot == boot_id()
    }

    /// Orders writes by age, oldest first. Writes from earlier boots come before writes of this
    /// boot.
    pub fn by_age(&self, other: &OwedWrite) -> Ordering {
        let age = |write: &OwedWrite| (write.is_of_this_boot(), write.file.clone());
        age(self).cmp(&age(other))
    }

    /// Returns the period in which the plugin wrote the file. Takes the time from the file's name.
    /// The period does not depend on when the agent publishes the write.
    pub fn period(&self) -> String {
        let seconds = self.file.split('.').next();
        let seconds = seconds.and_then(|seconds| seconds.parse().ok());
        seconds.map_or_else(|| self.file.clone(), |seconds| period(&self.boot, seconds))
    }
}

/// Returns the time since boot, formatted for the start of a file's name. Setting the wall
/// clock does not affect this time.
fn time_since_boot() -> String {
    let now = since_boot();
    format!("{:010}.{:09}", now.as_secs(), now.subsec_nanos())
}

/// Returns the time since boot. Every kernel has this clock, so reading it does not fail.
fn since_boot() -> Duration {
    let now = ClockId::CLOCK_BOOTTIME.now();
    now.map(Duration::from).unwrap_or_default()
}

/// Returns the current period.
pub fn period_now() -> String {
    period(&boot_id(), since_boot().as_secs())
}

fn period(boot: &str, since_boot: u64) -> String {
    format!("{boot} {}", since_boot / PERIOD)
}

/// The state of the directory of owed writes.
#[derive(Debug, Default)]
pub struct OwedSurvey {
    /// The pod and the age of each owed write.
    pub waiting: Vec<(PodName, Duration)>,
    /// Files that cannot be read.
    pub broken: Vec<PathBuf>,
}

/// The directory of owed writes.
#[derive(Debug, Clone)]
pub struct OwedWrites {
    dir: PathBuf,
}

impl OwedWrites {
    /// Uses the directory `publish` in the journal's directory, without creating it.
    pub fn new(journal_dir: &Path) -> OwedWrites {
        OwedWrites {
            dir: journal_dir.join("publish"),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates the directory if it is missing. Only root can access it.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn create_dir(&self) -> io::Result<()> {
        private_dir::create(&self.dir)
    }

    /// Whether the directory was removed from the node while it was mounted into the agent's
    /// container. If so, the plugin creates a new directory, which the agent does not see.
    pub fn is_removed(&self) -> bool {
        fs::metadata(&self.dir).is_ok_and(|dir| dir.nlink() == 0)
    }

    /// Keeps a publication on disk. Merges the publication with the pod's earlier owed publications
    /// into one file, so that retries of an ADD take the space of one publication.
    ///
    /// # Errors
    /// When the file cannot be written. The publication is then not kept.
    pub fn keep(&self, publication: &Publication) -> io::Result<()> {
        let of_pod = ending(publication.pod());
        let name = format!("{}-{}{of_pod}", time_since_boot(), std::process::id());
        let earlier = self.earlier(&name, &of_pod, publication.pod());
        let newest_first = earlier.iter().rev().map(|write| write.publication.clone());
        let text = serde_json::to_vec(&File {
            form: FORM,
            boot: boot_id(),
            publication: newest_first.fold(publication.clone(), Publication::after),
        })?;
        let temporary = self.dir.join(format!(".{name}"));
        let written = private_dir::or_create(&self.dir, || write(&temporary, &text));
        let kept = written.and_then(|()| fs::rename(&temporary, self.dir.join(&name)));
        if kept.is_ok() {
            for write in earlier {
                let _ = self.forget(&write.file);
            }
        } else {
            let _ = fs::remove_file(&temporary);
        }
        kept
    }

    /// Returns up to [`MOST_REPLACED`] owed writes for `pod` that are older than the file `name`.
    /// The oldest write comes first. Skips files that cannot be read. The agent renames such files
    /// (`put_aside`).
    fn earlier(&self, name: &str, of_pod: &str, pod: &PodName) -> Vec<OwedWrite> {
        let entries = self.entries().into_iter().flatten();
        let names = entries
            .take(MOST_ENTRIES)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|other| is_write(other) && other.ends_with(of_pod));
        let mut earlier: Vec<OwedWrite> = names
            .take(MOST_REPLACED)
            .filter_map(|other| self.read(&other).ok()?)
            .filter(|other| other.publication.pod() == pod)
            .filter(|other| !other.is_of_this_boot() || *other.file < *name)
            .collect();
        earlier.sort_by(OwedWrite::by_age);
        earlier
    }

    /// Removes the files of up to 16 owed writes of a pod.
    pub fn forget_pod(&self, pod: &PodName) {
        for write in self.earlier("~", &ending(pod), pod) {
            let _ = self.forget(&write.file);
        }
    }

    /// Removes the unfinished files of writers that have ended.
    pub fn sweep(&self) {
        sweep_unfinished(&self.dir, writer);
    }

    /// Returns the entries of the directory; none if the directory is missing.
    fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
        Ok(found(fs::read_dir(&self.dir))?.into_iter().flatten())
    }

    /// Returns the file names of all owed writes, in no particular order.
    ///
    /// # Errors
    /// When the directory exists and cannot be read.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.entries()? {
            let name = entry?.file_name().into_string().ok();
            names.extend(name.filter(|name| is_write(name)));
        }
        Ok(names)
    }

    /// Finds the owed writes and the files that cannot be read. Changes no file.
    ///
    /// # Errors
    /// When the directory exists and cannot be read.
    pub fn survey(&self) -> io::Result<OwedSurvey> {
        let mut survey = OwedSurvey::default();
        for entry in self.entries()?.take(MOST_ENTRIES) {
            let entry = entry?;
            if survey.waiting.len() + survey.broken.len() == MOST_SURVEYED {
                break;
            }
            let Ok(file) = entry.file_name().into_string() else {
                continue;
            };
            let write = match is_write(&file) {
                true => self.read(&file),
                false => Ok(None),
            };
            match write {
                Ok(Some(write)) => {
                    let changed = entry.metadata().and_then(|metadata| metadata.modified());
                    let age = changed.map(|changed| changed.elapsed().unwrap_or_default());
                    let pod = write.publication.pod().clone();
                    survey.waiting.push((pod, age.unwrap_or_default()));
                }
                Ok(None) if !file.ends_with(UNREADABLE) => {}
                Ok(None) | Err(_) => survey.broken.push(entry.path()),
            }
        }
        Ok(survey)
    }

    /// Removes the file of a write that has been published or replaced, or whose pod is gone.
    ///
    /// # Errors
    /// When the file exists and cannot be removed.
    pub fn forget(&self, file: &str) -> io::Result<()> {
        found(fs::remove_file(self.dir.join(file))).map(drop)
    }

    /// Reads one write; `None` if its file is missing or has the format of a different release.
    ///
    /// # Errors
    /// When the file cannot be read, is not a regular file of at most [`MAX_FILE`] bytes, or does
    /// not contain a publication.
    pub fn read(&self, name: &str) -> io::Result<Option<OwedWrite>> {
        let bytes = found(regular_file::read_untrusted(&self.dir.join(name), MAX_FILE))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let file: File<IgnoredAny> = serde_json::from_slice(&bytes)?;
        if file.form != FORM {
            return Ok(None);
        }
        let file: File<Publication> = serde_json::from_slice(&bytes)?;
        Ok(Some(OwedWrite {
            file: name.to_owned(),
            boot: file.boot,
            publication: file.publication,
        }))
    }

    /// Renames a file that cannot be read, so that the agent does not try again. Returns the new
    /// path.
    ///
    /// # Errors
    /// When the file cannot be renamed.
    pub fn put_aside(&self, name: &str) -> io::Result<PathBuf> {
        let aside = self.dir.join(format!("{name}{UNREADABLE}"));
        fs::rename(self.dir.join(name), &aside)?;
        Ok(aside)
    }
}

fn is_write(name: &str) -> bool {
    !name.starts_with('.') && name.ends_with(SUFFIX)
}

/// Returns the process ID in the name of an unfinished file; `None` for other files.
fn writer(name: &str) -> Option<u32> {
    let (begin, _) = name.strip_prefix('.')?.rsplit_once('-')?;
    begin.rsplit_once('-')?.1.parse().ok()
}

/// Returns how the file names of a pod's writes end. Two pods may have the same ending, because it
/// contains only a checksum of the pod's name and UID.
fn ending(pod: &PodName) -> String {
    let uid = pod.uid.as_deref().unwrap_or_default();
    let sum = crc32fast::hash(format!("{pod} {uid}").as_bytes());
    format!("-{sum:08x}{SUFFIX}")
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        // Refuses an existing path. The agent can also write to this directory, and could redirect
        // the plugin with a symlink.
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(text)
}

#[cfg(test)]
pub(super) mod tests;
