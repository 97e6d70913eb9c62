//! Everything that a pod could leave behind on the node.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::node::Node;

/// How long the kernel and the agent may take to clean up.
const CLEAN_WITHIN: Duration = Duration::from_secs(60);

/// What there is, a line each.
#[derive(Debug, Clone)]
pub(super) struct Inventory(BTreeSet<String>);

impl Inventory {
    /// Looks at links, network namespaces, files and processes.
    pub(super) fn of(node: &Node) -> Inventory {
        let id = node.lab.namespace.as_str();
        let mut lines = BTreeSet::new();
        for link in links(id) {
            lines.insert(format!("link {link}"));
        }
        for path in files(Path::new("/run/netns")) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name == id || name.starts_with(&format!("{id}-")) {
                lines.insert(format!("netns {name}"));
            }
        }
        for folder in ["journal", "leases", "ipam", "faults", "cluster"] {
            for path in files(&node.lab.path(folder)) {
                let name = path.file_name().unwrap().to_string_lossy();
                // Where host-local keeps its place.
                if name != "lock" && !name.starts_with("last_reserved_ip") {
                    lines.insert(format!("file {}", path.display()));
                }
            }
        }
        for path in files(Path::new("/run/jackfield/locks")) {
            if path.to_string_lossy().contains(id) {
                lines.insert(format!("file {}", path.display()));
            }
        }
        for (pid, command) in node.processes() {
            lines.insert(format!("process {pid} {command}"));
        }
        Inventory(lines)
    }

    /// How much there is of each kind.
    pub(super) fn summary(&self) -> String {
        let mut counts = BTreeMap::<&str, usize>::new();
        for line in &self.0 {
            let kind = line.split(' ').next().unwrap_or_default();
            *counts.entry(kind).or_default() += 1;
        }
        let counts = counts.iter().map(|(kind, count)| format!("{kind} {count}"));
        counts.collect::<Vec<_>>().join(", ")
    }

    /// Waits until everything is as before. Returns what is not.
    pub(super) fn wait_for(&self, node: &Node) -> Vec<String> {
        let until = Instant::now() + CLEAN_WITHIN;
        loop {
            let now = Inventory::of(node);
            let left = now.0.difference(&self.0);
            let left = left.map(|line| format!("left behind: {line}"));
            let gone = self.0.difference(&now.0);
            let gone = gone.map(|line| format!("taken away: {line}"));
            let different: Vec<String> = left.chain(gone).collect();
            if different.is_empty() || Instant::now() > until {
                return different;
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

/// The names of the links in a network namespace.
fn links(netns: &str) -> Vec<String> {
    let child = Command::new("ip")
        .args(["-n", netns, "-o", "link"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let shown = child.wait_with_output().unwrap().stdout;
    let shown = String::from_utf8(shown).unwrap();
    let names = shown.lines().filter_map(|line| line.split(": ").nth(1));
    names.map(str::to_owned).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found
}
