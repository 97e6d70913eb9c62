//! The processes of a soak.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::node::Node;

/// How long a STATUS takes to start a change.
const STARTS_WITHIN: Duration = Duration::from_millis(500);
/// How often to look for it.
const GLANCE: Duration = Duration::from_millis(10);

impl Node {
    /// The processes that work for the soak's pods: the plugin, its workers, its delegates.
    pub(super) fn processes(&self) -> Vec<(Pid, String)> {
        let needle = self.container_id("p");
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|it| it.parse().ok()) else {
                continue;
            };
            let text = |file: &str| {
                let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let command = text("cmdline");
            if command.contains(&needle) || text("environ").contains(&needle) {
                found.push((Pid::from_raw(pid), command));
            }
        }
        found
    }

    /// Kills the process that changes the networks of a container, if there is one soon.
    pub(super) fn kill_change(&self, container: &str) {
        let command = format!(" change {} ", self.container_id(container));
        let until = Instant::now() + STARTS_WITHIN;
        while Instant::now() < until {
            let processes = self.processes();
            let change = processes.iter().find(|(_, it)| it.contains(&command));
            if let Some((pid, _)) = change {
                if kill(*pid, Signal::SIGKILL).is_ok() {
                    self.report.fault("change killed");
                }
                return;
            }
            thread::sleep(GLANCE);
        }
    }
}
