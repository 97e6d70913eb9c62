//! Quarantine for records that cannot be read. The next DEL of the sandbox detaches what it can
//! find without the record, and then renames the file.
//!
//! ```text
//! quarantine/<container>@<ifname>.<pid>             no DEL has handled the record
//! quarantine/<container>@<ifname>.<pid>.detached    a DEL has detached what it could find
//! ```

use std::path::{Path, PathBuf};

use super::files::entries;
use super::{Journal, JournalError, Key, RecordError};
use crate::boot;
use crate::disk;
use crate::private_dir;

/// The suffix of a file that a DEL has handled.
pub(super) const SETTLED: &str = ".detached";

/// A damaged record.
///
/// The message of this error says that the record was moved to quarantine. Do not show the message
/// for a record from [`Journal::survey`], which moves no records.
#[derive(Debug, thiserror::Error)]
#[error("a damaged record ({cause}) was moved to {}", path.display())]
pub struct Damaged {
    /// The current path of the record's file.
    pub path: PathBuf,
    /// Why the file is not a valid record.
    #[source]
    pub cause: RecordError,
}

/// A damaged record that was moved to quarantine, or why it could not be moved.
pub type PutAside = Result<Damaged, JournalError>;

impl Journal {
    /// Moves a damaged record to quarantine.
    pub(super) fn quarantine(&self, path: &Path, cause: RecordError) -> PutAside {
        let folder = self.dir.join("quarantine");
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", boot::process_id()));
        let target = folder.join(name);
        private_dir::or_create(&folder, || disk::rename(path, &target))
            .map_err(|error| JournalError::io("cannot be put into quarantine", path, error))?;
        Ok(Damaged {
            path: target,
            cause,
        })
    }

    /// Whether quarantine contains a record of `key` that no DEL has handled.
    pub fn is_lost(&self, key: &Key) -> bool {
        self.aside(key).next().is_some()
    }

    /// Marks the quarantined records of `key` as handled, after a DEL has detached what it could
    /// find. The files stay for later inspection.
    pub fn settle_lost(&self, key: &Key) {
        for path in self.aside(key) {
            let mut settled = path.clone().into_os_string();
            settled.push(SETTLED);
            let _ = disk::rename(&path, Path::new(&settled));
        }
    }

    fn aside(&self, key: &Key) -> impl Iterator<Item = PathBuf> {
        let prefix = format!("{}.", key.file_name());
        let files = entries(&self.dir.join("quarantine")).unwrap_or_default();
        files.into_iter().filter_map(move |file| {
            let name = file.file_name();
            let name = name.to_string_lossy();
            let is_lost = name.starts_with(&prefix) && !name.ends_with(SETTLED);
            is_lost.then(|| file.path())
        })
    }
}
