//! The records of attached sandboxes. DEL, CHECK and GC learn from a record what is attached.
//!
//! `sandboxes/` has one record for each pair of `CNI_CONTAINERID` and `CNI_IFNAME`. A record is a
//! text file. Each line begins with the length and the checksum of its content. The first line is a
//! header, and each step of a call appends one line. Before Jackfield acts, it writes down what it
//! is about to do. So a process that is killed at any point leaves a record of everything that it
//! may have done. If the line of a step is incomplete or damaged, or if a reboot interrupted the
//! call, a reader assumes that every attachment in the header was started.
//!
//! ```text
//! sandboxes/<container>@<ifname>    header with the intended attachments, then steps
//! owed/<container>@<ifname>         a failed detachment, and when its retry is due
//! quarantine/…                      damaged records
//! adopted/<container>@<ifname>      marks a sandbox whose record was made from Multus' cache
//! exclusive/<kind>-<address>[@…]    a link to the record that has this device, MAC or GUID
//! unrestored/<address>              a device that could not be restored
//! changes/<container>@<ifname>      a failed change of networks, and when its retry is due
//! publish/…                         statuses and events that the API server does not have yet
//! ```
//!
//! The plugin never syncs a record to disk, so a power loss may destroy the record. The power loss
//! also removes the network namespaces, and with them most of what the record describes. But what
//! delegates keep on disk, such as IPAM leases, remains. So that a DEL can release it, the agent
//! syncs the record after the plugin has answered the runtime ([`Journal::lend`]).
//!
//! Only root may write to the directory, because a DEL runs, as root, the plugins in a record.

pub mod adopted;
pub mod entry;
mod error;
pub mod exclusive;
pub mod failed_change;
mod files;
mod key;
pub mod lock;
pub mod multus_cache;
pub mod owed;
mod pending_change;
mod quarantine;
pub mod record;
pub mod steps;
pub mod survey;
pub mod unrestored;
pub mod users;
mod wire;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

pub use entry::Entry;
pub use error::JournalError;
pub use exclusive::Exclusive;
pub use key::Key;
pub use lock::{ChangesLock, Lock, LockError, Turn};
pub use multus_cache::{CachedAttachment, CachedSandbox, MultusCache};
pub use owed::Owed;
pub use pending_change::PendingChange;
pub use quarantine::{Damaged, PutAside};
pub use steps::{Header, Progress, RecordError, RouteChange, Sandbox, Step};
pub use unrestored::Unrestored;
pub use users::DeviceUser;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::cluster::{OnRecord, SandboxNetworks};
use crate::disk;
use crate::kernel::capabilities;
use crate::private_dir;
use crate::regular_file::found;
use files::{entries, replace};

/// The access mode of a descriptor that can be synced, but not read, written or locked.
const NO_ACCESS: i32 = 3;
/// The folders of the journal.
const FOLDERS: [&str; 8] = [
    "sandboxes",
    "owed",
    "quarantine",
    "adopted",
    "exclusive",
    "unrestored",
    "changes",
    "publish",
];
/// A user ID and group ID that no process has: the largest valid ID.
const NOBODYS: u32 = u32::MAX - 1;

/// The directory of the journal.
#[derive(Debug, Clone)]
pub struct Journal {
    dir: PathBuf,
}

impl Journal {
    /// Returns the journal in `dir` without opening anything.
    pub fn new(dir: &Path) -> Journal {
        Journal {
            dir: dir.to_owned(),
        }
    }

    /// Creates the record of a sandbox that is about to be attached. `header` lists every intended
    /// attachment.
    ///
    /// # Errors
    /// CNI error code 109 if the journal is not private, or the record cannot be written. The
    /// caller must then attach nothing.
    pub fn begin(&self, header: &Header) -> Result<Entry, JournalError> {
        self.check_private()?;
        let key = header.key();
        let mut bytes = Vec::with_capacity(4 << 10);
        let encoded = record::append(&mut bytes, header);
        self.replace_record(&key, encoded.map(|()| bytes))
    }

