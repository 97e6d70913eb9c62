//! What can happen to a node while Jackfield works on it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{BOOT_ID, Lab, NETNS};
use crate::leftovers::processes_of;
use crate::node::ip;

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

    /// Sets the clock by `seconds`: moves every time in the journal by as much the other way.
    pub(crate) fn set_clock(&self, seconds: i64) {
        for folder in ["owed", "changes"] {
            let files = fs::read_dir(self.journal().join(folder));
            for file in files.into_iter().flatten().flatten() {
                move_times(&file.path(), -seconds);
            }
        }
        for folder in ["sandboxes", "publish", "exclusive"] {
            let files = fs::read_dir(self.journal().join(folder));
            for file in files.into_iter().flatten().flatten() {
                let _ = fs::File::open(file.path()).map(|file| {
                    let years = Duration::from_secs(seconds.unsigned_abs());
                    let now = SystemTime::now();
                    let then = if seconds > 0 {
                        now - years
                    } else {
                        now + years
                    };
                    file.set_modified(then)
                });
            }
        }
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

/// Moves the times in a marker of the journal.
fn move_times(path: &Path, seconds: i64) {
    let Ok(text) = fs::read(path) else { return };
    let Ok(mut marker) = serde_json::from_slice::<Value>(&text) else {
        return;
    };
    for key in ["due", "since"] {
        if let Some(time) = marker[key].as_i64() {
            marker[key] = json!((time + seconds).max(0));
        }
    }
    fs::write(path, marker.to_string()).unwrap();
}
