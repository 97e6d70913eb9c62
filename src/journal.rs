//! The record of what is attached: the only truth that DEL, CHECK and GC need.
//!
//! One file per attachment of the runtime (container ID and interface), below `sandboxes/`. It
//! grows by one small record a step, each with its length and checksum: the intent stands there
//! before the act, so a process that is ended at any instruction leaves a file that says what may
//! have been done. Where the tail is torn, all that was intended may have been.
//!
//! ```text
//! sandboxes/<container>@<ifname>    header and intents, then steps
//! owed/<container>@<ifname>         a detachment that failed: when it is due again
//! quarantine/…                      what could not be read
//! adopted/<container>@<ifname>      Multus attached it, and its record was taken over
//! exclusive/<kind>-<address>        whose a device, a MAC, a GUID is
//! ```
//!
//! Nothing is synced to disk on the way: after a power loss every network namespace is gone, and
//! what the file says is then only about leases and devices. The agent does it once the runtime has
//! its answer ([`Journal::bring_to_disk`]). The directory is root's alone, since what is on record
//! is what a DEL runs.

pub mod adopted;
pub mod entry;
mod error;
pub mod exclusive;
mod key;
pub mod lock;
pub mod multus_cache;
pub mod owed;
mod quarantine;
pub mod record;
pub mod steps;
pub mod survey;
pub mod users;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub use entry::Entry;
pub use error::JournalError;
pub use exclusive::Exclusive;
pub use key::Key;
pub use lock::{Lock, LockError};
pub use multus_cache::{CachedAttachment, CachedSandbox, MultusCache};
pub use owed::Owed;
pub use steps::{Attached, Header, RouteChange, Sandbox, Step};
pub use users::DeviceUser;

use steps::ReplayError;

/// The directory of the journal.
#[derive(Debug, Clone)]
pub struct Journal {
    dir: PathBuf,
}

impl Journal {
    /// The journal in `dir`; nothing is opened yet.
    pub fn new(dir: &Path) -> Journal {
        Journal {
            dir: dir.to_owned(),
        }
    }

