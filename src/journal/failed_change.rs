//! Failed changes of the networks of running pods. The journal contains a marker file for each
//! sandbox whose last change failed. After a pause, a STATUS starts the retry.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::owed::{due_after, is_due, now};
use super::{Journal, JournalError, Key};
use crate::npwg::NetworksDigest;

/// The longest pause between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// The folder of the markers.
pub(super) const FOLDER: &str = "changes";

/// A failed change of networks.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct FailedChange {
    /// The digest of the annotation that Jackfield tried to apply. If the change failed before
    /// Jackfield knew the annotation, this is `NetworksDigest::default()`.
    networks: NetworksDigest,
    /// The number of failed attempts for this annotation.
    attempts: u32,
    /// When the retry is due, in seconds since the epoch.
    due: u64,
}

impl Journal {
    /// Records that Jackfield failed to apply the annotation with the digest `networks`, and
    /// schedules the retry.
    ///
    /// # Errors
    /// Code 109 if the marker cannot be written.
    pub fn fail_change(&self, key: &Key, networks: NetworksDigest) -> Result<(), JournalError> {
        let before = self.failed_change(key);
        let before = before.filter(|failed| failed.networks == networks);
        let attempts = before.map_or(0, |it| it.attempts).saturating_add(1);
        let failed = FailedChange {
            networks,
            attempts,
            due: due_after(attempts, LONGEST_WAIT),
        };
        self.put(FOLDER, &key.file_name(), &failed)
    }

    /// Whether Jackfield may now try to apply the annotation with the digest `networks`. If the
    /// last change failed with the same annotation, or with an unknown annotation, Jackfield must
    /// wait until the retry is due.
    pub fn may_change(&self, key: &Key, networks: &NetworksDigest) -> bool {
        let failed = self.failed_change(key);
        let unknown = NetworksDigest::default();
        let failed = failed.filter(|it| it.networks == *networks || it.networks == unknown);
        failed.is_none_or(|failed| is_due(failed.due, now(), LONGEST_WAIT))
    }

    /// Removes the marker of the sandbox's failed change, if there is one.
    pub fn settle_change(&self, key: &Key) {
        self.discard(FOLDER, &key.file_name());
    }

    fn failed_change(&self, key: &Key) -> Option<FailedChange> {
        self.get(FOLDER, &key.file_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    fn key() -> Key {
        Key {
            container: "c1".parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
        }
    }

    #[test]
    fn golden_failed_change_is_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        let failed = FailedChange {
            networks: NetworksDigest::of("net-a"),
            attempts: 2,
            due: 1_000_004,
        };
        journal.put(FOLDER, "c1@eth0", &failed).unwrap();
        let written = std::fs::read(dir.path().join("changes/c1@eth0")).unwrap();
        golden::assert_current("failed-change.json", &written);
    }

    #[test]
    fn a_failed_change_waits_unless_the_annotation_changes() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        let (tried, other) = (NetworksDigest::of("net-a"), NetworksDigest::of("net-b"));
        assert!(journal.may_change(&key(), &tried));
        for attempts in 1..4 {
            journal.fail_change(&key(), tried.clone()).unwrap();
            let failed = journal.failed_change(&key()).unwrap();
            assert_eq!(failed.attempts, attempts);
            // The clock may advance by a second between `fail_change` and this line.
            assert!((1..=1 << attempts).contains(&(failed.due - now())));
        }
        assert!(!journal.may_change(&key(), &tried));
        assert!(journal.may_change(&key(), &other));
        journal
            .fail_change(&key(), NetworksDigest::default())
            .unwrap();
        let message = "the failed annotation is unknown, so it may be net-b";
        assert!(!journal.may_change(&key(), &other), "{message}");
        for _ in 0..20 {
            journal.fail_change(&key(), tried.clone()).unwrap();
        }
        let failed = journal.failed_change(&key()).unwrap();
        assert!(failed.due <= now() + 300, "{failed:?}");
        journal.settle_change(&key());
        assert!(journal.may_change(&key(), &tried));
    }
}
