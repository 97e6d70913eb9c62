//! Failed detachments, which Jackfield retries even if the runtime does not repeat the DEL.
//!
//! Jackfield cannot rely on the runtime to repeat a failed DEL. So each DEL and each STATUS starts
//! one retry, if a retry is due. Every failed detachment has a file, its marker. The directory of
//! the markers is usually empty, so the search for a due retry is cheap.

use std::fs::DirEntry;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::files::parse;
use super::{Journal, JournalError, Key};

use crate::clock;

/// The wait after the first failed attempt, in seconds. Each further failure doubles the wait, up
/// to the longest wait.
const FIRST_WAIT: u64 = 2;
/// The longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// The maximum number of markers that a search for a due retry reads.
const LOOKED_AT: usize = 16;
/// The folder of the markers.
const FOLDER: &str = "owed";

/// A detachment that failed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Owed {
    /// The key of the record.
    #[serde(flatten)]
    pub key: Key,
    /// The number of failed attempts.
    pub attempts: u32,
    /// When the retry is due, in seconds since the epoch.
    due: u64,
    /// When the first attempt failed, in seconds since the epoch.
    #[serde(default = "now")]
    since: u64,
    /// The cause of the last failure.
    pub cause: String,
}

impl Owed {
    fn is_due(&self, now: u64) -> bool {
        is_due(self.due, now, LONGEST_WAIT)
    }

    /// Whether the first attempt failed more than `age` ago.
    pub fn is_older_than(&self, age: Duration) -> bool {
        now().saturating_sub(self.since) > age.as_secs()
    }
}

impl Journal {
    /// Marks the detachment of `key` as failed and schedules its next retry.
    ///
    /// # Errors
    /// Code 109 if the marker cannot be written. The record itself stays, so the next DEL can still
    /// detach the sandbox.
    pub fn owe(&self, key: &Key, cause: &str) -> Result<Owed, JournalError> {
        let before = self.owed(key);
        let since = before.as_ref().map_or_else(now, |owed| owed.since);
        let attempts = before.map_or(0, |owed| owed.attempts).saturating_add(1);
        let owed = Owed {
            key: key.clone(),
            attempts,
            due: due_after(attempts, LONGEST_WAIT),
            since,
            cause: cause.to_owned(),
        };
        self.put(FOLDER, &key.file_name(), &owed)?;
        Ok(owed)
    }

    /// Whether the caller may start a retry of `key`. If a retry is due, sets the due time to the
    /// current time plus `by`, so that no other call starts the same retry. Limits `by` to the
    /// longest wait. Returns false if no retry is due, or if the new due time cannot be written.
    /// The caller must hold the container's lock.
    pub fn postpone(&self, key: &Key, by: Duration) -> bool {
        let now = now();
        let owed = self.owed(key).filter(|owed| owed.is_due(now));
        owed.is_some_and(|owed| {
            let due = now.saturating_add(by.min(LONGEST_WAIT).as_secs());
            self.put(FOLDER, &key.file_name(), &Owed { due, ..owed })
                .is_ok()
        })
    }

    /// Removes the marker of `key`, so that Jackfield does not retry the detachment any more.
    pub fn settle_owed(&self, key: &Key) {
        self.discard(FOLDER, &key.file_name());
    }

    /// Returns the failed detachment of `key`, if there is one.
    pub fn owed(&self, key: &Key) -> Option<Owed> {
        self.get(FOLDER, &key.file_name())
    }

    /// Returns all failed detachments, in no particular order.
    pub fn all_owed(&self) -> Vec<Owed> {
        self.all(FOLDER).collect()
    }

    /// Returns one failed detachment whose retry is due. `but` is the key of a sandbox to skip.
    pub fn due(&self, but: Option<&Key>) -> Option<Owed> {
        self.due_at(now(), but)
    }

    /// Reads at most [`LOOKED_AT`] markers. If there are more markers, begins at a different marker
    /// each second. If the search always began at the first marker, it might never find a later
    /// marker that is due.
    fn due_at(&self, now: u64, but: Option<&Key>) -> Option<Owed> {
        let mut markers: Vec<DirEntry> = self.finished(FOLDER).collect();
        let count = markers.len().max(1);
        let first = usize::try_from(now).unwrap_or_default() % count * LOOKED_AT % count;
        markers.rotate_left(first);
        let owed = markers.iter().take(LOOKED_AT);
        owed.filter_map(|marker| parse::<Owed>(&marker.path()))
            .find(|owed| owed.is_due(now) && Some(&owed.key) != but)
    }
}

/// Returns when the retry is due after this number of failed attempts. The time is in seconds since
/// the epoch.
pub(super) fn due_after(attempts: u32, longest: Duration) -> u64 {
    let wait = FIRST_WAIT << attempts.saturating_sub(1).min(15);
    now().saturating_add(wait.min(longest.as_secs()))
}

/// Whether a retry is due. `due` and `now` are seconds since the epoch. Jackfield sets `due` at
/// most `longest` ahead. If `due` is further ahead, the clock was set back, and the retry is due.
pub(super) fn is_due(due: u64, now: u64, longest: Duration) -> bool {
    due <= now || due - now > longest.as_secs()
}

/// The time in seconds since the epoch.
pub(super) fn now() -> u64 {
    clock::time_of_day()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::golden;

    fn key(container: &str) -> Key {
        Key {
            container: container.parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
        }
    }

    fn example() -> Owed {
        Owed {
            key: key("c1"),
            attempts: 3,
            due: 1_000_008,
            since: 1_000_000,
            cause: "demo/n (net1): plugin ptp failed on DEL".to_owned(),
        }
    }

    #[test]
    fn golden_owed_detachment_is_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        let owed = example();
        journal.put(FOLDER, &owed.key.file_name(), &owed).unwrap();
        let written = fs::read(dir.path().join("owed/c1@eth0")).unwrap();
        golden::assert_current("owed.json", &written);
    }

    #[test]
    fn golden_owed_detachment_of_the_previous_release_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        fs::create_dir(dir.path().join("owed")).unwrap();
        let text = golden::previous("owed.json");
        fs::write(dir.path().join("owed/c1@eth0"), text).unwrap();
        let (read, expected) = (journal.owed(&example().key), example());
        assert_eq!(format!("{:?}", read.unwrap()), format!("{expected:?}"));
    }

    #[test]
    fn waiting_detachments_do_not_hide_one_that_is_due() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        fs::create_dir(dir.path().join("owed")).unwrap();
        let now = 1_000_000;
        for number in 0..3 * LOOKED_AT {
            let owed = Owed {
                key: key(&format!("c{number}")),
                due: now + 100,
                ..example()
            };
            journal.put(FOLDER, &owed.key.file_name(), &owed).unwrap();
        }
        // Change the file in place, so that it stays last in the folder.
        let last = journal.finished(FOLDER).last().unwrap().path();
        let text = fs::read_to_string(&last).unwrap();
        fs::write(&last, text.replace("1000100", "1000000")).unwrap();
        let found = (now..now + 10).find_map(|now| journal.due_at(now, None));
        assert_eq!(found.unwrap().due, now);
    }

    #[test]
    fn setting_the_clock_back_delays_no_retry_beyond_the_longest_wait() {
        let owed = Owed {
            key: key("c"),
            attempts: 1,
            due: 1_000_000,
            since: 1_000_000,
            cause: String::new(),
        };
        let table = [
            (1_000_000, true),
            (999_999, false),
            (999_400, false),
            (999_399, true),
            (0, true),
        ];
        for (now, expected) in table {
            assert_eq!(owed.is_due(now), expected, "{now}");
        }
    }
}