    /// Opens an entry for a sandbox that is to be attached and writes down what is intended.
    ///
    /// # Errors
    /// Code 109, when the record cannot be written: then nothing may be done either.
    pub fn begin(&self, header: &Header) -> Result<Entry, JournalError> {
        self.check_private()?;
        let path = self.path(&header.key());
        Entry::create(&path, header)
            .or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    self.make_dirs().and_then(|()| Entry::create(&path, header))
                }
                _ => Err(error),
            })
            .map_err(|cause| JournalError::io("cannot be written", &path, &cause))
    }

    /// Reads the record of one attachment and keeps it open for what follows.
    ///
    /// # Errors
    /// Code 109 when it is there and cannot be read. One that is no record at all is put into
    /// quarantine and counts as absent: [`Lookup::Quarantined`]. The caller holds the sandbox's
    /// lock, so that its writer is not at work now.
    pub fn find(&self, key: &Key) -> Result<Lookup, JournalError> {
        let path = self.path(key);
        let bytes = match read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Lookup::Absent),
            Err(cause) => return Err(JournalError::io("cannot be read", &path, &cause)),
        };
        match Sandbox::replay(&bytes) {
            Ok(sandbox) if sandbox.header.key() == *key => Ok(Lookup::Found(Box::new(sandbox))),
            Ok(_) => self.quarantine(&path, "it is of another sandbox"),
            Err(ReplayError::CutOff) => Ok(Lookup::CutOff),
            Err(cause) => self.quarantine(&path, &cause.to_string()),
        }
    }

    /// Opens the record of `sandbox` for further steps.
    ///
    /// # Errors
    /// Code 109.
    pub fn reopen(&self, key: &Key) -> Result<Entry, JournalError> {
        let path = self.path(key);
        Entry::open(&path).map_err(|cause| JournalError::io("cannot be written", &path, &cause))
    }

    /// Takes the record of `key` away: nothing is attached any more, nothing is owed.
    ///
    /// # Errors
    /// Code 109.
    pub fn forget(&self, key: &Key) -> Result<(), JournalError> {
        self.clear_owed(key);
        let path = self.path(key);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(JournalError::io("cannot be removed", &path, &cause))
            }
            _ => Ok(()),
        }
    }

    /// Brings records, and that they are there, to the disk. One that is gone by now needs
    /// nothing. How many were there.
    ///
    /// # Errors
    /// Code 109, once all were tried.
    pub fn bring_to_disk(&self, keys: &[Key]) -> Result<u64, JournalError> {
        let (mut brought, mut failed) = (0, None);
        let paths = keys.iter().map(|key| self.path(key));
        for path in paths.chain([self.sandboxes()]) {
            match fs::File::open(&path).and_then(|file| file.sync_all()) {
                Ok(()) => brought += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => {
                    failed = Some(JournalError::io("is not safe on the disk", &path, &cause));
                }
            }
        }
        // The directory is none of the records.
        failed.map_or(Ok(u64::saturating_sub(brought, 1)), Err)
    }

    /// Every attachment on record.
    ///
    /// # Errors
    /// Code 109 when the directory is there and cannot be read.
    pub fn keys(&self) -> Result<Vec<Key>, JournalError> {
        Ok(self.keys_and_damaged()?.0)
    }

    /// Every attachment on record, and every record that was damaged and put aside just now: where
    /// it is, and what is wrong with it.
    ///
    /// # Errors
    /// As [`Journal::keys`].
    pub fn keys_and_damaged(&self) -> Result<(Vec<Key>, Vec<String>), JournalError> {
        let dir = self.sandboxes();
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
            Err(cause) => return Err(JournalError::io("cannot be read", &dir, &cause)),
        };
        let (mut keys, mut damaged) = (Vec::new(), Vec::new());
        for entry in entries.flatten() {
            match self.key_of(&entry.path()) {
                Ok(Some(key)) => keys.push(key),
                Ok(None) => {}
                Err(line) => damaged.push(line),
            }
        }
        Ok((keys, damaged))
    }

    /// Makes the journal's directories and looks whether it can be written now: an ADD would.
    ///
    /// # Errors
    /// Code 109 with the directory and the reason.
    pub fn make_ready(&self) -> Result<(), JournalError> {
        let dir = self.sandboxes();
        self.make_dirs()
            .map_err(|cause| JournalError::io("cannot be made", &dir, &cause))?;
        self.check_writable()
    }

    /// Whether the journal could be written, as far as can be told without making anything.
    ///
    /// # Errors
    /// Code 109 with the directory and the reason.
    pub fn check_writable(&self) -> Result<(), JournalError> {
        self.check_private()?;
        let dir = self.sandboxes();
        let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(&dir);
        let flags = nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK;
        nix::unistd::access(there, flags)
            .map_err(|cause| JournalError::io("cannot be written", there, &cause.into()))
    }

    /// Whether nobody but root can write there what a DEL would run.
    fn check_private(&self) -> Result<(), JournalError> {
        let others = |metadata: fs::Metadata| metadata.permissions().mode() & 0o022 != 0;
        if fs::metadata(&self.dir).is_ok_and(others) {
            return Err(JournalError::Open {
                path: self.dir.display().to_string(),
            });
        }
        Ok(())
    }

    /// The key in a record's header: a name alone may have been cut.
    fn key_of(&self, path: &Path) -> Result<Option<Key>, String> {
        let Ok(bytes) = read(path) else {
            return Ok(None);
        };
        match Sandbox::replay(&bytes) {
            Ok(sandbox) => Ok(Some(sandbox.header.key())),
            // Its writer may be at work: that is for the one who holds the sandbox's lock.
            Err(ReplayError::CutOff) => Ok(None),
            Err(cause) => match self.quarantine(path, &cause.to_string()) {
                Ok(Lookup::Quarantined { file, cause }) => {
                    Err(format!("a record was damaged ({cause}) and is now {file}"))
                }
                Ok(_) => Ok(None),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.sandboxes().join(key.file_name())
    }

    fn sandboxes(&self) -> PathBuf {
        self.dir.join("sandboxes")
    }

    fn make_dirs(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        ["sandboxes", "owed", "quarantine"]
            .iter()
            .try_for_each(|name| builder.create(self.dir.join(name)))
    }
}

/// What the journal knows of an attachment.
#[derive(Debug)]
pub enum Lookup {
    /// Its record.
    Found(Box<Sandbox>),
    /// Nothing: never attached here, or detached.
    Absent,
    /// A record without its first line: either nothing was begun, or a power loss took what was.
    CutOff,
    /// Something that was no record; it was put aside.
    Quarantined {
        /// Where it is now.
        file: String,
        /// What is wrong with it.
        cause: String,
    },
}

/// Reads a record, which is no link: what stands elsewhere is nobody's word.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut options = fs::OpenOptions::new();
    let flags = nix::fcntl::OFlag::O_NOFOLLOW.bits();
    let mut file = options.read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::with_capacity(8 << 10);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
