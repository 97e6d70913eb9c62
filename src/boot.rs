//! The current boot. A reboot removes all network namespaces.

use std::sync::OnceLock;

/// Returns the kernel's boot ID, or an empty text if `/proc` has none.
pub(crate) fn boot_id() -> String {
    static BOOT: OnceLock<String> = OnceLock::new();
    let read = || {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.trim().to_owned()
    };
    BOOT.get_or_init(read).clone()
}
