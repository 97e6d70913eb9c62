//! Finds orphans. An orphan is a virtual function that has no pod on record and has lost its
//! interface: its driver creates network interfaces, but Jackfield cannot find the interface.
//!
//! There are two causes. A driver may have failed to recreate the interface. Or the interface is
//! still in the network namespace of a deleted pod, because a process outside that namespace keeps
//! the namespace open. Jackfield does not find such a namespace.
//!
//! The device plugin continues to offer an orphan, and the delegates of the next pod then find no
//! interface to attach.

use std::collections::BTreeSet;

use device_info::{Inventory, PciAddress};
use serde::Serialize;

use super::hardware::creates_interfaces;
use crate::diagnostic::Problem;
use crate::journal::DeviceUser;

/// A virtual function whose interface Jackfield cannot find.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orphan {
    /// The address of the virtual function.
    pub address: PciAddress,
    /// The address of its physical function.
    pub physical: PciAddress,
    /// Its VF number on the physical function.
    pub index: u32,
    /// The driver that the virtual function is bound to.
    pub driver: String,
}

impl Problem for Orphan {
    fn words(&self) -> String {
        let Orphan {
            address,
            physical,
            index,
            driver,
        } = self;
        format!(
            "device {address} (VF {index} of {physical}) is bound to driver {driver}, but no pod on \
             record has the device, and the interface of the device is in no network namespace \
             that jackfield can find"
        )
    }

    fn remedy(&self) -> Option<String> {
        Some(format!(
            "end the process that keeps the interface's namespace open, or rebind the device: \
             write its PCI address to /sys/bus/pci/drivers/{driver}/unbind, then to \
             /sys/bus/pci/drivers/{driver}/bind",
            driver = self.driver
        ))
    }
}

/// Finds the orphans. `elsewhere` returns the devices that have an interface in any network
/// namespace that Jackfield can find, as
/// [`devices_in_all_namespaces`](crate::kernel::devices_in_all_namespaces) does. `orphans` calls
/// `elsewhere` only if a VF may be an orphan.
///
/// # Errors
/// The error of `elsewhere`. Without the devices from `elsewhere`, `orphans` cannot tell whether a
/// VF is an orphan.
pub fn orphans<E>(
    inventory: &Inventory,
    users: &[DeviceUser],
    elsewhere: impl FnOnce() -> Result<BTreeSet<String>, E>,
) -> Result<Vec<Orphan>, E> {
    let used: BTreeSet<PciAddress> = users.iter().filter_map(DeviceUser::pci).collect();
    let mut missing = Vec::new();
    for physical in &inventory.physical_functions {
        for vf in &physical.vfs {
            let function = &vf.function;
            let is_used = used.contains(&function.address)
                || function.netdev.is_some()
                || !function.vdpa.is_empty();
            if let Some(driver) = &function.driver
                && creates_interfaces(driver)
                && !is_used
            {
                missing.push(Orphan {
                    address: function.address,
                    physical: physical.function.address,
                    index: vf.index,
                    driver: driver.clone(),
                });
            }
        }
    }
    if missing.is_empty() {
        return Ok(missing);
    }
    let elsewhere = elsewhere()?;
    missing.retain(|orphan| !elsewhere.contains(&orphan.address.to_string()));
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use device_info::{Capture, Sysfs, fixtures};

    use super::*;

    fn inventory(capture: &Capture, gone: &[&str]) -> Inventory {
        let dir = tempfile::tempdir().unwrap();
        let sysfs: Sysfs = capture.build(dir.path()).unwrap();
        for device in gone {
            let net = sysfs
                .root()
                .join("bus/pci/devices")
                .join(device)
                .join("net");
            fs::remove_dir_all(net).unwrap();
        }
        Inventory::read(&sysfs, &mut |_| None)
    }

    fn user(device: &str) -> DeviceUser {
        DeviceUser {
            device: crate::allocation::AllocatedDevice {
                id: device.to_owned(),
                resource: "r".to_owned(),
                driver: None,
                origin: None,
                claim: None,
            },
            pod: None,
            container: "c".parse().unwrap(),
            network: "demo/n".to_owned(),
            interface: "net1".parse().unwrap(),
            netns: String::new(),
            complete: true,
        }
    }

    fn found(inventory: &Inventory, users: &[DeviceUser], elsewhere: &[&str]) -> Vec<String> {
        let elsewhere = elsewhere.iter().map(|&name| name.to_owned()).collect();
        let found = orphans(inventory, users, || Ok::<_, String>(elsewhere));
        found
            .unwrap()
            .iter()
            .map(|it| it.address.to_string())
            .collect()
    }

    const VF: &str = "0000:01:10.0";

    #[test]
    fn a_vf_without_an_interface_and_without_a_pod_is_an_orphan() {
        let lost = inventory(&fixtures::igb(), &[VF]);
        assert_eq!(found(&lost, &[], &[]), [VF]);
        assert_eq!(found(&lost, &[], &["0000:01:00.0", "0000:01:10.2"]), [VF]);
        assert_eq!(found(&lost, &[], &[VF]), [""; 0], "the interface exists");
        assert_eq!(found(&lost, &[user(VF)], &[]), [""; 0], "a pod uses the VF");
        let orphans = orphans(&lost, &[], || Ok::<_, String>(BTreeSet::new())).unwrap();
        let line = crate::diagnostic::line(&orphans[0]);
        for part in [
            VF,
            "VF 0 of 0000:01:00.0",
            "igbvf",
            "write its PCI address to /sys/bus/pci/drivers/igbvf/unbind, then to \
             /sys/bus/pci/drivers/igbvf/bind",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn namespaces_are_searched_only_if_an_interface_is_missing() {
        let refuse = || Err("no privileges".to_owned());
        for capture in [
            fixtures::igb(),
            fixtures::igb_vfio(),
            fixtures::vp_vdpa_virtio(),
        ] {
            let all_there = inventory(&capture, &[]);
            assert_eq!(orphans(&all_there, &[], refuse), Ok(Vec::new()));
        }
        let lost = inventory(&fixtures::igb(), &[VF]);
        assert_eq!(orphans(&lost, &[], refuse), Err("no privileges".to_owned()));
    }
}
