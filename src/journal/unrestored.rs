//! Devices that could not be restored after their pod was detached.
//!
//! ```text
//! unrestored/<address>      the original state of a device, and what could not be restored
//! ```
//!
//! The next operation that attaches such a device retries the restoration. The operation is an ADD,
//! or a change of the networks of a running pod. After the retry, the device may still have a MAC,
//! GUID or VLAN of the previous pod. If the new attachment does not replace this setting, the
//! operation fails. The new pod's request can replace a MAC or a GUID, and the network's definition
//! can replace a MAC or a VLAN. If the operation succeeds, the DEL of the new pod restores the
//! device to the state in `unrestored/<address>`.

use device_info::PciAddress;
use serde::{Deserialize, Serialize};

use super::{Journal, JournalError, wire};
use crate::baseline::DeviceState;
use crate::boot::boot_id;
use crate::cluster::PodName;
use crate::disk;

/// The folder of the devices.
const FOLDER: &str = "unrestored";

/// A device that could not be restored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Unrestored {
    pub(super) boot: String,
    /// The state of the device before the pod got it.
    #[serde(with = "wire::Device")]
    pub before: DeviceState,
    /// The pod, if the runtime named one.
    pub pod: Option<PodName>,
    /// One line for each part of the state that could not be restored, with the cause.
    pub causes: Vec<String>,
}

impl Unrestored {
    /// Creates the entry of an unrestored device, with the ID of the current boot.
    pub fn new(before: DeviceState, pod: Option<PodName>, causes: Vec<String>) -> Unrestored {
        Unrestored {
            boot: boot_id(),
            before,
            pod,
            causes,
        }
    }

    /// Whether this entry is about the device whose current state is `now`. The address alone does
    /// not identify a device: a reboot recreates every device, and a physical function can recreate
    /// its virtual functions.
    pub fn is_about(&self, now: &DeviceState) -> bool {
        let is_same = self.before.device == now.device && !self.before.is_recreated(now);
        self.boot == boot_id() && is_same
    }
}

impl Journal {
    /// Records an unrestored device.
    ///
    /// # Errors
    /// Code 109 if the entry cannot be written.
    pub fn keep_unrestored(&self, device: &Unrestored) -> Result<(), JournalError> {
        self.put(FOLDER, &device.before.device.to_string(), device)
    }

    /// Returns the entry of a device if the device is unrestored.
    pub fn unrestored(&self, address: PciAddress) -> Option<Unrestored> {
        self.get(FOLDER, &address.to_string())
    }

    /// Returns every unrestored device, sorted by address.
    pub fn all_unrestored(&self) -> Vec<Unrestored> {
        let mut devices: Vec<Unrestored> = self.all(FOLDER).collect();
        devices.sort_by_key(|device| device.before.device);
        devices
    }

    /// Removes the entry of a device that is restored or recreated.
    pub fn forget_unrestored(&self, address: PciAddress) {
        // If the removal fails, the next ADD compares the entry with the device again.
        let _ = disk::remove(&self.dir.join(FOLDER).join(address.to_string()));
    }

    /// Returns the addresses of all unrestored devices, in order. Reads only the file names.
    pub(super) fn unrestored_names(&self) -> Vec<String> {
        let finished = self.finished(FOLDER);
        let names = finished.filter_map(|file| file.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::golden;
    use crate::journal::steps;

    fn state(generation: u64) -> DeviceState {
        DeviceState {
            generation: Some(generation),
            ..steps::tests::device()
        }
    }

    #[test]
    fn an_unrestored_device_stays_on_record_until_restored_or_recreated() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        let address = state(7).device;
        assert!(journal.unrestored(address).is_none() && journal.all_unrestored().is_empty());
        let kept = Unrestored::new(state(7), None, vec!["name eth2: taken".to_owned()]);
        journal.keep_unrestored(&kept).unwrap();
        let read = journal.unrestored(address).unwrap();
        assert_eq!((&read.before, &read.causes), (&kept.before, &kept.causes));
        assert_eq!(journal.all_unrestored().len(), 1);
        assert_eq!(journal.count().unrestored, ["0000:01:10.0"]);
        assert!(read.is_about(&state(7)) && !read.is_about(&state(8)));
        let earlier = Unrestored {
            boot: "another".to_owned(),
            ..read
        };
        assert!(!earlier.is_about(&state(7)));
        journal.forget_unrestored(address);
        assert!(journal.unrestored(address).is_none());
    }

    fn example() -> Unrestored {
        Unrestored {
            boot: "boot".to_owned(),
            before: steps::tests::device(),
            pod: Some(PodName {
                namespace: "demo".to_owned(),
                name: "web".to_owned(),
                uid: Some("u".to_owned()),
            }),
            causes: vec!["name ens1f0v0: File exists".to_owned()],
        }
    }

    #[test]
    fn golden_unrestored_device_is_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        Journal::new(dir.path())
            .keep_unrestored(&example())
            .unwrap();
        let written = fs::read(dir.path().join("unrestored/0000:01:10.0")).unwrap();
        golden::assert_current("unrestored.json", &written);
    }
}
