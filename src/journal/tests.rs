//! How the journal handles incomplete and damaged files, and access by other users.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;

fn key() -> Key {
    Key {
        container: "c1".parse().unwrap(),
        ifname: "eth0".parse().unwrap(),
    }
}

fn header() -> Header {
    Header::new(&key(), Vec::new())
}

fn files(dir: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for kind in ["sandboxes", "owed", "changes", "quarantine"] {
        let entries = fs::read_dir(dir.join(kind)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        files.extend(names.map(|name| format!("{kind}/{name}")));
    }
    files
}

#[test]
fn a_record_with_an_incomplete_header_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    journal.begin(&header()).unwrap();
    let path = journal.path(&key());
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(journal.keys().unwrap().is_empty(), "{length} bytes");
        assert!(path.exists(), "listing the keys keeps an incomplete record");
        assert!(matches!(journal.find(&key()).unwrap(), Lookup::CutOff));
        assert!(path.exists(), "the lookup keeps an incomplete record");
        journal.forget(&key()).unwrap();
        assert_eq!(files(dir.path()), [""; 0], "{length} bytes");
    }
    journal.begin(&header()).unwrap();
    assert!(matches!(journal.find(&key()).unwrap(), Lookup::Found(_)));
}

#[test]
fn a_directory_that_other_users_can_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    for exposed in [dir.path(), &dir.path().join("sandboxes")] {
        for (mode, is_private) in [(0o777, false), (0o720, false), (0o755, true), (0o700, true)] {
            journal.begin(&header()).unwrap();
            fs::set_permissions(exposed, fs::Permissions::from_mode(mode)).unwrap();
            let place = format!("{} {mode:o}", exposed.display());
            assert_eq!(journal.make_ready().is_ok(), is_private, "{place}");
            assert_eq!(journal.find(&key()).is_ok(), is_private, "{place}");
            assert_eq!(journal.keys().is_ok(), is_private, "{place}");
            journal.forget(&key()).unwrap();
            assert_eq!(journal.begin(&header()).is_ok(), is_private, "{place}");
            let _ = journal.forget(&key());
            fs::set_permissions(exposed, fs::Permissions::from_mode(0o700)).unwrap();
        }
    }
}

/// The agent runs as root, but without capabilities. If root owned the record, the agent could
/// reopen the descriptor for writing. A lent record therefore has a different owner.
#[test]
fn a_record_lent_to_the_agent_can_be_synced_but_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    journal.begin(&header()).unwrap();
    let Ok(lent) = journal.lend(&key()) else {
        assert!(!nix::unistd::geteuid().is_root());
        return;
    };
    let lent = fs::File::from(lent);
    lent.sync_all().unwrap();
    assert!((&lent).write_all(b"x").is_err());
    let metadata = lent.metadata().unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (NOBODYS, NOBODYS));
    assert!(matches!(journal.find(&key()).unwrap(), Lookup::Found(_)));
    journal.reopen(&key()).unwrap();
    journal.forget(&key()).unwrap();
    assert!(journal.lend(&key()).is_err());
}

#[test]
fn a_record_that_is_a_symlink_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    journal.begin(&header()).unwrap();
    let path = journal.path(&key());
    let elsewhere = dir.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(journal.find(&key()).is_err());
    assert!(journal.keys().unwrap().is_empty());
}

#[test]
fn a_damaged_record_goes_into_quarantine() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    journal.begin(&header()).unwrap();
    let path = journal.path(&key());
    let mut damaged = fs::read(&path).unwrap();
    damaged[30] ^= 1;
    fs::write(&path, damaged).unwrap();
    let found = journal.find(&key()).unwrap();
    let Lookup::Damaged(Ok(Damaged { path: file, cause })) = found else {
        panic!("{found:?}");
    };
    assert!(file.exists() && !path.exists());
    assert!(matches!(cause, RecordError::Damaged), "{cause}");
}

#[test]
fn two_writers_of_a_record_append_their_steps() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    let mut entry = journal.begin(&header()).unwrap();
    let mut other = journal.reopen(&key()).unwrap();
    other.write(&[Step::Started(0)]).unwrap();
    entry.write(&[Step::Complete]).unwrap();
    let record = fs::read_to_string(journal.path(&key())).unwrap();
    let sandbox = Sandbox::replay(record.as_bytes()).unwrap();
    assert!(sandbox.complete && !sandbox.is_torn, "{record}");
    assert_eq!(record.lines().count(), 3, "{record}");
}

#[test]
fn a_write_that_fails_leaves_no_temporary_file() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    fs::create_dir_all(journal.path(&key())).unwrap();
    journal.begin(&header()).unwrap_err();
    assert_eq!(files(dir.path()), ["sandboxes/c1@eth0"]);
}

#[test]
fn removing_a_record_removes_a_half_written_owed_marker() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    journal.begin(&header()).unwrap();
    journal.owe(&key(), "a delegate failed").unwrap();
    fs::write(dir.path().join("owed/.c1@eth0"), "{").unwrap();
    assert_eq!(journal.all_owed().len(), 1);
    journal.forget(&key()).unwrap();
    assert_eq!(files(dir.path()), [""; 0]);
}

#[test]
fn a_record_that_cannot_be_removed_keeps_its_owed_marker() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    journal.owe(&key(), "a delegate failed").unwrap();
    fs::create_dir_all(journal.path(&key())).unwrap();
    assert!(journal.forget(&key()).is_err());
    assert!(journal.owed(&key()).is_some());
}

#[test]
fn a_sweep_removes_only_markers_without_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(dir.path());
    journal.begin(&header()).unwrap();
    journal.owe(&key(), "a delegate failed").unwrap();
    let kept = files(dir.path());
    for marker in [
        "owed/c2@eth0",
        "owed/.c2@eth0",
        "changes/c2@eth0",
        "changes/.c2@eth0",
    ] {
        let path = dir.path().join(marker);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{").unwrap();
    }
    let locks = dir.path().join("locks");
    let taken = Lock::take_if_free(&locks, &"c2".parse().unwrap());
    journal.sweep_markers(&locks);
    assert!(files(dir.path()).len() > kept.len());
    drop(taken);
    journal.sweep_markers(&locks);
    assert_eq!(files(dir.path()), kept);
}

#[test]
fn other_users_lose_access_only_to_a_directory_without_foreign_files() {
    use std::os::unix::fs::PermissionsExt;
    let base = tempfile::tempdir().unwrap();
    let open = |name: &str, holds: &str| {
        let dir = base.path().join(name);
        fs::create_dir_all(dir.join(holds)).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        Journal::new(&dir).check_private().unwrap();
        fs::metadata(&dir).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(open("jackfield", "publish"), 0o700);
    assert_eq!(open("lib", "dpkg"), 0o755);
}