    /// Reads the record of `key`. If the caller does not hold the container's lock, another process
    /// may change the record meanwhile.
    ///
    /// Moves a damaged record to quarantine and returns [`Lookup::Damaged`].
    ///
    /// # Errors
    /// Code 109 if the journal is not private, or if an I/O error prevents reading the record.
    pub fn find(&self, key: &Key) -> Result<Lookup, JournalError> {
        self.check_private()?;
        let path = self.path(key);
        Ok(match Sandbox::read(&path) {
            Ok(sandbox) if sandbox.header.key() == *key => Lookup::Found(Box::new(sandbox)),
            Ok(_) => Lookup::Damaged(self.quarantine(&path, RecordError::Foreign)),
            Err(RecordError::CutOff) => Lookup::CutOff,
            Err(RecordError::Io(cause)) if cause.kind() == io::ErrorKind::NotFound => {
                Lookup::Absent
            }
            Err(RecordError::Io(cause)) => {
                return Err(JournalError::io("cannot be read", &path, cause));
            }
            Err(cause) => Lookup::Damaged(self.quarantine(&path, cause)),
        })
    }

    /// Returns the header of the record of `key`, or `None` if the record is missing or unreadable.
    /// Does not need the container's lock.
    pub fn header(&self, key: &Key) -> Option<Header> {
        let sandbox = Sandbox::read(&self.path(key)).ok()?;
        (sandbox.header.key() == *key).then_some(sandbox.header)
    }

    /// Opens the record of `key` for further steps.
    ///
    /// # Errors
    /// Code 109 if there is no record, or the record cannot be opened.
    pub fn reopen(&self, key: &Key) -> Result<Entry, JournalError> {
        let path = self.path(key);
        Entry::open(&path).map_err(|cause| JournalError::io("cannot be written", &path, cause))
    }

    /// Writes the whole record of a sandbox atomically, and replaces its previous record, if any.
    /// Returns the record, open for further steps. The caller holds the container's lock.
    ///
    /// # Errors
    /// Code 109 if the new record cannot be written. The previous record then stays.
    pub fn write(&self, sandbox: &Sandbox) -> Result<Entry, JournalError> {
        self.replace_record(&sandbox.header.key(), sandbox.to_bytes())
    }

    /// Writes a record atomically. Returns the record, open for further steps.
    fn replace_record(
        &self,
        key: &Key,
        bytes: serde_json::Result<Vec<u8>>,
    ) -> Result<Entry, JournalError> {
        let path = self.path(key);
        // The temporary file is outside `sandboxes/`, so that no reader takes an incomplete file
        // for a record. A killed writer leaves this file. The next writer of the same record
        // replaces it, and `forget` and `sweep_markers` remove it.
        let (folder, temporary) = self.unfinished(failed_change::FOLDER, &key.file_name());
        let write = || {
            let bytes = bytes?;
            private_dir::or_create(&folder, || {
                private_dir::or_create(&self.sandboxes(), || replace(&path, &temporary, &bytes))
            })
        };
        let file = write().map_err(|cause| JournalError::io("cannot be written", &path, cause))?;
        Ok(Entry::at(&path, file))
    }

    /// Removes the record of `key`, and then the markers (the files in `owed/` and `changes/` that
    /// cause retries). The caller must have detached every attachment in the record. If the record
    /// cannot be removed, the markers stay, so that a retry removes the record.
    ///
    /// # Errors
    /// Code 109 if the record exists and cannot be removed.
    pub fn forget(&self, key: &Key) -> Result<(), JournalError> {
        let path = self.path(key);
        found(disk::remove(&path))
            .map_err(|cause| JournalError::io("cannot be removed", &path, cause))?;
        self.settle_owed(key);
        self.settle_change(key);
        Ok(())
    }

    /// Removes the markers (the files in `owed/` and `changes/`) of sandboxes that have no record.
    /// Also removes the temporary files that killed processes left for such sandboxes. `locks` is
    /// the directory of the locks. Skips the files of a sandbox if the container's lock is taken.
    pub fn sweep_markers(&self, locks: &Path) {
        for folder in ["owed", failed_change::FOLDER] {
            for marker in entries(&self.dir.join(folder)).unwrap_or_default() {
                let name = marker.file_name();
                let Some(name) = name.to_str().map(|it| it.trim_start_matches('.')) else {
                    continue;
                };
                let has_record = || fs::symlink_metadata(self.sandboxes().join(name)).is_ok();
                let (container, _) = name.rsplit_once('@').unwrap_or((name, ""));
                let lock = (!has_record()).then(|| Lock::take_named_if_free(locks, container));
                if lock.flatten().is_some() && !has_record() {
                    let _ = disk::remove(&marker.path());
                }
            }
        }
    }

