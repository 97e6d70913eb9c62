//! What the suite may use of the machine.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use device_info::PciAddress;
use serde::{Deserialize, Serialize};

use crate::case::Stop;

/// The devices that the suite may change.
///
/// The suite touches nothing else. On bare metal the user named these devices; in the guest they
/// are the virtual machine's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Node {
    /// Physical functions on which the suite creates, rebinds and removes VFs.
    pub(crate) pfs: Vec<PciAddress>,
    /// Whether the whole machine belongs to the suite. True in the guest, false on bare metal.
    pub(crate) is_guest: bool,
    /// The first PF's VFs by index, while a case uses them.
    #[serde(skip)]
    pub(crate) vfs: Vec<PciAddress>,
    /// The binary under test.
    pub(crate) jackfield: Option<PathBuf>,
    /// The folder with the CNI reference plugins.
    pub(crate) cni_bin: Option<PathBuf>,
    /// Measurements for the report.
    #[serde(skip)]
    pub(crate) notes: Notes,
    /// Virtio network functions that may become the parent of a vDPA device.
    pub(crate) virtio: Vec<PciAddress>,
}

/// Lines of the report that a case writes, shared with the case's thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn write(&self, line: String) {
        if let Ok(mut lines) = self.0.lock() {
            lines.push(line);
        }
    }

    /// Removes and returns all lines.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0
            .lock()
            .map(|mut lines| std::mem::take(&mut *lines))
            .unwrap_or_default()
    }
}

impl Node {
    /// Returns the PF for cases that need one.
    pub(crate) fn pf(&self) -> Result<PciAddress, Stop> {
        self.pfs
            .first()
            .copied()
            .ok_or_else(|| Stop::Skipped("no PF was given; name one by --pf".to_owned()))
    }

    /// Returns VF `index` of that PF.
    pub(crate) fn vf(&self, index: usize) -> Result<PciAddress, Stop> {
        self.vfs.get(index).copied().ok_or_else(|| {
            Stop::Skipped(format!(
                "the PF has {} VFs, but this case needs {}; name another by --pf",
                self.vfs.len(),
                index + 1
            ))
        })
    }

    /// Returns a PF that the suite may take from its driver: the last one, so that with two PFs the
    /// first one keeps its driver.
    pub(crate) fn spare_pf(&self) -> Result<PciAddress, Stop> {
        self.pfs
            .last()
            .copied()
            .ok_or_else(|| Stop::Skipped("no PF was given; name one by --pf".to_owned()))
    }

    /// Returns the virtio function for cases that need one.
    pub(crate) fn virtio(&self) -> Result<PciAddress, Stop> {
        self.virtio.first().copied().ok_or_else(|| {
            Stop::Skipped("no virtio network function was given; name one by --virtio".to_owned())
        })
    }
}
