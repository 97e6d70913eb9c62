//! Completes device information and refuses contradictions.

use super::{DeviceInfo, DeviceInfoError, Facts, SpecVersion, WireDeviceInfo, WirePci, WireVdpa};
use crate::pci_address::PciAddress;
use crate::quoted::Quoted;

/// Completes device information with facts of the machine.
///
/// `given` is the device plugin's or the delegate's device information, if there is any. `complete`
/// keeps the values of `given`, and takes missing values from `facts`. It refuses a value that
/// contradicts `facts`, because with such a value the pod would open the wrong device.
///
/// Without `given`, the result comes from `facts` alone. Its type is `vdpa` if `facts` contain the
/// driver and the path of a vDPA device. Otherwise its type is `pci` if `facts` contain a PCI
/// address. For any other device, such as a subfunction, the result is `None`, because the
/// specification has no type for that device.
///
/// If the version in `given` is too old for the keys of the result, the result has a newer version.
///
/// # Errors
///
/// [`CompletionError`] if `given` contradicts `facts`, or if the result does not follow the
/// specification.
///
/// ```
/// use device_info::{Facts, WireDeviceInfo, complete};
///
/// let given = WireDeviceInfo::from_json(
///     br#"{"type": "pci", "version": "1.0.0", "pci": {"pci-address": "0000:01:10.0"}}"#,
/// )?;
/// let facts = Facts {
///     id: "0000:01:10.0".to_owned(),
///     pci_address: Some("0000:01:10.0".parse()?),
///     pf_pci_address: Some("0000:01:00.0".parse()?),
///     ..Facts::default()
/// };
/// let complete = complete(Some(given), Some(&facts))?;
/// assert_eq!(
///     serde_json::to_string(&complete)?,
///     r#"{"type":"pci","version":"1.0.0","pci":{"pci-address":"0000:01:10.0","pf-pci-address":"0000:01:00.0"}}"#,
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn complete(
    given: Option<WireDeviceInfo>,
    facts: Option<&Facts>,
) -> Result<Option<DeviceInfo>, CompletionError> {
    let Some(facts) = facts else {
        return given.map(strict).transpose();
    };
    let Some(mut wire) = given.or_else(|| skeleton(facts)) else {
        return Ok(None);
    };
    match wire.kind.as_deref() {
        Some("pci") => fill_pci(wire.pci.get_or_insert_default(), facts)?,
        Some("vdpa") => fill_vdpa(wire.vdpa.get_or_insert_default(), facts)?,
        _ => {}
    }
    Ok(Some(strict(wire)?))
}

/// Supplies a missing version, and checks all values.
fn strict(mut wire: WireDeviceInfo) -> Result<DeviceInfo, CompletionError> {
    if wire.version.as_ref().is_none_or(String::is_empty) {
        wire.version = Some(SpecVersion::V1_0_0.to_string());
    }
    Ok(DeviceInfo::try_from(wire)?)
}

fn skeleton(facts: &Facts) -> Option<WireDeviceInfo> {
    let usable = facts
        .vdpa
        .as_ref()
        .is_some_and(|vdpa| vdpa.driver.is_some() && vdpa.path.is_some());
    let kind = if usable {
        "vdpa"
    } else {
        facts.pci_address.map(|_| "pci")?
    };
    Some(WireDeviceInfo {
        kind: Some(kind.to_owned()),
        version: Some(SpecVersion::V1_1_0.to_string()),
        ..WireDeviceInfo::default()
    })
}

fn fill_pci(pci: &mut WirePci, facts: &Facts) -> Result<(), CompletionError> {
    let fill = Fill(facts);
    fill.address("pci.pci-address", &mut pci.pci_address, facts.pci_address)?;
    fill.address(
        "pci.pf-pci-address",
        &mut pci.pf_pci_address,
        facts.pf_pci_address,
    )?;
    fill.text(
        "pci.vhost-net",
        &mut pci.vhost_net,
        facts.vhost_net.as_deref(),
    )?;
    fill.text(
        "pci.representor-device",
        &mut pci.representor_device,
        facts.representor_device.as_deref(),
    )?;
    fill.rdma(&mut pci.rdma_device)
}

