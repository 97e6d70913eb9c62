//! The ID of the current boot, which shows whether a network namespace on record can still exist.

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
