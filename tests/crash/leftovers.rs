//! What a node holds: to be compared before and after.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::node::ip;

/// Everything on a node that a sandbox could leave behind, a line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holdings(BTreeSet<String>);

impl Holdings {
    /// Looks at the node: links, addresses and routes of the host and of the pod's namespace
    /// `pod` where it is there, the files below `dirs`, and processes that know `container`.
    pub(crate) fn of(pod: Option<&str>, dirs: &[&Path], container: &str) -> Holdings {
        let mut lines = BTreeSet::new();
        let host = ("host", String::new());
        let places = [Some(host), pod.map(|pod| ("pod", format!("-n {pod} ")))];
        for (place, of) in places.into_iter().flatten() {
            links(place, &of, &mut lines);
        }
        for name in ip("netns list").lines() {
            let name = name.split(' ').next().unwrap_or(name);
            lines.insert(format!("netns {name}"));
        }
        for dir in dirs {
            files(dir, &mut lines);
        }
        processes(container, &mut lines);
        Holdings(lines)
    }

    /// What is there now and was not before, and the other way round.
    pub(crate) fn differences(&self, before: &Holdings) -> Vec<String> {
        let new = self
            .0
            .difference(&before.0)
            .map(|line| format!("left behind: {line}"));
        let lost = before
            .0
            .difference(&self.0)
            .map(|line| format!("taken away: {line}"));
        new.chain(lost).collect()
    }
}

/// Links by name, IPv4 addresses and routes. Indices and states come and go by themselves, as do
/// the addresses and routes that IPv6 gives each link.
fn links(place: &str, of: &str, lines: &mut BTreeSet<String>) {
    for line in ip(&format!("{of}-o link")).lines() {
        let name = line
            .split(": ")
            .nth(1)
            .and_then(|name| name.split('@').next());
        lines.insert(format!("{place} link {}", name.unwrap_or(line)));
    }
    for line in ip(&format!("{of}-o -4 addr")).lines() {
        let words: Vec<&str> = line.split_whitespace().skip(1).take(3).collect();
        lines.insert(format!("{place} address {}", words.join(" ")));
    }
    for family in ["-4", "-6"] {
        for line in ip(&format!("{of}{family} route show table all")).lines() {
            let of_ipv6_itself =
                line.starts_with("fe80") || line.starts_with("multicast") || line.contains("fe80");
            if family == "-4" || !of_ipv6_itself {
                let line = line.trim_end().trim_end_matches(" linkdown");
                lines.insert(format!("{place} route {line}"));
            }
        }
    }
}

fn files(dir: &Path, lines: &mut BTreeSet<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files(&path, lines);
        } else {
            lines.insert(format!("file {}", path.display()));
        }
    }
}

/// Delegates carry the container in their environment, their children too.
fn processes(container: &str, lines: &mut BTreeSet<String>) {
    let needle = container.as_bytes();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .windows(needle.len())
            .any(|window| window == needle)
        {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            lines.insert(format!("process {command}"));
        }
    }
}
