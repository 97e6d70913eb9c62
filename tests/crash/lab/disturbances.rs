//! What can happen to a node while Jackfield works on it.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{BOOT_ID, Lab, NETNS};
use crate::node::ip;
use crate::table::leftovers::processes_of;
use crate::table::wall_clock;

/// The networks whose delegates a test can disturb.
pub(crate) const NETWORKS: [&str; 3] = ["cluster", "storage", "management"];

impl Lab {
    /// Makes the delegate of a network run `script`, and limits the time of every delegate.
    pub(crate) fn disturb(&self, network: &str, script: &str, limit: Option<&str>) {
        fs::write(self.control(&format!("fault-{network}")), script).unwrap();
        if let Some(limit) = limit {
            fs::write(self.control("limit"), limit).unwrap();
        }
    }

    /// Notes which networks' delegates run from now on.
    pub(crate) fn watch_delegates(&self) {
        for network in NETWORKS {
            self.disturb(network, ": >$CONTROL/ran-$NETWORK", None);
        }
    }

    /// The networks whose delegates have run, by their number in [`NETWORKS`].
    pub(crate) fn watched_delegates(&self) -> Vec<usize> {
        self.heal();
        let ran = |network| fs::remove_file(self.control(&format!("ran-{network}"))).is_ok();
        let numbered = NETWORKS.iter().enumerate();
        let numbers = numbered.filter_map(|(number, network)| ran(network).then_some(number));
        numbers.collect()
    }

    /// Whether a disturbed delegate has begun.
    pub(super) fn is_disturbed(&self) -> bool {
        self.control("hit").exists()
    }

    /// Makes every delegate the real plugin again. Returns whether a script ran.
    pub(crate) fn heal(&self) -> bool {
        for network in NETWORKS {
            let _ = fs::remove_file(self.control(&format!("fault-{network}")));
        }
        let _ = fs::remove_file(self.control("limit"));
        fs::remove_file(self.control("hit")).is_ok()
    }

    /// Gives every link in the pod's network namespace another name. Returns whether there is one.
    pub(crate) fn rename_pod_links(&self) -> bool {
        let links = ip(&format!("-n {NETNS} -o link"));
        let names = links.lines().filter_map(|line| line.split(": ").nth(1));
        let names = names.filter_map(|name| name.split('@').next());
        let mut renamed = false;
        for name in names.filter(|name| *name != "lo") {
            for words in [
                format!("link set {name} down"),
                format!("link set {name} name x{name}"),
                format!("link set x{name} up"),
            ] {
                // A delegate may remove the link at the same time.
                let words = format!("-n {NETNS} {words}");
                let _ = Command::new("ip").args(words.split(' ')).output().unwrap();
            }
            renamed = true;
        }
        renamed
    }

    /// Gives the uplink another name, or its own name again.
    pub(crate) fn rename_uplink(&self, from: &str, to: &str) {
        ip(&format!("link set {from} down"));
        ip(&format!("link set {from} name {to}"));
        ip(&format!("link set {to} up"));
    }

    /// Sets the wall clock by `seconds`.
    pub(crate) fn set_clock(&self, seconds: i64) {
        wall_clock::set(&self.journal(), seconds);
    }

    /// The node boots again after a power loss: processes, network namespaces and the files in
    /// memory are gone.
    pub(crate) fn boot(&self) {
        self.end_processes();
        self.delete_netns();
        let _ = fs::remove_dir_all("/run/jackfield/locks");
        let id = fs::read_to_string(BOOT_ID).unwrap();
        // Digits follow digits, and letters follow letters.
        let another: String = id.chars().map(next).collect();
        fs::write(self.control("boot_id"), another).unwrap();
    }

    /// Ends every process that works for the sandbox.
    pub(crate) fn end_processes(&self) {
        let since = Instant::now();
        loop {
            let found = processes_of(&self.container);
            if found.is_empty() {
                return;
            }
            assert!(since.elapsed() < Duration::from_secs(20), "{found:?}");
            for (pid, _) in found {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn next(digit: char) -> char {
    match digit {
        '0'..='8' | 'a'..='e' => char::from(digit as u8 + 1),
        '9' => '0',
        'f' => 'a',
        other => other,
    }
}
