//! The IDs of the current boot and of this process. The boot ID shows which journal records are
//! from before a reboot. The network namespaces in these records no longer exist. This module also
//! removes unfinished files whose writers have ended.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::machine::ask_machine;

/// The maximum number of directory entries that [`sweep_unfinished`] examines.
const MOST_SWEPT: usize = 4096;

/// Returns the boot ID of the kernel, or an empty text if `/proc` does not contain it.
pub(crate) fn boot_id() -> String {
    ask_machine!(boot_id());
    static BOOT: OnceLock<String> = OnceLock::new();
    let read = || {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.trim().to_owned()
    };
    BOOT.get_or_init(read).clone()
}

/// Returns the ID of this process.
pub(crate) fn process_id() -> u32 {
    ask_machine!(process_id());
    std::process::id()
}

/// Removes the unfinished files in `dir` whose writers have ended. `writer` returns the process ID
/// in the name of an unfinished file. Also removes files with the ID of this process, because
/// this process writes no such file during the sweep. They are from an earlier process that had the
/// same ID. Examines at most [`MOST_SWEPT`] entries, because a DEL waits for the sweep.
pub(crate) fn sweep_unfinished(dir: &Path, writer: impl Fn(&str) -> Option<u32>) {
    let is_alive = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    let entries = fs::read_dir(dir).into_iter().flatten();
    for entry in entries.take(MOST_SWEPT).flatten() {
        let pid = entry.file_name().to_str().and_then(&writer);
        if pid.is_some_and(|pid| pid == std::process::id() || !is_alive(pid)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
