//! Before any delegate runs, checks that the plugins can attach a device. If a plugin configures
//! virtual functions, the device must be a virtual function. If a virtual function has an
//! interface, the interface must be in the host's network namespace.

use std::time::Duration;

use device_info::PciAddress;

use super::{DeviceProblem, Hardware, States, creates_interfaces};
use crate::baseline::DeviceState;
use crate::clock;
use crate::kernel::placed_devices;
use crate::plan::{Attachment, PlanError, Reason};
use crate::verify::sriov_plugins;

/// How long the kernel may take to move an interface back from a deleted namespace.
const COMES_HOME_WITHIN: Duration = Duration::from_secs(1);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(10);

impl Hardware<'_> {
    /// Checks the devices of `attachments`. `states` contains the state of each device.
    ///
    /// # Errors
    /// Code 104. The message contains the device, the problem and the remedy.
    pub(in crate::operation) fn are_at_home<'a>(
        &self,
        attachments: impl IntoIterator<Item = &'a Attachment>,
        states: &States,
    ) -> Result<(), PlanError> {
        for attachment in attachments {
            let state = attachment.pci().and_then(|pci| states.of(pci));
            let checked = self
                .is_virtual(attachment, state)
                .and_then(|()| state.map_or(Ok(()), |state| self.is_at_home(attachment, state)));
            checked.map_err(|reason| attachment.problem(reason))?;
        }
        Ok(())
    }

    /// Checks that the device is a virtual function if the attachment has an SR-IOV plugin. An
    /// SR-IOV plugin configures a virtual function through its physical function.
    fn is_virtual(
        &self,
        attachment: &Attachment,
        state: Option<&DeviceState>,
    ) -> Result<(), Reason> {
        let Some(plugin) = sriov_plugins(&attachment.config).next() else {
            return Ok(());
        };
        let address = match state {
            Some(state) if state.physical.is_some() => None,
            Some(state) => Some(state.device),
            // The definition itself may name a PCI function, in `deviceID`.
            None if attachment.device.is_none() => {
                let named = plugin.body().read::<String>("deviceID").ok().flatten();
                named.and_then(|id| id.parse::<PciAddress>().ok())
            }
            None => None,
        };
        let function = address.and_then(|address| self.sysfs.pci_function(address));
        let Some(function) = function.filter(|it| it.physfn().is_none()) else {
            return Ok(());
        };
        Err(DeviceProblem::NotVirtual {
            device: function.address(),
            is_physical: function.total_vfs().is_some(),
            plugin: plugin.plugin_type().clone(),
            sysfs: self.sysfs.root().to_owned(),
        }
        .into())
    }

    /// Checks which network namespace contains the interface of a VF. Accepts a VF whose driver
    /// creates no interfaces.
    ///
    /// - Accepts the VF if the interface is in the host's namespace.
    /// - Refuses the VF if [`placed_devices`] finds the interface in another namespace.
    /// - If no namespace contains the interface, the kernel may still be moving the interface back
    ///   from a deleted namespace. An SR-IOV plugin needs the interface. With such a plugin, this
    ///   method waits up to [`COMES_HOME_WITHIN`], and refuses the VF if the interface is still
    ///   missing. Without such a plugin, this method accepts the VF at once.
    ///
    /// Accepts a VF with a vDPA device, because such a VF needs no interface.
    fn is_at_home(&self, attachment: &Attachment, state: &DeviceState) -> Result<(), Reason> {
        let driver = state.driver.as_deref();
        let Some(driver) = driver.filter(|driver| creates_interfaces(driver)) else {
            return Ok(());
        };
        if state.netdev.is_some() || state.physical.is_none() {
            return Ok(());
        }
        let until = clock::now() + COMES_HOME_WITHIN;
        let is_sriov = sriov_plugins(&attachment.config).next().is_some();
        loop {
            let Some(function) = self.sysfs.pci_function(state.device) else {
                return Ok(());
            };
            let vdpa = self.sysfs.vdpa_devices();
            let is_vdpa = vdpa.iter().any(|it| it.pci_address() == Some(state.device));
            if !function.netdevs().is_empty() || is_vdpa {
                return Ok(());
            }
            let placed = placed_devices().unwrap_or_default();
            let mut placed = placed.into_iter();
            if let Some(placed) = placed.find(|it| it.device == state.device.to_string()) {
                return Err(DeviceProblem::Elsewhere(state.to_string(), placed).into());
            }
            if !is_sriov {
                return Ok(());
            }
            if clock::now() >= until {
                return Err(DeviceProblem::LostInterface {
                    device: state.to_string(),
                    driver: driver.to_owned(),
                }
                .into());
            }
            clock::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use device_info::{Capture, fixtures};

    use super::super::tests::node;
    use super::*;
    use crate::allocation::AllocatedDevice;
    use crate::kernel::fake::FakeDevices;
    use crate::kernel::{DeviceLinks, Link};

    const PF: &str = "0000:01:00.0";
    const VF: &str = "0000:01:10.0";

    /// Applies `change` to the node, then checks `device` for a network with `keys`. Returns the
    /// message of the refusal, or an empty string.
    fn line(
        capture: &Capture,
        device: Option<&str>,
        keys: &str,
        change: fn(&std::path::Path),
    ) -> String {
        let dir = tempfile::tempdir().unwrap();
        capture.build(dir.path()).unwrap();
        change(&dir.path().join("sys/bus/pci/devices"));
        let device = device.map(|id| AllocatedDevice {
            id: id.to_owned(),
            resource: "r".to_owned(),
            driver: None,
            origin: None,
            claim: None,
        });
        let addresses: Vec<PciAddress> = device.iter().filter_map(AllocatedDevice::pci).collect();
        let config = format!(r#"{{"cniVersion":"1.0.0","name":"n",{keys}}}"#);
        let attachment = Attachment {
            device,
            ..Attachment::for_tests(&config)
        };
        let node = node(dir.path());
        let hardware = Hardware::of(&node);
        let kernel = FakeDevices {
            links: vec![Link {
                index: 4,
                name: "eth2".to_owned(),
                ..Link::default()
            }],
            ..FakeDevices::default()
        };
        let mut links = std::rc::Rc::new(std::cell::RefCell::new(kernel));
        let links: &mut dyn DeviceLinks = &mut links;
        let states = hardware.states(&addresses, links).unwrap();
        let checked = hardware.are_at_home([&attachment], &states);
        checked.err().map(|it| it.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_function_that_is_not_virtual_is_refused_for_sriov_plugins() {
        let igb = fixtures::igb();
        for (device, keys, part) in [
            (
                Some(PF),
                r#""type":"sriov""#,
                "0000:01:00.0 is a physical function",
            ),
            (
                Some(PF),
                r#""type":"ib-sriov""#,
                "plugin ib-sriov attaches virtual functions",
            ),
            (
                Some(PF),
                r#""type":"vf","trust":"on""#,
                "plugin vf attaches",
            ),
            (
                None,
                r#""type":"sriov","deviceID":"0000:01:00.0""#,
                "is a physical function",
            ),
            (Some(PF), r#""type":"host-device""#, ""),
            (Some(VF), r#""type":"sriov""#, ""),
            (None, r#""type":"sriov","deviceID":"0000:01:10.0""#, ""),
            (None, r#""type":"sriov","deviceID":"0000:77:00.0""#, ""),
            (None, r#""type":"sriov""#, ""),
        ] {
            let line = line(&igb, device, keys, |_| ());
            assert_eq!(line.is_empty(), part.is_empty(), "{keys}: {line}");
            assert!(line.contains(part), "{line}");
        }
        let virtio = fixtures::vp_vdpa_virtio();
        let line = line(&virtio, Some("0000:03:00.0"), r#""type":"sriov""#, |_| ());
        assert!(
            line.contains("not a virtual function (") && line.contains("has no physfn"),
            "{line}"
        );
    }

    #[test]
    fn a_vf_without_an_interface_is_refused_if_its_plugin_needs_one() {
        let lose = |devices: &std::path::Path| {
            std::fs::remove_dir_all(devices.join(VF).join("net")).unwrap();
        };
        let keys = r#""type":"sriov""#;
        let lost = line(&fixtures::igb(), Some(VF), keys, lose);
        for part in [VF, "igbvf", "no network namespace", "unbind"] {
            assert!(lost.contains(part), "{lost}");
        }
        assert_eq!(
            line(&fixtures::igb(), Some(VF), r#""type":"qat""#, lose),
            ""
        );
        assert_eq!(line(&fixtures::igb_vfio(), Some(VF), keys, |_| ()), "");
    }
}
