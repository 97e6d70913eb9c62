//! Records that cannot be read: put aside, named, and seen to once.
//!
//! ```text
//! quarantine/<container>@<ifname>.<pid>             what was attached is not known any more
//! quarantine/<container>@<ifname>.<pid>.detached    it was detached as far as it could be known
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use super::{Journal, JournalError, Key, Lookup};

/// The ending of what a DEL has seen to.
pub(super) const SETTLED: &str = ".detached";

impl Journal {
    /// Puts a file aside that is no record.
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
            .map_err(|error| JournalError::io("cannot be put into quarantine", path, &error))?;
        Ok(Lookup::Quarantined {
            file: target.display().to_string(),
            cause: cause.to_owned(),
        })
    }

    /// Whether a record of `key` was put aside and nobody has detached since what it was about.
    pub fn is_lost(&self, key: &Key) -> bool {
        self.aside(key).next().is_some()
    }

    /// What the records of `key` that were put aside were about is detached, as far as it could
    /// be known. The files stay for whoever wants to know why.
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
