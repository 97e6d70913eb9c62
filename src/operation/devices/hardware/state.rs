//! Reads the current state of devices from sysfs, from their interfaces and from their physical
//! functions.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use device_info::PciAddress;

use super::Hardware;
use crate::baseline::{DeviceState, NetdevState};
use crate::kernel::{DeviceLinks, KernelError, Link, VfState};

/// The current state of devices, and the failures to read that state.
#[derive(Debug, Default)]
pub(in crate::operation) struct States {
    /// The states of the devices that exist.
    pub(in crate::operation) devices: Vec<DeviceState>,
    /// The errors of the physical functions whose VFs could not be read. A physical function
    /// without an interface on the host causes no error.
    pub(in crate::operation) unreadable: BTreeMap<PciAddress, Arc<FunctionError>>,
}

/// Jackfield asked the kernel for the VFs of a physical function, and the request failed.
#[derive(Debug, thiserror::Error)]
#[error("physical function {physical}: {cause}")]
pub struct FunctionError {
    /// The address of the physical function.
    physical: PciAddress,
    /// Why the request failed.
    #[source]
    cause: KernelError,
}

impl States {
    /// Returns the state of one device, if the device exists.
    pub(in crate::operation) fn of(&self, device: PciAddress) -> Option<&DeviceState> {
        self.devices.iter().find(|state| state.device == device)
    }

    /// Returns why the physical function of a VF could not report the VF's settings. `None` if the
    /// physical function answered or has no interface on the host.
    pub(in crate::operation) fn error_of(&self, device: PciAddress) -> Option<&Arc<FunctionError>> {
        self.unreadable.get(&self.of(device)?.physical?)
    }
}

impl Hardware<'_> {
    /// Reads the state of the devices at `addresses`. Asks each physical function only once, even
    /// for several of its VFs.
    pub(in crate::operation) fn states(
        &self,
        addresses: &[PciAddress],
        links: &mut dyn DeviceLinks,
    ) -> Result<States, KernelError> {
        let mut states = States::default();
        let mut physical = BTreeMap::new();
        for &address in addresses {
            let Some(function) = self.sysfs.pci_function(address) else {
                continue;
            };
            let mut state = DeviceState {
                device: address,
                generation: self.generation(address),
                driver: function.driver(),
                netdev: self.interface_of(address, links)?.map(|link| NetdevState {
                    name: link.name,
                    address: link.address,
                    mtu: link.mtu,
                }),
                physical: function.physfn(),
                function: None,
            };
            if let (Some(pf), Some(index)) = (state.physical, function.vf_index()) {
                let functions = physical.entry(pf).or_insert_with(|| {
                    self.virtual_functions(pf, links).unwrap_or_else(|error| {
                        states.unreadable.insert(pf, Arc::new(error));
                        Vec::new()
                    })
                });
                let mut functions = functions.iter();
                state.function = functions.find(|vf| vf.index == index).copied();
            }
            states.devices.push(state);
        }
        Ok(states)
    }

    /// Returns the settings that a physical function reports for its VFs. The list is empty if the
    /// physical function has no interface in the host's network namespace, for example because a
    /// user-space program or a pod uses the function.
    ///
    /// # Errors
    /// [`FunctionError`] if the kernel refuses or does not answer.
    pub(in crate::operation) fn virtual_functions(
        &self,
        physical: PciAddress,
        links: &mut dyn DeviceLinks,
    ) -> Result<Vec<VfState>, FunctionError> {
        let mut ask = || match self.interface_of(physical, links)? {
            Some(link) => links.virtual_functions(link.index),
            None => Ok(Vec::new()),
        };
        ask().map_err(|cause| FunctionError { physical, cause })
    }

    /// Returns the interface that a function has in the host's network namespace, if there is one.
    ///
    /// # Errors
    /// If the kernel refuses or does not answer.
    pub(in crate::operation) fn interface_of(
        &self,
        address: PciAddress,
        links: &mut dyn DeviceLinks,
    ) -> Result<Option<Link>, KernelError> {
        let function = self.sysfs.pci_function(address);
        let name = function.and_then(|function| function.netdev());
        let Some(name) = name else { return Ok(None) };
        let address = address.to_string();
        Ok(links.device_link(&name)?.filter(|link| {
            // Between reading sysfs and asking the kernel, the name may have passed to another
            // interface, so compare the parent device.
            let is_pci = link.parent_bus.as_deref() == Some("pci");
            !is_pci || link.parent_name.as_deref() == Some(address.as_str())
        }))
    }

    /// Whether the device has lost its interface: `state` contains an interface, and the host's
    /// network namespace now has no interface of the device. False if the device now has another
    /// driver than in `state`.
    pub(in crate::operation) fn is_away(&self, state: &DeviceState) -> bool {
        let function = self.sysfs.pci_function(state.device);
        state.netdev.is_some()
            && function.is_some_and(|function| {
                function.driver() == state.driver && function.netdevs().is_empty()
            })
    }

    /// Returns the sysfs directory of a PCI driver.
    pub(in crate::operation) fn driver(&self, name: &str) -> PathBuf {
        self.sysfs.root().join("bus/pci/drivers").join(name)
    }

    /// Returns the inode number of the device's directory in sysfs. sysfs never reuses an inode
    /// number, so a different number shows that the device was recreated.
    fn generation(&self, address: PciAddress) -> Option<u64> {
        let devices = self.sysfs.root().join("bus/pci/devices");
        let metadata = std::fs::metadata(devices.join(address.to_string()));
        metadata.ok().map(|metadata| metadata.ino())
    }
}
