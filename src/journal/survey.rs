//! Reads the records and the quarantine without changing them.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::files::{entries, read};
use super::quarantine::SETTLED;
use super::{Damaged, Journal, JournalError, Key, RecordError, Sandbox, record};
use crate::boot::boot_id;
use crate::clock;
use crate::cluster::PodName;
use crate::cni::{ContainerId, InterfaceName};
use crate::kernel::PodNetns;

/// The records and the quarantine of a journal.
#[derive(Debug, Default)]
pub struct Survey {
    /// The records that can be read.
    pub records: Vec<Surveyed>,
    /// The files in `sandboxes/` that cannot be read as records.
    pub damaged: Vec<Damaged>,
    /// The files in quarantine.
    pub quarantined: Vec<Quarantined>,
}

impl Survey {
    /// Returns the paths of the unreadable records that no DEL has handled, in `sandboxes/` and in
    /// quarantine.
    pub fn unknown(&self) -> Vec<&Path> {
        let damaged = self.damaged.iter().map(|it| it.path.as_path());
        let aside = self.quarantined.iter().filter(|it| !it.is_settled);
        damaged.chain(aside.map(|it| it.path.as_path())).collect()
    }
}

/// A readable record.
#[derive(Debug)]
pub struct Surveyed {
    /// The content of the record.
    pub sandbox: Sandbox,
    /// The file of the record.
    pub path: PathBuf,
    /// The time since the last write.
    pub age: Duration,
}

/// The part of a [`Header`](super::Header) that identifies the pod, the container and the network
/// namespace. This type omits the attachments, because their configurations may be long.
#[derive(Deserialize)]
struct Owner {
    boot: String,
    container: ContainerId,
    ifname: InterfaceName,
    netns: String,
    netns_id: String,
    pod: Option<PodName>,
}

/// A file in quarantine.
#[derive(Debug)]
pub struct Quarantined {
    /// The file.
    pub path: PathBuf,
    /// Whether a DEL has handled the file.
    pub is_settled: bool,
}

impl Journal {
    /// Reads the records and the quarantine without changing them.
    ///
    /// # Errors
    /// Code 109 if a directory exists and cannot be read.
    pub fn survey(&self) -> Result<Survey, JournalError> {
        let mut survey = Survey::default();
        for entry in self.sorted("sandboxes")? {
            let path = entry.path();
            let age = age(&path);
            match Sandbox::read(&path) {
                Ok(sandbox) => survey.records.push(Surveyed { sandbox, path, age }),
                // Another call removed the record in the meantime.
                Err(RecordError::Io(cause)) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => survey.damaged.push(Damaged { path, cause }),
            }
        }
        for entry in self.sorted("quarantine")? {
            let name = entry.file_name();
            survey.quarantined.push(Quarantined {
                path: entry.path(),
                is_settled: name.to_string_lossy().ends_with(SETTLED),
            });
        }
        Ok(survey)
    }

    /// Whether the journal has a record of `pod` with a key other than `key`.
    pub fn has_other(&self, pod: &PodName, key: &Key) -> bool {
        self.owners().any(|owner| {
            let is_key = owner.container == key.container && owner.ifname == key.ifname;
            owner.pod.as_ref() == Some(pod) && !is_key
        })
    }

    /// Reads the [`Owner`] from each record, one record at a time. Skips unreadable records.
    fn owners(&self) -> impl Iterator<Item = Owner> {
        let files = entries(&self.sandboxes()).unwrap_or_default().into_iter();
        files.filter_map(|file| {
            let bytes = read(&file.path()).ok()?;
            serde_json::from_slice(record::next_line(&mut &bytes[..])?).ok()
        })
    }

    /// Returns the containers whose recorded network namespace has this identity. The kernel may
    /// reuse the identity of a removed namespace, so this method checks that the recorded path
    /// still leads to a namespace with this identity.
    pub fn containers_in(&self, netns_id: &str) -> Vec<ContainerId> {
        // A call may have no namespace, for example a DEL after the runtime removed the namespace.
        if netns_id.is_empty() {
            return Vec::new();
        }
        let is_in = |owner: &Owner| {
            let there = || PodNetns::open(Path::new(&owner.netns));
            owner.netns_id == netns_id
                && owner.boot == boot_id()
                && there().is_ok_and(|netns| netns.id().to_string() == netns_id)
        };
        let owners = self.owners().filter(is_in);
        owners.map(|owner| owner.container).collect()
    }

    /// Lists the files of a folder, sorted by name.
    fn sorted(&self, folder: &str) -> Result<Vec<DirEntry>, JournalError> {
        let mut files = entries(&self.dir.join(folder))?;
        files.sort_by_key(DirEntry::file_name);
        Ok(files)
    }
}

/// Returns the time since the last write to a file; zero if it is unknown.
fn age(path: &Path) -> Duration {
    let changed = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let age = changed.map(|changed| clock::time_of_day().duration_since(changed));
    age.ok().and_then(Result::ok).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Header, Key};

    #[test]
    fn a_survey_reads_the_whole_journal_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        assert!(journal.survey().unwrap().records.is_empty());
        let key = |container: &str| Key {
            container: container.parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
        };
        for container in ["whole", "torn"] {
            let header = Header::new(&key(container), vec![]);
            journal.begin(&header).unwrap();
        }
        let sandboxes = dir.path().join("sandboxes");
        let torn = sandboxes.join("torn@eth0");
        let mut bytes = fs::read(&torn).unwrap();
        bytes.extend_from_slice(b"0000");
        fs::write(&torn, bytes).unwrap();
        fs::write(sandboxes.join("damaged@eth0"), "no record").unwrap();
        fs::create_dir(dir.path().join("quarantine")).unwrap();
        for name in ["a@eth0.1", "b@eth0.1.detached"] {
            fs::write(dir.path().join("quarantine").join(name), "").unwrap();
        }
        for _ in 0..2 {
            let survey = journal.survey().unwrap();
            let names: Vec<(String, bool)> = survey
                .records
                .iter()
                .map(|it| (it.sandbox.header.container.to_string(), it.sandbox.is_torn))
                .collect();
            assert_eq!(
                names,
                [("torn".to_owned(), true), ("whole".to_owned(), false)]
            );
            assert!(survey.damaged[0].path.ends_with("damaged@eth0"));
            let settled: Vec<bool> = survey.quarantined.iter().map(|it| it.is_settled).collect();
            assert_eq!(settled, [false, true]);
            assert!(!matches!(survey.damaged[0].cause, RecordError::CutOff));
            let unknown = survey.unknown();
            assert_eq!(unknown.len(), 2, "{unknown:?}");
        }
    }
}
