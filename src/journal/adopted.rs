//! Marks the sandboxes that Jackfield adopted from the cache of Multus.
//!
//! A sandbox that Multus attached has no record. Jackfield adopts the sandbox: it writes a complete
//! record before it detaches the sandbox. If the DEL fails or is killed, the record allows
//! Jackfield to retry the DEL.
//!
//! The cache of Multus still contains the sandbox after the DEL. A marker keeps another DEL from
//! adopting the sandbox again.
//!
//! ```text
//! adopted/<container>@<ifname>      this sandbox was adopted from the cache of Multus
//! ```

use super::{Journal, JournalError, Key, MultusCache};
use crate::cni::ContainerId;

/// The folder of the markers.
const FOLDER: &str = "adopted";

impl Journal {
    /// Marks a sandbox in the cache of Multus as adopted.
    ///
    /// # Errors
    /// Code 109 if the marker cannot be written.
    pub fn mark_adopted(&self, key: &Key) -> Result<(), JournalError> {
        self.put(FOLDER, &key.file_name(), key)
    }

    /// Whether a sandbox in the cache of Multus was adopted.
    pub fn is_adopted(&self, key: &Key) -> bool {
        self.dir.join(FOLDER).join(key.file_name()).exists()
    }

    /// Returns the container ID of every sandbox that was adopted from the cache of Multus.
    pub fn adopted(&self) -> Vec<ContainerId> {
        self.all(FOLDER).map(|key: Key| key.container).collect()
    }

    /// Removes the markers of sandboxes that the cache of Multus no longer contains.
    pub fn prune_adopted(&self, cache: &MultusCache<'_>) {
        let gone = |key: &Key| !cache.has(&key.container);
        for key in self.all(FOLDER).filter(gone) {
            self.discard(FOLDER, &key.file_name());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cni::CniResult;
    use crate::golden;
    use crate::journal::{Header, Lookup, Progress, Sandbox};

    fn key(container: &str) -> Key {
        Key {
            container: container.parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
        }
    }

    #[test]
    fn an_adopted_sandbox_reads_back_with_every_step() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(&dir.path().join("journal"));
        // {"name":"a","type":"ptp"}
        let delegate = r#"{"Name":"demo/a","Bytes":"eyJuYW1lIjoiYSIsInR5cGUiOiJwdHAifQ=="}"#;
        std::fs::write(dir.path().join("c1"), format!("[{delegate},{delegate}]")).unwrap();
        let cached = MultusCache::new(dir.path()).read(&key("c1"));
        let attachments = cached.attachments.into_iter().map(|one| one.attachment);
        let header = Header::new(&key("c1"), attachments.collect());
        let mut sandbox = Sandbox::planned(header);
        sandbox.complete = true;
        for progress in &mut sandbox.progress {
            *progress = Progress {
                started: true,
                result: Some(CniResult::default()),
                ..Progress::default()
            };
        }
        journal.write(&sandbox).unwrap();
        let Lookup::Found(found) = journal.find(&sandbox.header.key()).unwrap() else {
            panic!("the sandbox is not on record");
        };
        assert!(found.complete);
        assert_eq!(found.to_detach(), [1, 0]);
        assert_eq!(found.header.attachments[1].label, "demo/a");
        assert!(
            found
                .progress
                .iter()
                .all(|progress| progress.result.is_some())
        );
    }

    #[test]
    fn a_marker_stays_as_long_as_the_cache_has_the_sandbox() {
        let dir = tempfile::tempdir().unwrap();
        let cache_dir = dir.path().join("multus");
        std::fs::create_dir(&cache_dir).unwrap();
        std::fs::write(cache_dir.join("there"), "[]").unwrap();
        let cache = MultusCache::new(&cache_dir);
        let journal = Journal::new(&dir.path().join("journal"));
        for container in ["there", "gone"] {
            assert!(!journal.is_adopted(&key(container)));
            journal.mark_adopted(&key(container)).unwrap();
            assert!(journal.is_adopted(&key(container)));
        }
        journal.prune_adopted(&cache);
        assert!(journal.is_adopted(&key("there")));
        assert!(journal.adopted().contains(&key("there").container));
        assert!(!journal.is_adopted(&key("gone")));
    }

    #[test]
    fn golden_adoption_marker_is_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        journal.mark_adopted(&key("c1")).unwrap();
        let written = fs::read(dir.path().join("adopted/c1@eth0")).unwrap();
        golden::assert_current("adopted.json", &written);
    }

    #[test]
    fn golden_adoption_marker_of_the_previous_release_is_read() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("adopted")).unwrap();
        let text = golden::previous("adopted.json");
        fs::write(dir.path().join("adopted/c1@eth0"), text).unwrap();
        let journal = Journal::new(dir.path());
        assert!(journal.is_adopted(&key("c1")));
        assert_eq!(journal.adopted(), ["c1".parse().unwrap()]);
    }
}
