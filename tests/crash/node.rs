//! A node of its own for one thread: network and mount namespaces that end with it.

use std::process::Command;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

/// Puts the calling thread, and whatever it starts, on a node of its own with one uplink,
/// `uplink0`. The thread must not do anything else afterwards.
pub(crate) fn enter() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "network namespaces need root: run scripts/test as root"
    );
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).unwrap();
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
    for (dir, mode) in [("/run/netns", "mode=0755"), ("/run/jackfield", "mode=0700")] {
        std::fs::create_dir_all(dir).unwrap();
        mount(
            Some("tmpfs"),
            dir,
            Some("tmpfs"),
            MsFlags::empty(),
            Some(mode),
        )
        .unwrap();
    }
    // `ip netns` marks it so by itself otherwise, with a mount of its own over it.
    mount(none, "/run/netns", none, MsFlags::MS_SHARED, none).unwrap();
    ip("link set lo up");
    ip("link add uplink0 type veth peer name switch0");
    ip("link set uplink0 up");
    ip("link set switch0 up");
}

/// Runs `ip` with words and gives what it printed.
pub(crate) fn ip(words: &str) -> String {
    let done = Command::new("ip").args(words.split(' ')).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "ip {words}: {said}");
    String::from_utf8_lossy(&done.stdout).into_owned()
}
