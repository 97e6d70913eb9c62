//! A node for one thread: network and mount namespaces that end with the thread.

use std::path::Path;
use std::process::Command;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

const NONE: Option<&str> = None;

/// Puts the calling thread, and everything that it starts, on its own node with one uplink,
/// `uplink0`. The thread must not do anything else afterwards.
pub(crate) fn enter() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "network namespaces need root: run scripts/test as root"
    );
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE).unwrap();
    for (dir, mode) in [("/run/netns", "mode=0755"), ("/run/jackfield", "mode=0700")] {
        std::fs::create_dir_all(dir).unwrap();
        let kind = Some("tmpfs");
        mount(kind, dir, kind, MsFlags::empty(), Some(mode)).unwrap();
    }
    // Otherwise `ip netns` does the same, with another mount over this one.
    mount(NONE, "/run/netns", NONE, MsFlags::MS_SHARED, NONE).unwrap();
    ip("link set lo up");
    ip("link add uplink0 type veth peer name switch0");
    ip("link set uplink0 up");
    ip("link set switch0 up");
}

/// Makes `path` show the content of `file`, on the node of the calling thread.
pub(crate) fn mount_over(file: &Path, path: &Path) {
    mount(Some(file), path, NONE, MsFlags::MS_BIND, NONE).unwrap();
}

/// Runs `ip` with words and returns what it printed.
pub(crate) fn ip(words: &str) -> String {
    let done = Command::new("ip").args(words.split(' ')).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "ip {words}: {said}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}
