//! The IDs of the current boot and of this process. The boot ID shows which journal records are
//! from before a reboot. The network namespaces in these records no longer exist.

use std::sync::OnceLock;

use nix::errno::Errno;
use nix::unistd::Pid;

use crate::machine::ask_machine;

/// Returns the boot ID of the kernel, or an empty text if `/proc` does not contain it.
pub(crate) fn boot_id() -> String {
    ask_machine!(boot_id());
    static BOOT: OnceLock<String> = OnceLock::new();
    let read = || {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.trim().to_owned()
    };
    BOOT.get_or_init(read).clone()
}

/// Returns the ID of this process.
pub(crate) fn process_id() -> u32 {
    ask_machine!(process_id());
    std::process::id()
}

/// Whether the writer of an unfinished file has ended. This process counts as ended, because it
/// writes no such file while it looks for unfinished ones.
pub(crate) fn is_over(pid: i32) -> bool {
    let pid = Pid::from_raw(pid);
    pid == Pid::this() || nix::sys::signal::kill(pid, None) == Err(Errno::ESRCH)
}
