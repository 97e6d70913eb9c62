//! What of the machine the suite may use.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use device_info::PciAddress;
use serde::{Deserialize, Serialize};

use crate::case::Stop;

/// The devices that the suite may change.
///
/// Nothing else on the machine is touched: on bare metal a person named these, in the guest they
/// are the ones that the virtual machine was given.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Node {
    /// Physical functions whose VFs are made, rebound and unmade.
    pub(crate) pfs: Vec<PciAddress>,
    /// Whether the whole machine is the suite's: the guest is, a machine of bare metal never.
    pub(crate) is_guest: bool,
    /// The first PF's VFs, while a case that uses them runs: in the order of their index.
    #[serde(skip)]
    pub(crate) vfs: Vec<PciAddress>,
    /// The binary under test.
    pub(crate) jackfield: Option<PathBuf>,
    /// The folder with the CNI reference plugins.
    pub(crate) cni_bin: Option<PathBuf>,
    /// What was measured, for the report.
    #[serde(skip)]
    pub(crate) notes: Notes,
    /// Virtio network functions that may become the parent of a vDPA device.
    pub(crate) virtio: Vec<PciAddress>,
}

/// Lines of the report that a case writes, shared with the thread that it runs on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn write(&self, line: String) {
        if let Ok(mut lines) = self.0.lock() {
            lines.push(line);
        }
    }

    /// All of them; they are gone then.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0
            .lock()
            .map(|mut lines| std::mem::take(&mut *lines))
            .unwrap_or_default()
    }
}

impl Node {
    /// The PF of cases that need one.
    pub(crate) fn pf(&self) -> Result<PciAddress, Stop> {
        self.pfs
            .first()
            .copied()
            .ok_or_else(|| Stop::Skipped("no PF was given; remedy: --pf".to_owned()))
    }

    /// VF `index` of that PF.
    pub(crate) fn vf(&self, index: usize) -> Result<PciAddress, Stop> {
        self.vfs.get(index).copied().ok_or_else(|| {
            Stop::Skipped(format!(
                "the PF has {} VFs, this takes {}; remedy: --pf with another",
                self.vfs.len(),
                index + 1
            ))
        })
    }

    /// A PF that the suite may take from its driver: the last one, so that with two of them the
    /// first stays as it is.
    pub(crate) fn spare_pf(&self) -> Result<PciAddress, Stop> {
        self.pfs
            .last()
            .copied()
            .ok_or_else(|| Stop::Skipped("no PF was given; remedy: --pf".to_owned()))
    }

    /// The virtio function of cases that need one.
    pub(crate) fn virtio(&self) -> Result<PciAddress, Stop> {
        self.virtio.first().copied().ok_or_else(|| {
            Stop::Skipped("no virtio network function was given; remedy: --virtio".to_owned())
        })
    }
}
