//! Publications on disk that the API server does not have yet. They outlive the plugin, the agent and
//! any outage of the API server.
//!
//! The plugin writes one file per publication, whole or not at all. The agent publishes them and
//! removes the files. They are not synced: after a power loss no pod has its old sandbox, and each
//! gets a new status with the next.

use std::cmp::Ordering;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::{PodName, Publication};
use crate::boot::boot_id;
use crate::regular_file;

/// The form of the files. A file of another form is left to the release that knows it.
const FORM: u32 = 1;
const SUFFIX: &str = ".json";
/// For how many seconds equal events about a pod count as one.
const PERIOD: u64 = 600;
const UNREADABLE: &str = ".unreadable";
/// The largest file that is read, in bytes: a publication within its limits is smaller.
pub const MAX_FILE: u64 = 1 << 20;
/// How many entries of the directory a call or a survey looks at.
const MOST_ENTRIES: usize = 4096;
/// How many writes a survey reads.
const MOST_SURVEYED: usize = 256;
/// How many publications a new one replaces at most.
const MOST_REPLACED: usize = 16;

#[derive(Debug, Serialize, Deserialize)]
struct File<P> {
    form: u32,
    boot: String,
    publication: P,
}

/// One write that is owed.
#[derive(Debug, Clone, PartialEq)]
pub struct OwedWrite {
    /// Its file's name.
    pub file: String,
    /// Whether it was written since the node has booted.
    pub of_this_boot: bool,
    /// The publication.
    pub publication: Publication,
}

impl OwedWrite {
    /// Orders writes by their age: those of earlier boots first.
    pub fn by_age(&self, other: &OwedWrite) -> Ordering {
        (self.of_this_boot, &self.file).cmp(&(other.of_this_boot, &other.file))
    }

    /// The period in which it was written. It does not depend on when the agent publishes it.
    pub fn period(&self) -> String {
        let seconds = self.file.split('.').next();
        let seconds = seconds.and_then(|seconds| seconds.parse().ok());
        seconds.map_or_else(|| self.file.clone(), period)
    }
}

/// The current period.
pub fn period_now() -> String {
    let now = clock_gettime(ClockId::Boottime).tv_sec;
    period(u64::try_from(now).unwrap_or_default())
}

fn period(since_boot: u64) -> String {
    format!("{} {}", boot_id(), since_boot / PERIOD)
}

/// The state of the directory of owed writes.
#[derive(Debug, Default)]
pub struct OwedSurvey {
    /// The pods of the writes, each with the age of the write.
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
    /// `publish` in the journal's directory.
    pub fn new(journal_dir: &Path) -> OwedWrites {
        OwedWrites {
            dir: journal_dir.join("publish"),
        }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the directory, for root alone, where it is missing.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create_dir(&self) -> io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
    }

    /// Whether the directory was removed from the node while it is mounted here. Then the agent does
    /// not see new writes of the plugins.
    pub fn is_removed(&self) -> bool {
        fs::metadata(&self.dir).is_ok_and(|dir| dir.nlink() == 0)
    }

    /// Keeps a publication together with those of the same pod that are still owed, in one file.
    /// However often an ADD is retried, the pod's publications take the space of one.
    ///
    /// # Errors
    /// Those of the file system; then the publication is not kept.
    pub fn keep(&self, publication: &Publication) -> io::Result<()> {
        let of_pod = ending(publication.pod());
        // By the time since boot, so that a clock that is set back changes no order.
        let now = clock_gettime(ClockId::Boottime);
        let name = format!(
            "{:010}.{:09}-{}{of_pod}",
            now.tv_sec,
            now.tv_nsec,
            std::process::id()
        );
        let earlier = self.earlier(&name, &of_pod, publication.pod());
        let newest_first = earlier.iter().rev().map(|write| write.publication.clone());
        let text = serde_json::to_vec(&File {
            form: FORM,
            boot: boot_id(),
            publication: newest_first.fold(publication.clone(), Publication::after),
        })?;
        let temporary = self.dir.join(format!(".{name}"));
        let written = match write(&temporary, &text) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create_dir().and_then(|()| write(&temporary, &text))
            }
            written => written,
        };
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

    /// The writes owed for a pod that are older than the file `name`, oldest first. The agent puts
    /// aside files that cannot be read.
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
            .filter(|other| !other.of_this_boot || *other.file < *name)
            .collect();
        earlier.sort_by(OwedWrite::by_age);
        earlier
    }

    /// Drops the writes owed for a pod.
    pub fn forget_pod(&self, pod: &PodName) {
        for write in self.earlier("~", &ending(pod), pod) {
            let _ = self.forget(&write.file);
        }
    }

    /// The entries of the directory; none where it is missing.
    fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<fs::DirEntry>>> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            entries => Some(entries?),
        };
        Ok(entries.into_iter().flatten())
    }

    /// The names of the files of all owed writes, in no order.
    ///
    /// # Errors
    /// When the directory exists and cannot be read.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let names = self
            .entries()?
            .map(|entry| Ok(entry?.file_name().into_string().ok()));
        let names = names.filter_map(io::Result::transpose);
        names
            .filter(|name| name.as_ref().map_or(true, |name| is_write(name)))
            .collect()
    }

    /// The age of every owed write, and every file that cannot be read. It changes nothing.
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

    /// Removes the file of a write that is published, or whose pod is gone.
    ///
    /// # Errors
    /// Those of the file system, except for a missing file.
    pub fn forget(&self, file: &str) -> io::Result<()> {
        match fs::remove_file(self.dir.join(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads one write; `None` where its file is missing, or has the form of another release.
    ///
    /// # Errors
    /// Those of the file system, and when the file is not a regular one of at most [`MAX_FILE`] bytes
    /// or not a publication.
    pub fn read(&self, name: &str) -> io::Result<Option<OwedWrite>> {
        let bytes = match regular_file::read_untrusted(&self.dir.join(name), MAX_FILE) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        let file: File<IgnoredAny> = serde_json::from_slice(&bytes)?;
        if file.form != FORM {
            return Ok(None);
        }
        let file: File<Publication> = serde_json::from_slice(&bytes)?;
        Ok(Some(OwedWrite {
            file: name.to_owned(),
            of_this_boot: file.boot == boot_id(),
            publication: file.publication,
        }))
    }

    /// Renames a file that cannot be read, so that it is not read again. Returns the new path.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn put_aside(&self, name: &str) -> io::Result<PathBuf> {
        let aside = self.dir.join(format!("{name}{UNREADABLE}"));
        fs::rename(self.dir.join(name), &aside)?;
        Ok(aside)
    }
}

fn is_write(name: &str) -> bool {
    !name.starts_with('.') && name.ends_with(SUFFIX)
}

/// The end of the names of a pod's files. Two pods may have the same one.
fn ending(pod: &PodName) -> String {
    let uid = pod.uid.as_deref().unwrap_or_default();
    let sum = crc32fast::hash(format!("{pod} {uid}").as_bytes());
    format!("-{sum:08x}{SUFFIX}")
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        // The agent may write to this directory too, and must not place a link here.
        .create_new(true)
        .mode(0o600)
        .open(path)?
        .write_all(text)
}

#[cfg(test)]
pub(super) mod tests;
