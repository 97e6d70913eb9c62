//! The key of an attachment.

use crate::cni::{ContainerId, InterfaceName};

/// The identity of an attachment for the runtime: container and interface (CNI 1.1.0 §3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// `CNI_CONTAINERID`.
    pub container: ContainerId,
    /// `CNI_IFNAME`.
    pub ifname: InterfaceName,
}

impl Key {
    /// The file name of its record. A container ID that is too long is cut and made unique by its
    /// checksum; the header holds all of it.
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
