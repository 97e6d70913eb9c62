//! Everything that an attachment could leave behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Lab, Netns};

/// How long the kernel may take to take away what goes with a vanished netns.
const SETTLES_WITHIN: Duration = Duration::from_secs(30);

/// Folders outside of a lab in which Jackfield and the reference plugins keep files by container.
const OUTSIDE: [&str; 3] = ["/run/jackfield", "/run/cni", "/var/lib/cni"];

/// The part of a line that marks it as one on a process.
const PROCESS: &str = " process ";

/// What is there: one line for each link, route, lease, record, lock and process.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Leftovers(BTreeSet<String>);

impl Leftovers {
    pub(super) fn look(lab: &Lab) -> Leftovers {
        let mut lines = BTreeSet::new();
        for netns in [&lab.node, &lab.pod] {
            if !netns.is_gone() {
                links(netns, &mut lines);
            }
            for (pid, command) in netns.processes() {
                lines.insert(format!("{}{PROCESS}{pid} {command}", netns.name()));
            }
        }
        for folder in ["journal", "ipam", "devinfo"] {
            files(&lab.path(folder), &mut lines);
        }
        let container = lab.container();
        lines.extend(outside(&container).map(|path| format!("file {}", path.display())));
        Leftovers(lines)
    }

    /// The lines without those on processes. The namespaces of a new lab have no processes of their
    /// own, but a Jackfield of another test may enter them for a moment, in search of devices.
    pub(super) fn without_processes(mut self) -> Leftovers {
        self.0.retain(|line| !line.contains(PROCESS));
        self
    }

    /// The lines that hold `word`.
    pub(crate) fn with(&self, word: &str) -> Vec<&str> {
        let lines = self.0.iter().map(String::as_str);
        lines.filter(|line| line.contains(word)).collect()
    }

    pub(super) fn assert_without(words: &[&str], look: impl Fn() -> Leftovers) {
        let since = Instant::now();
        loop {
            let now = look();
            let left: Vec<&str> = words.iter().flat_map(|word| now.with(word)).collect();
            if left.is_empty() {
                return;
            }
            assert!(since.elapsed() < SETTLES_WITHIN, "left behind: {left:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(super) fn assert_same(&self, look: impl Fn() -> Leftovers) {
        let since = Instant::now();
        loop {
            let now = look();
            let left: Vec<&String> = now.0.difference(&self.0).collect();
            let missing: Vec<&String> = self.0.difference(&now.0).collect();
            if left.is_empty() && missing.is_empty() {
                return;
            }
            assert!(
                since.elapsed() < SETTLES_WITHIN,
                "left behind: {left:#?}\nmissing: {missing:#?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The files outside of the lab that belong to its container.
pub(super) fn outside(container: &str) -> impl Iterator<Item = PathBuf> {
    let mut found = BTreeSet::new();
    OUTSIDE
        .iter()
        .for_each(|folder| walk(Path::new(folder), &mut found));
    let container = container.to_owned();
    found.into_iter().filter(move |path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().contains(&container)
    })
}

/// Links with their properties, and routes. The reference plugin leaves its bridge on the node on
/// purpose, so a bridge without ports is nobody's leftover.
fn links(netns: &Netns, lines: &mut BTreeSet<String>) {
    let shown = netns.show("addr show");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let has_ports = |bridge: &Value| shown.iter().any(|link| link["master"] == bridge["ifname"]);
    let idle: Vec<String> = shown
        .iter()
        .filter(|link| link["linkinfo"]["info_kind"] == "bridge" && !has_ports(link))
        .map(|link| text(&link["ifname"]))
        .collect();
    let name = netns.name();
    for link in &shown {
        let ifname = text(&link["ifname"]);
        if idle.contains(&ifname) {
            continue;
        }
        let flags = link["flags"].as_array().into_iter().flatten();
        let up = if flags.into_iter().any(|flag| flag == "UP") {
            "up"
        } else {
            "down"
        };
        lines.insert(format!(
            "{name} link {ifname} {} mtu {} {up}",
            text(&link["address"]),
            link["mtu"]
        ));
        for address in link["addr_info"].as_array().into_iter().flatten() {
            lines.insert(format!(
                "{name} address {ifname} {}/{}",
                text(&address["local"]),
                address["prefixlen"]
            ));
        }
    }
    for family in ["-4", "-6"] {
        for route in netns.show(&format!("{family} route show")) {
            let device = text(&route["dev"]);
            if !idle.contains(&device) {
                lines.insert(format!(
                    "{name} route {} via {} dev {device} metric {}",
                    route["dst"], route["gateway"], route["metric"]
                ));
            }
        }
    }
}

/// Files below a folder, without those in which host-local keeps its place.
fn files(folder: &Path, lines: &mut BTreeSet<String>) {
    let mut found = BTreeSet::new();
    walk(folder, &mut found);
    for path in found {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name != "lock" && !name.starts_with("last_reserved_ip") {
            lines.insert(format!("file {}", path.display()));
        }
    }
}

fn walk(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), found),
            _ => {
                found.insert(entry.path());
            }
        }
    }
}
