//! Appends steps to a record.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::files::{options, write};
use super::steps::Step;
use super::{JournalError, record};
use crate::disk;

/// The record of a sandbox, open for appending steps.
#[derive(Debug)]
pub struct Entry {
    file: File,
    path: PathBuf,
}

impl Entry {
    pub(super) fn open(path: &Path) -> io::Result<Entry> {
        let file = disk::open(options().append(true), path)?;
        Ok(Entry::at(path, file))
    }

    pub(super) fn at(path: &Path, file: File) -> Entry {
        Entry {
            file,
            path: path.to_owned(),
        }
    }

    /// Appends steps in one write.
    ///
    /// # Errors
    /// Code 109 if the disk is full or broken. The file may then end with an incomplete step. A
    /// reader of such a record assumes that every attachment was started.
    pub fn write(&mut self, steps: &[Step<'_>]) -> Result<(), JournalError> {
        let mut bytes = Vec::with_capacity(1 << 10);
        let mut lines = steps.iter();
        let encoded = lines.try_for_each(|step| record::append(&mut bytes, step));
        let written = encoded.map_err(io::Error::from);
        let written = written.and_then(|()| write(&self.file, &bytes));
        written.map_err(|cause| JournalError::io("cannot be written", &self.path, cause))
    }
}
