//! Lists, reads and replaces the files of the journal. Follows no links, so that no file points
//! outside the journal.

use std::fs::{self, DirEntry, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Journal, JournalError};
use crate::private_dir;
use crate::regular_file::found;

impl Journal {
    /// Writes a small file, which appears whole or not at all.
    ///
    /// # Errors
    /// Code 109.
    pub(super) fn put(
        &self,
        folder: &str,
        name: &str,
        value: &impl Serialize,
    ) -> Result<(), JournalError> {
        let folder = self.dir.join(folder);
        let (path, temporary) = (folder.join(name), folder.join(unfinished(name)));
        let write = || {
            let json = serde_json::to_vec(value)?;
            private_dir::or_create(&folder, || replace(&path, &temporary, &json))
        };
        write().map_err(|cause| JournalError::io("cannot be written", &path, cause))
    }

    /// The content of a small file; [`None`] if it is missing or damaged.
    pub(super) fn get<T: DeserializeOwned>(&self, folder: &str, name: &str) -> Option<T> {
        parse(&self.dir.join(folder).join(name))
    }

    /// The content of every small file in a folder, in no order and without damaged ones.
    pub(super) fn all<T: DeserializeOwned>(&self, folder: &str) -> impl Iterator<Item = T> {
        let files = entries(&self.dir.join(folder)).unwrap_or_default();
        let finished = files.into_iter().filter(|file| !is_unfinished(file));
        finished.filter_map(|file| parse(&file.path()))
    }

    /// Removes a small file and what a killed process left of it.
    pub(super) fn discard(&self, folder: &str, name: &str) {
        for name in [unfinished(name), name.to_owned()] {
            let _ = fs::remove_file(self.dir.join(folder).join(name));
        }
    }
}

/// The entries of a directory, in no order; none if it is missing.
///
/// # Errors
/// Code 109.
pub(super) fn entries(dir: &Path) -> Result<Vec<DirEntry>, JournalError> {
    let entries = found(fs::read_dir(dir));
    let entries = entries.and_then(|entries| entries.into_iter().flatten().collect());
    entries.map_err(|cause| JournalError::io("cannot be read", dir, cause))
}

/// Options that follow no link and create a file of root's.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    options
}

/// Reads a file.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(8 << 10);
    let mut file = options().read(true).open(path)?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a file under another name first, so that it appears whole or not at all.
pub(super) fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(temporary)?;
    file.write_all(bytes)?;
    fs::rename(temporary, path)
}

/// The temporary name of a small file: no address and no container ID begins with a period. One per
/// name is enough, since the files are written under the lock of the sandbox.
fn unfinished(name: &str) -> String {
    format!(".{name}")
}

pub(super) fn is_unfinished(file: &DirEntry) -> bool {
    file.file_name().as_encoded_bytes().starts_with(b".")
}

fn parse<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&read(path).ok()?).ok()
}
