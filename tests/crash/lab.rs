//! One pod with three networks on one node: bridge and host-local as the cluster network, macvlan
//! with static addresses and the default route, and ptp with host-local.

mod cluster;
mod commands;
mod disturbances;
#[path = "../netns/lab/plugins.rs"]
mod plugins;
mod stopped;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::node::{self, ip};
use crate::table::call::{Call, Verb};
use crate::table::leftovers::Holdings;
pub(crate) use commands::bad_end;
pub(crate) use disturbances::NETWORKS;

const NETNS: &str = "pod";
/// Where the kernel shows the ID of the boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The time in which the kernel destroys a network namespace that has no user.
const NETNS_ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Writes the binary under test to `dir`, without what only a debugger reads, because `install`
/// copies it. Returns its path.
pub(crate) fn stripped_program(dir: &Path) -> PathBuf {
    let program = dir.join("jackfield");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&program);
    let done = strip.arg(env!("CARGO_BIN_EXE_jackfield")).status().unwrap();
    assert!(done.success(), "strip: {done}");
    program
}

/// The lab of the thread that set it up.
#[derive(Debug)]
pub(crate) struct Lab {
    dir: TempDir,
    /// What the test itself writes: not part of the node.
    control: TempDir,
    /// The binary under test.
    program: PathBuf,
    container: String,
    before: Holdings,
}

impl Lab {
    /// Puts the calling thread on its own node and sets everything up. Attaches and detaches a pod
    /// once, so that the plugins' own files exist.
    pub(crate) fn set_up(program: &Path) -> Lab {
        static LABS: AtomicUsize = AtomicUsize::new(0);
        node::enter();
        let [dir, control] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let number = LABS.fetch_add(1, Ordering::Relaxed);
        // All of the same width, so that no ID is the beginning of another.
        let container = format!("crash-{}-{number:04}", std::process::id());
        let mut lab = Lab {
            dir,
            control,
            program: program.to_owned(),
            container,
            before: Holdings::default(),
        };
        fs::copy(BOOT_ID, lab.control("boot_id")).unwrap();
        node::mount_over(&lab.control("boot_id"), Path::new(BOOT_ID));
        lab.write_files();
        lab.fresh_netns();
        for verb in [Verb::Add, Verb::Del] {
            lab.act(verb);
        }
        lab.before = lab.holdings();
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn control(&self, name: &str) -> PathBuf {
        self.control.path().join(name)
    }

    /// The directory of the journal.
    pub(crate) fn journal(&self) -> PathBuf {
        self.path("journal")
    }

    /// The record of the sandbox.
    pub(crate) fn record(&self) -> PathBuf {
        let name = format!("{}@eth0", self.container);
        self.journal().join("sandboxes").join(name)
    }

    /// Makes a network namespace for the sandbox, as the runtime does.
    pub(crate) fn fresh_netns(&self) {
        self.delete_netns();
        ip(&format!("netns add {NETNS}"));
    }

    /// Deletes the sandbox's network namespace, as the runtime does.
    pub(crate) fn delete_netns(&self) {
        if netns_path().exists() {
            ip(&format!("netns del {NETNS}"));
        }
    }

    /// What is there now and was not there before the pod, and the other way round. With
    /// `patience`, waits for the end of namespaces and workers, which takes the kernel a moment.
    pub(crate) fn leftovers(&self, patience: bool) -> Vec<String> {
        let since = Instant::now();
        loop {
            if !netns_path().exists() {
                self.fresh_netns();
            }
            let differences = self.holdings().differences(&self.before);
            // Nothing changes these files on its own.
            let is_final = differences.iter().all(|line| is_left_to_gc(line));
            if is_final || !patience || since.elapsed() > NETNS_ENDS_WITHIN {
                return differences;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn holdings(&self) -> Holdings {
        let dirs = ["/run/jackfield", "/run/netns"].map(Path::new);
        let dirs = [&[self.dir.path()], &dirs[..]].concat();
        Holdings::of(None, Some(NETNS), &dirs, &self.container)
    }

    /// Removes the damaged records that a DEL has handled. They stay for a look by people.
    pub(crate) fn empty_quarantine(&self) {
        let files = fs::read_dir(self.journal().join("quarantine"));
        for file in files.into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|end| end == "detached") {
                fs::remove_file(file.path()).unwrap();
            }
        }
    }

    /// Starts again after a finding, so that one finding does not cause the next.
    pub(crate) fn start_anew(&mut self) {
        self.end_processes();
        self.heal();
        let _ = self.attempt(Call::of(Verb::Uninstall));
        self.write_files();
        self.fresh_netns();
        for dir in [
            self.journal(),
            "/run/jackfield/locks".into(),
            self.path("ipam"),
        ] {
            let _ = fs::remove_dir_all(dir);
        }
        for verb in [Verb::Mend, Verb::SelectFirst, Verb::Add, Verb::Del] {
            self.act(verb);
        }
        self.before = self.holdings();
    }
}

/// Whether this is a file that Jackfield leaves to the next GC, because it does no harm: a lock that
/// nobody holds, or a reservation for a sandbox without a record.
pub(crate) fn is_left_to_gc(difference: &str) -> bool {
    let is_file = difference.starts_with("left behind: file ");
    is_file && (difference.contains("/run/jackfield/locks/") || difference.contains("/exclusive/"))
}

fn netns_path() -> PathBuf {
    Path::new("/run/netns").join(NETNS)
}
