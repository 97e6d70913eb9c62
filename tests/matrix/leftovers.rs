//! What a node holds, to be compared before and after.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Everything on a node that a sandbox could leave behind, one line each. Settings of virtual
/// functions are missing, because no network namespace has them: `hw-tests` compares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holdings(BTreeSet<String>);

impl Holdings {
    /// Looks at links, addresses and routes in the network namespaces `host` and `pod` (the host's is
    /// that of the calling thread if it has no name), the files below `dirs`, and the processes that
    /// work for `container`.
    pub(crate) fn of(
        host: Option<&str>,
        pod: Option<&str>,
        dirs: &[&Path],
        container: &str,
    ) -> Holdings {
        let mut lines = BTreeSet::new();
        links("host", host, &mut lines);
        if pod.is_some() {
            links("pod", pod, &mut lines);
        }
        for dir in dirs {
            files(dir, &mut lines);
        }
        for (_, command) in processes_of(container) {
            lines.insert(format!("process {command}"));
        }
        Holdings(lines)
    }

    /// What is there now and was not there before, and the other way round.
    pub(crate) fn differences(&self, before: &Holdings) -> Vec<String> {
        let new = self.0.difference(&before.0);
        let new = new.map(|line| format!("left behind: {line}"));
        let lost = before.0.difference(&self.0);
        let lost = lost.map(|line| format!("taken away: {line}"));
        new.chain(lost).collect()
    }
}

/// Links by name, addresses and routes, and the MAC and MTU of the uplink. Indices and states
/// change on their own, and so do the addresses and routes that IPv6 gives each link.
fn links(place: &str, netns: Option<&str>, lines: &mut BTreeSet<String>) {
    let of: Vec<&str> = netns.map_or_else(Vec::new, |netns| vec!["-n", netns]);
    let batch = "link show\naddr show\nroute show table all\n";
    for line in ip_lines(&[&of[..], &["-o", "-4", "-batch", "-"]].concat(), batch) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let line = match words.as_slice() {
            [index, name, "inet", address, ..] if is_index(index) => {
                format!("{place} address {name} {address}")
            }
            [index, name, rest @ ..] if is_index(index) => {
                let name = name.trim_end_matches(':').split('@').next();
                let name = name.unwrap_or_default();
                let settings = if name == "uplink0" { rest } else { &[] };
                format!("{place} link {name}{}", settings_of(settings))
            }
            _ => format!("{place} route {}", words.join(" ")),
        };
        lines.insert(line.trim_end_matches(" linkdown").to_owned());
    }
    let batch = "route show table all\n";
    for line in ip_lines(&[&of[..], &["-o", "-6", "-batch", "-"]].concat(), batch) {
        if !line.starts_with("multicast") && !line.contains("fe80") && !line.contains("ff00") {
            let line = line.trim_end().trim_end_matches(" linkdown");
            lines.insert(format!("{place} route {line}"));
        }
    }
}

fn is_index(word: &str) -> bool {
    let digits = word.strip_suffix(':').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn settings_of(words: &[&str]) -> String {
    let pairs = words.windows(2);
    let pairs = pairs.filter(|pair| matches!(pair[0], "mtu" | "link/ether"));
    pairs
        .map(|pair| format!(" {} {}", pair[0], pair[1]))
        .collect()
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

/// The processes that work for a container, with their command lines. Delegates and their children
/// have the container in their environment, and workers have it among their arguments.
pub(crate) fn processes_of(container: &str) -> Vec<(i32, String)> {
    let mut found = Vec::new();
    let needle = container.as_bytes();
    let has = |text: &[u8]| text.windows(needle.len()).any(|window| window == needle);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|it| it.parse().ok()) else {
            continue;
        };
        let part = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let command = part("cmdline");
        if has(&command) || has(&part("environ")) {
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push((pid, command));
        }
    }
    found
}

/// Runs `ip` with arguments and a batch on stdin, and returns the lines that it printed.
fn ip_lines(arguments: &[&str], batch: &str) -> Vec<String> {
    let mut ip = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    ip.stdin
        .take()
        .unwrap()
        .write_all(batch.as_bytes())
        .unwrap();
    let done = ip.wait_with_output().unwrap();
    assert!(done.status.success(), "ip {arguments:?}: {}", done.status);
    let text = String::from_utf8_lossy(&done.stdout);
    text.lines().map(str::to_owned).collect()
}
