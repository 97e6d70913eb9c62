//! Creates a record with its header, and appends steps to the record.

use std::fs::File;
use std::io;
use std::path::Path;

use super::files::options;
use super::record;
use super::steps::{Header, Step};
use crate::disk;

/// The record of a sandbox, open for appending steps.
#[derive(Debug)]
pub struct Entry {
    file: File,
}

impl Entry {
    /// Creates a record with its header.
    ///
    /// # Errors
    /// The error of the file system; `AlreadyExists` if the sandbox already has a record.
    pub(super) fn create(path: &Path, header: &Header) -> io::Result<Entry> {
        let mut bytes = Vec::with_capacity(4 << 10);
        record::append(&mut bytes, header)?;
        let file = disk::open(options().append(true).create_new(true), path)?;
        let mut entry = Entry { file };
        entry.append(&bytes).inspect_err(|_| {
            // No later call may find a record without a complete header.
            let _ = disk::remove(path);
        })?;
        Ok(entry)
    }

    pub(super) fn open(path: &Path) -> io::Result<Entry> {
        let file = disk::open(options().append(true), path)?;
        Ok(Entry { file })
    }

    /// Appends steps in one write.
    ///
    /// # Errors
    /// If the disk is full or broken. The file may then end with an incomplete step. A reader of
    /// such a record assumes that every attachment was started.
    pub fn write(&mut self, steps: &[Step<'_>]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(1 << 10);
        for step in steps {
            record::append(&mut bytes, step)?;
        }
        self.append(&bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = disk::write(&self.file, bytes)?;
        if written == bytes.len() {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
    }
}
