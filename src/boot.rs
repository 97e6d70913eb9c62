//! Which boot this is: after another one, no netns of before is left.

use std::sync::OnceLock;

/// The kernel's boot ID; empty where `/proc` has none, which then is like any other.
pub(crate) fn boot_id() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    let read = || {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.trim().to_owned()
    };
    BOOT.get_or_init(read).clone()
}
