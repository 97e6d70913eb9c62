//! The ID of the current boot. A network namespace from a record of another boot no longer exists.

use std::sync::OnceLock;

/// Returns the boot ID of the kernel, or an empty text if `/proc` does not contain it.
pub(crate) fn boot_id() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    let read = || {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.trim().to_owned()
    };
    BOOT.get_or_init(read).clone()
}
