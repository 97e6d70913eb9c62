//! The key of an attachment.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::cni::{ContainerId, InterfaceName};

/// The identity that the runtime gives an attachment: container and interface (CNI 1.1.0 §3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// `CNI_CONTAINERID`.
    pub container: ContainerId,
    /// `CNI_IFNAME`.
    pub ifname: InterfaceName,
}

impl Key {
    /// The file name of the attachment's record.
    pub(super) fn file_name(&self) -> String {
        format!("{}@{}", short(&self.container), self.ifname)
    }
}

/// A container ID as part of a file name. A long ID is cut, and a checksum of the whole ID keeps
/// the name unique.
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
