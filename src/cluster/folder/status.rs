//! Writes a pod's status and events to two files: replaces `network-status.json` atomically, and
//! appends to `events.jsonl`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

use crate::boot::sweep_unfinished;
use crate::cluster::{Event, Publication};
use crate::console;
use crate::npwg::{StatusEntry, merge_status};
use crate::regular_file;

/// How the name of an unfinished file begins. The name ends with the process ID of the writer.
const UNFINISHED: &str = ".network-status.";
/// The largest status that is read, in bytes. If the old status is larger, the new status replaces
/// it without a merge.
const MAX_FILE: u64 = 1 << 20;

/// Writes a publication to the directory of its pod.
///
/// # Errors
/// When the directory or a file cannot be written.
pub(super) fn write(dir: &Path, publication: &Publication) -> std::io::Result<()> {
    fs::create_dir_all(dir)?;
    if let Some(status) = publication.status() {
        write_status(dir, status)?;
    }
    append_events(dir, publication.events())
}

/// Writes the status. Keeps the entries of other components. Also keeps the keys that other
/// components added to Jackfield's entries: the names of such keys contain a `.` (NPWG 1.3 §5.1).
fn write_status(dir: &Path, status: &[StatusEntry]) -> std::io::Result<()> {
    let path = dir.join("network-status.json");
    let before = regular_file::read_text(&path, MAX_FILE).ok();
    let text = merge_status(before.as_deref(), status);
    let temporary = dir.join(format!("{UNFINISHED}{}", std::process::id()));
    fs::write(&temporary, text)?;
    fs::rename(&temporary, &path)
}

fn append_events(dir: &Path, events: &[Event]) -> std::io::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let mut lines = Vec::new();
    for event in events {
        let mut event = event.clone();
        event.message = console::line(&event.message).into_owned();
        serde_json::to_writer(&mut lines, &event)?;
        lines.push(b'\n');
    }
    let path = dir.join("events.jsonl");
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?
        .write_all(&lines)
}

/// Removes the unfinished files of writers that have ended.
pub(super) fn sweep(dir: &Path) {
    // The file of a living writer stays: the writer may be publishing for another sandbox of the
    // same pod.
    sweep_unfinished(dir, |name| name.strip_prefix(UNFINISHED)?.parse().ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_removes_only_unfinished_files_of_dead_writers() {
        let dir = tempfile::tempdir().unwrap();
        let status = dir.path().join("demo/web");
        sweep(&status);
        fs::create_dir_all(&status).unwrap();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let kept = [
            ".network-status.1",
            ".network-status.x",
            "network-status.json",
        ];
        // An earlier process with the ID of this process may have left a file.
        let swept = [dead.id(), std::process::id()].map(|pid| format!("{UNFINISHED}{pid}"));
        for name in kept.iter().copied().chain(swept.iter().map(String::as_str)) {
            fs::write(status.join(name), "[").unwrap();
        }
        sweep(&status);
        let entries = fs::read_dir(&status).unwrap();
        let mut left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, kept);
    }
}