    /// Opens the record of `key` for the agent. With the returned descriptor, the agent can sync
    /// the record, but not read or write it.
    ///
    /// The agent runs as root, but without capabilities. If root owned the record, the agent could
    /// reopen the descriptor for writing through `/proc/self/fd`. So this call changes the record's
    /// owner to a user ID that no process has. The plugin can still write the record, because the
    /// plugin has CAP_DAC_OVERRIDE.
    ///
    /// # Errors
    /// `PermissionDenied` if the plugin lacks CAP_DAC_OVERRIDE. Otherwise an error of the file
    /// system, for example if the file system cannot change owners.
    pub fn lend(&self, key: &Key) -> io::Result<OwnedFd> {
        if !capabilities::overrides_owners() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let flags = OFlag::from_bits_retain(NO_ACCESS) | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let record = nix::fcntl::open(&self.path(key), flags, Mode::empty())?;
        fchown(&record, Some(NOBODYS), Some(NOBODYS))?;
        Ok(record)
    }

    /// Counts the records and the failed detachments, and lists the unrestored devices. Reads only
    /// the names of the files.
    pub fn count(&self) -> OnRecord {
        OnRecord {
            attachments: self.count_finished("sandboxes"),
            owed: self.count_finished("owed"),
            unrestored: self.unrestored_names(),
        }
    }

    /// Returns the key of every record that this call can read. Moves damaged records to
    /// quarantine.
    ///
    /// # Errors
    /// Code 109 if the directory exists, but is not private or cannot be read.
    pub fn keys(&self) -> Result<Vec<Key>, JournalError> {
        Ok(self.keys_and_damaged()?.0)
    }

    /// Returns the same keys as [`Journal::keys`], and the damaged records. Skips a record with an
    /// incomplete header, and a record that cannot be read because of an I/O error.
    ///
    /// # Errors
    /// As [`Journal::keys`].
    pub fn keys_and_damaged(&self) -> Result<(Vec<Key>, Vec<PutAside>), JournalError> {
        self.check_private()?;
        let (mut keys, mut damaged) = (Vec::new(), Vec::new());
        for entry in entries(&self.sandboxes())? {
            let path = entry.path();
            match Sandbox::read(&path) {
                // The key comes from the header, because the file name truncates a long ID.
                Ok(sandbox) => keys.push(sandbox.header.key()),
                // The next ADD or DEL of the sandbox removes a record with an incomplete header.
                Err(RecordError::CutOff | RecordError::Io(_)) => {}
                Err(cause) => damaged.push(self.quarantine(&path, cause)),
            }
        }
        Ok((keys, damaged))
    }

    /// Returns the key of every sandbox whose ADD is complete. Skips records that cannot be read.
    ///
    /// # Errors
    /// As [`Journal::keys`].
    pub fn complete(&self) -> Result<HashSet<Key>, JournalError> {
        self.check_private()?;
        let complete = self.readable()?.filter(|it| it.complete);
        Ok(complete.map(|it| it.header.key()).collect())
    }

    /// Returns every sandbox whose ADD is complete and whose pod is known, with the recorded
    /// digest of the `networks` annotation. If the record has no digest, the sandbox gets
    /// `NetworksDigest::default()`, which matches no annotation. Skips records that cannot be read.
    ///
    /// # Errors
    /// As [`Journal::keys`].
    pub fn networks(&self) -> Result<Vec<SandboxNetworks>, JournalError> {
        self.check_private()?;
        let attached = self.readable()?;
        let attached = attached.filter(|it| it.complete && it.header.pod.is_some());
        let networks = attached.map(|sandbox| SandboxNetworks {
            container: sandbox.header.container,
            ifname: sandbox.header.ifname,
            pod: sandbox.header.pod,
            networks: sandbox.header.networks.unwrap_or_default(),
        });
        Ok(networks.collect())
    }

