use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

use std::io::Write;

use super::*;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(2)
}

fn container() -> ContainerId {
    "c1".parse().unwrap()
}

#[test]
fn a_released_lock_leaves_no_file_behind() {
    let dir = tempfile::tempdir().unwrap();
    drop(Lock::take(&dir.path().join("locks"), &container(), soon()).unwrap());
    assert_eq!(fs::read_dir(dir.path().join("locks")).unwrap().count(), 0);
}

// clause: CNI-1.1.0 §3 serial
// clause: CNI-1.1.0 §3 concurrent: each container has its own lock
// clause: NPWG-1.3 §7.3
#[test]
fn a_call_waits_until_an_earlier_call_releases_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let first = Lock::take(dir.path(), &container(), soon()).unwrap();
    // The file contains the process ID of this process, but `holds` works only for other processes.
    // So the test writes the ID of a child to the file. The child has inherited the lock.
    let mut child = Command::new("sleep").arg("5").spawn().unwrap();
    fs::write(&first.path, child.id().to_string()).unwrap();
    let error = Lock::take(dir.path(), &container(), soon()).unwrap_err();
    assert!(
        error.to_string().contains(&child.id().to_string()),
        "{error}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    drop(first);
    Lock::take(dir.path(), &container(), soon()).unwrap();
}

/// Starts a process that holds the lock of a Jackfield process that no longer exists.
fn orphan_in(dir: &Path, work: &str) -> std::process::Child {
    let dead = open(dir, &dir.join("c1.lock")).unwrap();
    dead.lock().unwrap();
    fcntl(&dead, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    (&dead).write_all(b"1999999999").unwrap();
    let mut orphan = Command::new("sh");
    orphan.args(["-c", work]).process_group(0).spawn().unwrap()
}

#[test]
fn an_orphan_that_does_not_finish_in_time_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut orphan = orphan_in(dir.path(), "sleep 60; true");
    let by = Instant::now() + Duration::from_secs(3);
    drop(Lock::take(dir.path(), &container(), by).unwrap());
    let status = orphan.wait().unwrap();
    assert_eq!(status.signal(), Some(9), "the call killed the orphan");
}

#[test]
fn a_lock_is_orphaned_if_only_old_orphans_hold_it() {
    let dir = tempfile::tempdir().unwrap();
    let is_orphaned = |age| Lock::is_orphaned(dir.path(), &container(), Duration::from_secs(age));
    assert!(!is_orphaned(0), "there is no lock");
    let mut orphan = orphan_in(dir.path(), "sleep 60; true");
    assert!(Lock::take_if_free(dir.path(), &container()).is_none());
    assert!(is_orphaned(0) && !is_orphaned(60));
    let path = dir.path().join("c1.lock");
    assert!(!has_owner(&path));
    // The file now names a process that runs and has the lock.
    fs::write(&path, orphan.id().to_string()).unwrap();
    assert!(has_owner(&path) && !is_orphaned(0));
    orphan.kill().unwrap();
    orphan.wait().unwrap();
}

#[test]
fn an_orphan_of_a_dead_lock_holder_gets_time_to_finish() {
    let dir = tempfile::tempdir().unwrap();
    let mut orphan = orphan_in(dir.path(), "sleep 0.1");
    let by = Instant::now() + Duration::from_secs(3);
    drop(Lock::take(dir.path(), &container(), by).unwrap());
    assert!(
        orphan.wait().unwrap().success(),
        "the orphan ended by itself"
    );
}

#[test]
fn waiting_for_a_held_turn_ends_at_the_deadline() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("locks");
    let turn = Turn::take(&dir, soon()).unwrap();
    let begun = Instant::now();
    let error = Turn::take(&dir, soon()).unwrap_err();
    assert!(matches!(error, LockError::Busy { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    drop(turn);
    Turn::take(&dir, soon()).unwrap();
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn a_lock_directory_that_other_users_can_change_is_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let base = tempfile::tempdir().unwrap();
    let (dir, link) = (base.path().join("locks"), base.path().join("link"));
    private_dir::create(&dir).unwrap();
    symlink(&dir, &link).unwrap();
    for (dir, mode) in [(&dir, 0o777), (&link, 0o700)] {
        fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
        assert!(Lock::take(dir, &container(), soon()).is_err(), "{mode:o}");
        assert!(Turn::take(dir, soon()).is_err(), "{mode:o}");
    }
}
