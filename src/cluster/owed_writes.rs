//! What the cluster is still to be told, on disk: it outlives the plugin, the agent and any
//! outage of the API server.
//!
//! The plugin writes one file a publication, whole or not at all; the agent makes the writes and
//! takes the files away. They are not synced: after a power loss no pod has its old sandbox, and
//! each gets a new status with the next.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::Publication;
use crate::boot::boot_id;
use crate::untrusted_file;

/// The form of the files; one of another form is left to the release that knows it.
const FORM: u32 = 1;
const SUFFIX: &str = ".json";
/// How long the same words about the same pod make one event, in seconds.
const PERIOD: u64 = 600;
const TORN: &str = ".unreadable";
/// The largest file that is read, in bytes: an annotation has at most 256 KiB.
const LIMIT: u64 = 1 << 20;

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
    /// What is to be told.
    pub publication: Publication,
}

impl OwedWrite {
    /// The period in which it was written: it is the same whenever it is told.
    pub fn period(&self) -> String {
        let seconds = self.file.split('.').next();
        let seconds = seconds.and_then(|seconds| seconds.parse().ok());
        seconds.map_or_else(|| self.file.clone(), period)
    }
}

/// The period that it is now.
pub fn period_now() -> String {
    let now = clock_gettime(ClockId::Boottime).tv_sec;
    period(u64::try_from(now).unwrap_or_default())
}

fn period(since_boot: u64) -> String {
    format!("{} {}", boot_id(), since_boot / PERIOD)
}

/// What is owed, as it lies there.
#[derive(Debug, Default)]
pub struct OwedSurvey {
    /// The writes, each with its age.
    pub waiting: Vec<(OwedWrite, Duration)>,
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

    /// Makes the directory, for root alone.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create_dir(&self) -> io::Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
    }

    /// Keeps a publication.
    ///
    /// # Errors
    /// Those of the file system; then nothing is kept.
    pub fn keep(&self, publication: &Publication) -> io::Result<()> {
        let text = serde_json::to_vec(&File {
            form: FORM,
            boot: boot_id(),
            publication,
        })?;
        // By the time since boot, so that a clock that is set back changes no order.
        let now = clock_gettime(ClockId::Boottime);
        let name = format!(
            "{:010}.{:09}-{}",
            now.tv_sec,
            now.tv_nsec,
            std::process::id()
        );
        let temporary = self.dir.join(format!(".{name}"));
        let written = match write(&temporary, &text) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create_dir().and_then(|()| write(&temporary, &text))
            }
            written => written,
        };
        let kept =
            written.and_then(|()| fs::rename(&temporary, self.dir.join(format!("{name}{SUFFIX}"))));
        if kept.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        kept
    }

    /// Everything owed, oldest first. Files that cannot be read are put aside, each with a line
    /// in the second list.
    ///
    /// # Errors
    /// When the directory is there and cannot be read.
    pub fn list(&self) -> io::Result<(Vec<OwedWrite>, Vec<String>)> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
            entries => entries?,
        };
        let boot = boot_id();
        let mut owed = Vec::new();
        let mut broken = Vec::new();
        for entry in entries {
            let Ok(name) = entry?.file_name().into_string() else {
                continue;
            };
            if name.starts_with('.') || !name.ends_with(SUFFIX) {
                continue;
            }
            match self.read(&name) {
                Ok(Some(file)) => owed.push((file.boot == boot, name, file.publication)),
                Ok(None) => {}
                Err(cause) => broken.push(self.put_aside(&name, &cause)),
            }
        }
        owed.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let owed = owed
            .into_iter()
            .map(|(_, file, publication)| OwedWrite { file, publication });
        Ok((owed.collect(), broken))
    }

    /// Everything owed with its age, and every file that cannot be read, changing nothing: for
    /// whoever only looks.
    ///
    /// # Errors
    /// When the directory is there and cannot be read.
    pub fn survey(&self) -> io::Result<OwedSurvey> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
            entries => entries?,
        };
        let mut survey = OwedSurvey::default();
        for entry in entries {
            let entry = entry?;
            let Ok(file) = entry.file_name().into_string() else {
                continue;
            };
            if file.ends_with(TORN) {
                survey.broken.push(entry.path());
            }
            if file.starts_with('.') || !file.ends_with(SUFFIX) {
                continue;
            }
            match self.read(&file) {
                Ok(Some(File { publication, .. })) => {
                    let changed = entry.metadata().and_then(|metadata| metadata.modified());
                    let age = changed.map(|changed| changed.elapsed().unwrap_or_default());
                    let write = OwedWrite { file, publication };
                    survey.waiting.push((write, age.unwrap_or_default()));
                }
                Ok(None) => {}
                Err(_) => survey.broken.push(entry.path()),
            }
        }
        Ok(survey)
    }

    /// A write is made, or nobody is there any more to be told.
    ///
    /// # Errors
    /// Those of the file system; a file that is gone is none.
    pub fn forget(&self, file: &str) -> io::Result<()> {
        match fs::remove_file(self.dir.join(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn read(&self, name: &str) -> Result<Option<File<Publication>>, String> {
        let bytes = match untrusted_file::read(&self.dir.join(name), LIMIT) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|error| error.to_string())?,
        };
        let file: File<serde_json::Value> =
            serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        if file.form != FORM {
            return Ok(None);
        }
        let publication = serde_json::from_value(file.publication).map_err(|e| e.to_string())?;
        Ok(Some(File {
            form: file.form,
            boot: file.boot,
            publication,
        }))
    }

    fn put_aside(&self, name: &str, cause: &str) -> String {
        let path = self.dir.join(name);
        let aside = self.dir.join(format!("{name}{TORN}"));
        let line = format!("{}: {cause}", path.display());
        match fs::rename(&path, &aside) {
            Ok(()) => format!("{line}; it is put aside as {}", aside.display()),
            Err(error) => format!("{line}; it cannot be put aside: {error}"),
        }
    }
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?
        .write_all(text)
}

#[cfg(test)]
mod tests;
