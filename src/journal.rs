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
//! unrestored/<address>              a device that is not as it was before a pod had it
//! ```
//!
//! Nothing is synced to disk on the way: after a power loss every network namespace is gone, and
//! what the file says is then only about leases and devices. The agent does it once the runtime has
//! its answer ([`Journal::lend`]). The directory is root's alone, since what is on record
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
pub mod unrestored;
pub mod users;
pub(crate) mod wire;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

pub use entry::Entry;
pub use error::JournalError;
pub use exclusive::Exclusive;
pub use key::Key;
pub use lock::{Lock, LockError, Turn};
pub use multus_cache::{CachedAttachment, CachedSandbox, MultusCache};
pub use owed::Owed;
pub use steps::{Attached, Header, RouteChange, Sandbox, Step};
pub use unrestored::Unrestored;
pub use users::DeviceUser;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::cluster::OnRecord;
use crate::kernel::capabilities;
use crate::private_dir;
use steps::ReplayError;

/// The access mode of a descriptor that can be neither read nor written nor locked, only synced.
const NO_ACCESS: i32 = 3;
/// What lies in the directory.
const OURS: [&str; 7] = [
    "sandboxes",
    "owed",
    "quarantine",
    "adopted",
    "exclusive",
    "unrestored",
    "publish",
];
/// A user and a group that no process has: the largest ID that is one.
const NOBODYS: u32 = u32::MAX - 1;

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
        self.check_private()?;
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

    /// Opens the record of `key` for a process that may sync it, and can do nothing else to it.
    ///
    /// The agent has root's user ID, and whoever owns a file can open it anew for writing through
    /// `/proc/self/fd`, whatever a descriptor allows. So the record first gets an owner that no
    /// process has. Root keeps its access by CAP_DAC_OVERRIDE.
    ///
    /// # Errors
    /// Those of the file system, also where it has no other owners: nothing is lent then.
    pub fn lend(&self, key: &Key) -> io::Result<OwnedFd> {
        if !capabilities::overrides_owners() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let flags = OFlag::from_bits_retain(NO_ACCESS) | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let record = nix::fcntl::open(&self.path(key), flags, Mode::empty())?;
        fchown(&record, Some(NOBODYS), Some(NOBODYS))?;
        Ok(record)
    }

    /// Counts what is on record and what is owed, and lists the devices that are not as they were,
    /// by the names of the files.
    pub fn count(&self) -> OnRecord {
        let count = |dir: &str| {
            let files = fs::read_dir(self.dir.join(dir)).map_or(0, Iterator::count);
            u64::try_from(files).unwrap_or(u64::MAX)
        };
        OnRecord {
            attachments: count("sandboxes"),
            owed: count("owed"),
            unrestored: self.unrestored_names(),
        }
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
        self.check_private()?;
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

    /// Refuses a journal that others than root can write to: a DEL runs what its records name.
    ///
    /// # Errors
    /// Code 109 with the directory and who can write to it.
    pub fn check_private(&self) -> Result<(), JournalError> {
        self.close();
        for dir in [&self.dir, &self.sandboxes()] {
            private_dir::check(dir).map_err(|cause| JournalError::Exposed {
                path: dir.display().to_string(),
                cause: cause.to_string(),
            })?;
        }
        Ok(())
    }

    /// Closes the directory to other users where it is open to them and holds nothing of others:
    /// kubelet makes the directory of a mount with mode 0755, and a program that the agent puts into its
    /// part of it is for nobody to run.
    fn close(&self) {
        // One that others can write to is refused: who knows what they have put there.
        let is_open = fs::symlink_metadata(&self.dir).is_ok_and(|found| {
            let mode = found.mode() & 0o077;
            found.is_dir() && mode != 0 && mode & 0o022 == 0
        });
        let is_ours = |name: &OsStr| {
            let name = name.to_string_lossy();
            OURS.contains(&&*name) || name.starts_with(adopted::ADOPTING)
        };
        let all_ours = || {
            let mut entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
            entries.all(|entry| is_ours(&entry.file_name()))
        };
        if is_open && all_ours() {
            let closed = fs::Permissions::from_mode(0o700);
            // On a file system without modes it stays as it is.
            let _ = fs::set_permissions(&self.dir, closed);
        }
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
        ["sandboxes", "owed", "quarantine"]
            .iter()
            .try_for_each(|name| private_dir::create(&self.dir.join(name)))
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

/// Opens a record. Refuses symlinks, so that a record cannot be outside the journal.
fn open(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    let flags = nix::fcntl::OFlag::O_NOFOLLOW.bits();
    options.read(true).custom_flags(flags).open(path)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut bytes = Vec::with_capacity(8 << 10);
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
