//! Lists, reads and replaces the files of the journal. If a file is a symbolic link, these
//! functions do not follow it.

use std::fs::{DirEntry, File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use rustix::fs::RawDir;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Journal, JournalError};
use crate::disk;
use crate::private_dir;
use crate::regular_file::found;

impl Journal {
    /// Writes `value` to a file as JSON, atomically.
    ///
    /// # Errors
    /// Code 109 if the file cannot be written.
    pub(super) fn put(
        &self,
        folder: &str,
        name: &str,
        value: &impl Serialize,
    ) -> Result<(), JournalError> {
        let (folder, temporary) = self.unfinished(folder, name);
        let path = folder.join(name);
        let write = || {
            let json = serde_json::to_vec(value)?;
            private_dir::or_create(&folder, || replace(&path, &temporary, &json))
        };
        write()
            .map(drop)
            .map_err(|cause| JournalError::io("cannot be written", &path, cause))
    }

    /// Returns the paths of a folder and of the temporary file for `name` in that folder.
    pub(super) fn unfinished(&self, folder: &str, name: &str) -> (PathBuf, PathBuf) {
        let folder = self.dir.join(folder);
        let temporary = folder.join(unfinished(name));
        (folder, temporary)
    }

    /// Returns the value in a JSON file; [`None`] if the file is missing or damaged.
    pub(super) fn get<T: DeserializeOwned>(&self, folder: &str, name: &str) -> Option<T> {
        parse(&self.dir.join(folder).join(name))
    }

    /// Returns the value in each file of a folder, in no particular order. Skips damaged files.
    pub(super) fn all<T: DeserializeOwned>(&self, folder: &str) -> impl Iterator<Item = T> {
        let finished = self.finished(folder);
        finished.filter_map(|file| parse(&file.path()))
    }

    /// Lists a folder, without the temporary files, in no particular order.
    pub(super) fn finished(&self, folder: &str) -> impl Iterator<Item = DirEntry> + use<> {
        let files = entries(&self.dir.join(folder)).unwrap_or_default();
        let is_finished = |file: &DirEntry| !file.file_name().as_encoded_bytes().starts_with(b".");
        files.into_iter().filter(is_finished)
    }

    /// Counts the files of a folder, without the temporary files. Counts an unreadable folder as
    /// empty. A folder may have a file for each sandbox of the node, so this function allocates no
    /// memory for the names.
    pub(super) fn count_finished(&self, folder: &str) -> u64 {
        let Ok(dir) = File::open(self.dir.join(folder)) else {
            return 0;
        };
        let mut buffer = [const { MaybeUninit::uninit() }; 32 << 10];
        let (mut names, mut count) = (RawDir::new(dir, &mut buffer), 0);
        while let Some(Ok(name)) = names.next() {
            count += u64::from(!name.file_name().to_bytes().starts_with(b"."));
        }
        count
    }

    /// Removes a file, and the temporary file that a killed writer may have left.
    pub(super) fn discard(&self, folder: &str, name: &str) {
        for name in [unfinished(name), name.to_owned()] {
            let _ = disk::remove(&self.dir.join(folder).join(name));
        }
    }
}

/// Lists a directory, in no particular order. The list of a missing directory is empty.
///
/// # Errors
/// Code 109 if the directory cannot be read.
pub(super) fn entries(dir: &Path) -> Result<Vec<DirEntry>, JournalError> {
    let entries = found(disk::list(dir)).map(Option::unwrap_or_default);
    entries.map_err(|cause| JournalError::io("cannot be read", dir, cause))
}

/// Returns options that refuse symbolic links and create files with mode 0600.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    options
}

/// Reads a whole file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    disk::read(options().read(true), path)
}

/// Writes a file atomically: writes `temporary` and renames it. Returns the file, open for
/// appending. On failure, removes `temporary` to free its space, because the disk may be full.
pub(super) fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut options = options();
    // `OpenOptions` cannot combine appending with truncating.
    options.custom_flags((OFlag::O_NOFOLLOW | OFlag::O_APPEND).bits());
    let file = disk::open(options.write(true).create(true).truncate(true), temporary)?;
    let written = write(&file, bytes).and_then(|()| disk::rename(temporary, path));
    written.inspect_err(|_| {
        let _ = disk::remove(temporary);
    })?;
    Ok(file)
}

/// Writes `bytes` in one system call. If the file accepts only a part, returns `StorageFull`.
pub(super) fn write(file: &File, bytes: &[u8]) -> io::Result<()> {
    match disk::write(file, bytes)? == bytes.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::StorageFull.into()),
    }
}

/// Returns the temporary name of a file. The temporary name begins with a period. The name of
/// a finished file begins with a PCI address or a container ID, never with a period.
///
/// Each file needs only one temporary name, because two processes never write the same file at
/// once. The writer of a sandbox's file holds the container's lock, and each device is reserved for
/// one sandbox.
fn unfinished(name: &str) -> String {
    format!(".{name}")
}

pub(super) fn parse<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&read(path).ok()?).ok()
}