    /// Reads the records, one at a time. Skips records that cannot be read.
    fn readable(&self) -> Result<impl Iterator<Item = Sandbox> + use<>, JournalError> {
        let records = entries(&self.sandboxes())?.into_iter();
        Ok(records.filter_map(|it| Sandbox::read(&it.path()).ok()))
    }

    /// Creates the directory of the records and checks that an ADD could write to it now.
    ///
    /// # Errors
    /// Code 109 with the directory and the reason.
    pub fn make_ready(&self) -> Result<(), JournalError> {
        let dir = self.sandboxes();
        private_dir::create(&dir)
            .map_err(|cause| JournalError::io("cannot be created", &dir, cause))?;
        self.check_writable()
    }

    /// Removes the folders of the journal, and then its directory.
    ///
    /// # Errors
    /// If the directory cannot be removed, for example because it contains other files.
    pub fn remove(&self) -> io::Result<()> {
        for folder in FOLDERS {
            let _ = fs::remove_dir_all(self.dir.join(folder));
        }
        fs::remove_dir(&self.dir)
    }

    /// Checks the permissions to write the journal, without creating anything.
    ///
    /// # Errors
    /// Code 109 with the directory and the reason.
    pub fn check_writable(&self) -> Result<(), JournalError> {
        self.check_private()?;
        let dir = self.sandboxes();
        let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(&dir);
        let flags = nix::unistd::AccessFlags::W_OK | nix::unistd::AccessFlags::X_OK;
        nix::unistd::access(there, flags)
            .map_err(|cause| JournalError::io("cannot be written", there, cause.into()))
    }

    /// Refuses a journal that users other than root can write to. Before the check, `close` may set
    /// the mode of the directory to 0700.
    ///
    /// # Errors
    /// Code 109 with the directory and the reason.
    pub fn check_private(&self) -> Result<(), JournalError> {
        self.close();
        for dir in [&self.dir, &self.sandboxes()] {
            private_dir::check(dir).map_err(|cause| JournalError::Exposed {
                path: dir.clone(),
                cause,
            })?;
        }
        Ok(())
    }

    /// Removes the access of other users to the directory if the directory contains only folders of
    /// the journal. Kubelet mounts the directory into the agent's pod. If the directory is missing,
    /// kubelet creates it with mode 0755. With this mode, other users could run a set-user-ID
    /// program that a compromised agent puts into `publish`.
    fn close(&self) {
        // If other users can write to the directory, they may already have put files there. This
        // function then changes nothing, and `check_private` refuses the directory.
        let is_open = fs::symlink_metadata(&self.dir).is_ok_and(|found| {
            let mode = found.mode() & 0o077;
            found.is_dir() && mode != 0 && mode & 0o022 == 0
        });
        let is_ours = |name: &OsStr| {
            let name = name.to_string_lossy();
            FOLDERS.contains(&&*name)
        };
        let all_ours = || {
            let mut entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
            entries.all(|entry| is_ours(&entry.file_name()))
        };
        if is_open && all_ours() {
            let closed = fs::Permissions::from_mode(0o700);
            // Ignore the error, because some file systems have no modes.
            let _ = fs::set_permissions(&self.dir, closed);
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.sandboxes().join(key.file_name())
    }

    fn sandboxes(&self) -> PathBuf {
        self.dir.join("sandboxes")
    }
}

/// The result of looking up a record.
#[derive(Debug)]
pub enum Lookup {
    /// The record can be read.
    Found(Box<Sandbox>),
    /// There is no record, for example because Jackfield never attached the sandbox or has detached
    /// it.
    Absent,
    /// The first line of the record is incomplete. Either a power loss destroyed the record, or a
    /// process of an older release was killed while it wrote the first line. The killed process had
    /// not started any plugin yet. The current release writes a new record atomically, so a killed
    /// process leaves no incomplete first line.
    CutOff,
    /// The record is damaged. It is now in quarantine, or could not be moved there.
    Damaged(PutAside),
}

#[cfg(test)]
mod tests;
