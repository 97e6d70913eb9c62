//! An open record; each step is one append.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use super::files::options;
use super::record;
use super::steps::{Header, Step};

/// A sandbox's record, open for its next step.
#[derive(Debug)]
pub struct Entry {
    file: File,
}

impl Entry {
    /// Creates a record with its header.
    ///
    /// # Errors
    /// Those of the file system, also if a record of this name exists.
    pub(super) fn create(path: &Path, header: &Header) -> io::Result<Entry> {
        let mut bytes = Vec::with_capacity(4 << 10);
        record::append(&mut bytes, header)?;
        let file = options().append(true).create_new(true).open(path)?;
        let mut entry = Entry { file };
        entry.append(&bytes).inspect_err(|_| {
            // A record without even a header must not be found later.
            let _ = std::fs::remove_file(path);
        })?;
        Ok(entry)
    }

    pub(super) fn open(path: &Path) -> io::Result<Entry> {
        let file = options().append(true).open(path)?;
        Ok(Entry { file })
    }

    /// Appends steps in one write.
    ///
    /// # Errors
    /// If the disk is full or broken. The steps may then be there in part; a reader ignores an
    /// incomplete step.
    pub fn write(&mut self, steps: &[Step<'_>]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(1 << 10);
        for step in steps {
            record::append(&mut bytes, step)?;
        }
        self.append(&bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.file.write(bytes)?;
        if written == bytes.len() {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
    }
}
