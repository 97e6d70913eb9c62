//! What an attachment is called.

use crate::cni::{ContainerId, InterfaceName};

/// What the runtime calls one attachment: container and interface (CNI 1.1.0 §3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// `CNI_CONTAINERID`.
    pub container: ContainerId,
    /// `CNI_IFNAME`.
    pub ifname: InterfaceName,
}

impl Key {
    /// The file's name. A container ID that is too long for one is cut and told apart by its
    /// checksum; the header holds the whole.
    pub(super) fn file_name(&self) -> String {
        const LONGEST: usize = 200;
        let container = self.container.as_str();
        if container.len() <= LONGEST {
            return format!("{container}@{}", self.ifname);
        }
        let sum = crc32fast::hash(container.as_bytes());
        let start = container.get(..LONGEST).unwrap_or_default();
        format!("{start}~{sum:08x}@{}", self.ifname)
    }
}
