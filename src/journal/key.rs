//! The key of a record.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::cni::{ContainerId, InterfaceName};

/// The container and the interface in a call of the runtime (CNI 1.1.0 §3). The journal has one
/// record for each key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// `CNI_CONTAINERID`.
    pub container: ContainerId,
    /// `CNI_IFNAME`.
    pub ifname: InterfaceName,
}

impl Key {
    /// The file name of the record.
    pub(super) fn file_name(&self) -> String {
        format!("{}@{}", short(&self.container), self.ifname)
    }
}

/// Returns a container ID as part of a file name. Truncates a long ID, and appends a checksum of
/// the whole ID, so that IDs with the same beginning get different file names.
pub(super) fn short(container: &ContainerId) -> Cow<'_, str> {
    const LONGEST: usize = 200;
    let container = container.as_str();
    match container.get(..LONGEST) {
        Some(start) if start.len() < container.len() => {
            let sum = crc32fast::hash(container.as_bytes());
            Cow::Owned(format!("{start}~{sum:08x}"))
        }
        _ => Cow::Borrowed(container),
    }
}