fn fill_vdpa(vdpa: &mut WireVdpa, facts: &Facts) -> Result<(), CompletionError> {
    let fill = Fill(facts);
    fill.address("vdpa.pci-address", &mut vdpa.pci_address, facts.pci_address)?;
    fill.address(
        "vdpa.pf-pci-address",
        &mut vdpa.pf_pci_address,
        facts.pf_pci_address,
    )?;
    fill.text(
        "vdpa.representor-device",
        &mut vdpa.representor_device,
        facts.representor_device.as_deref(),
    )?;
    let Some(found) = &facts.vdpa else {
        return Ok(());
    };
    fill.text(
        "vdpa.parent-device",
        &mut vdpa.parent_device,
        Some(&found.parent_device),
    )?;
    let driver = found.driver.map(|driver| driver.to_string());
    fill.text("vdpa.driver", &mut vdpa.driver, driver.as_deref())?;
    // Compare only the last component of a virtio device's path. The path in `facts` is below
    // `/sys`. The given path may be below `/dev/sys`, as in the specification's example.
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let same_virtio = driver.as_deref() == Some("virtio")
        && vdpa.path.as_deref().and_then(name) == found.path.as_deref().and_then(name);
    if !same_virtio {
        fill.text("vdpa.path", &mut vdpa.path, found.path.as_deref())?;
    }
    Ok(())
}

struct Fill<'a>(&'a Facts);

impl Fill<'_> {
    fn text(
        &self,
        key: &'static str,
        given: &mut Option<String>,
        found: Option<&str>,
    ) -> Result<(), CompletionError> {
        match (given.as_deref().filter(|text| !text.is_empty()), found) {
            (Some(given), Some(found)) if given != found => {
                Err(self.contradiction(key, given, found))
            }
            (None, Some(found)) => {
                *given = Some(found.to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Compares addresses as numbers. Keeps an invalid address, which `strict` refuses later.
    fn address(
        &self,
        key: &'static str,
        given: &mut Option<String>,
        found: Option<PciAddress>,
    ) -> Result<(), CompletionError> {
        let parsed = given
            .as_deref()
            .and_then(|text| text.parse::<PciAddress>().ok());
        let has_text = given.as_deref().is_some_and(|text| !text.is_empty());
        match (parsed, found) {
            (Some(given), Some(found)) if given != found => {
                Err(self.contradiction(key, &given.to_string(), &found.to_string()))
            }
            (None, Some(found)) if !has_text => {
                *given = Some(found.to_string());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks that the kernel shows every given RDMA device. If none is given, takes the devices
    /// that the kernel shows. If the kernel shows none, skips the check, because the devices may be
    /// in a different network namespace.
    fn rdma(&self, given: &mut Option<String>) -> Result<(), CompletionError> {
        let found = &self.0.rdma_devices;
        if found.is_empty() {
            return Ok(());
        }
        let all = found.join(",");
        let names: Vec<&str> = given
            .as_deref()
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        if names.is_empty() {
            *given = Some(all);
            return Ok(());
        }
        match names
            .iter()
            .find(|name| !found.iter().any(|found| found == *name))
        {
            Some(other) => Err(self.contradiction("pci.rdma-device", other, &all)),
            None => Ok(()),
        }
    }

    fn contradiction(&self, key: &'static str, given: &str, found: &str) -> CompletionError {
        CompletionError::Contradiction {
            device: Quoted::new(&self.0.id),
            key,
            given: Quoted::new(given),
            found: Quoted::new(found),
        }
    }
}

/// Why device information cannot be completed.
#[derive(Debug, thiserror::Error)]
pub enum CompletionError {
    /// The device information does not follow the specification, even after completion.
    #[error(transparent)]
    Invalid(#[from] DeviceInfoError),
    /// The device information contradicts the machine.
    #[error(
        "device {device}: the device-info file has {key} {given}, but this machine shows {found}; delete the stale file, or restart the device plugin that wrote it"
    )]
    Contradiction {
        /// The identifier that kubelet allocated.
        device: Quoted,
        /// The key and its section.
        key: &'static str,
        /// The value in the device information.
        given: Quoted,
        /// The value in sysfs or devlink.
        found: Quoted,
    },
}
