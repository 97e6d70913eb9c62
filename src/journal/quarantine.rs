//! Quarantine for records that cannot be read. A DEL handles each of them once.
//!
//! ```text
//! quarantine/<container>@<ifname>.<pid>             what was attached is unknown
//! quarantine/<container>@<ifname>.<pid>.detached    a DEL has detached what it could find
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use super::{Journal, JournalError, Key, Lookup};

/// The suffix of a file that a DEL has handled.
pub(super) const SETTLED: &str = ".detached";

impl Journal {
    /// Moves a file that is no record to quarantine.
    pub(super) fn quarantine(&self, path: &Path, cause: &str) -> Result<Lookup, JournalError> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let target = self
            .dir
            .join("quarantine")
            .join(format!("{name}.{}", std::process::id()));
        self.make_dirs()
            .and_then(|()| fs::rename(path, &target))
            .map_err(|error| JournalError::io("cannot be put into quarantine", path, error))?;
        Ok(Lookup::Quarantined {
            file: target.display().to_string(),
            cause: cause.to_owned(),
        })
    }

    /// Whether a record of `key` is in quarantine and no DEL has handled it since.
    pub fn is_lost(&self, key: &Key) -> bool {
        self.aside(key).next().is_some()
    }

    /// Marks the quarantined records of `key` as handled, after a DEL has detached what it could
    /// find. The files stay for later inspection.
    pub fn settle_lost(&self, key: &Key) {
        for path in self.aside(key) {
            let mut settled = path.clone().into_os_string();
            settled.push(SETTLED);
            let _ = fs::rename(&path, settled);
        }
    }

    fn aside(&self, key: &Key) -> impl Iterator<Item = PathBuf> {
        let prefix = format!("{}.", key.file_name());
        fs::read_dir(self.dir.join("quarantine"))
            .into_iter()
            .flatten()
            .flatten()
            .filter(move |entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.starts_with(&prefix) && !name.ends_with(SETTLED)
            })
            .map(|entry| entry.path())
    }
}
