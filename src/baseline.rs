//! Compares the state of a device before a pod used it (the baseline) with the state afterwards,
//! and derives the repairs that restore the device.
//!
//! ```text
//! before the first plugin: DeviceState ──journal──▶ ┐
//!                                                   ├─▶ compare ─▶ Comparison: repairs, changes
//! after the last plugin:   DeviceState ─────────────┘
//! ```
//!
//! This module does no I/O. The caller reads the device, makes the repairs and compares again.
//! If one of the two states lacks a setting of a VF, [`compare`] skips this setting, because
//! Jackfield cannot tell whether it has changed. A device that was recreated at the same address
//! counts as a different device.

use std::fmt;

use device_info::{Guid, IpoibAddr, PciAddress};
use thiserror::Error;

use crate::kernel::{LinkChange, VfSetting, VfState};

/// The part of a PCI device's state that plugins change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceState {
    /// The PCI address.
    pub device: PciAddress,
    /// The inode number of the device's directory in sysfs. A device that is recreated, for example
    /// by a reset of its physical function, has a new number.
    pub generation: Option<u64>,
    /// The bound driver.
    pub driver: Option<String>,
    /// The interface in the host's network namespace, if the device has one.
    pub netdev: Option<NetdevState>,
    /// The physical function, if the device is a VF.
    pub physical: Option<PciAddress>,
    /// The settings of the VF, if the physical function reports them.
    pub function: Option<VfState>,
}

/// The state of a device's interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetdevState {
    /// The name.
    pub name: String,
    /// The hardware address.
    pub address: Vec<u8>,
    /// The MTU, in octets.
    pub mtu: u32,
}

/// The differences between two states of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The values to restore, in an order that drivers accept.
    pub repairs: Vec<Repair>,
    /// The driver before and the driver now. Set if they differ and no repair rebinds the device.
    pub other_driver: Option<OtherDriver>,
    /// Why the pod's device no longer exists. If this is set, there are no repairs.
    pub replacement: Option<Replacement>,
    /// Whether the interface is missing although the driver is the same as before.
    pub lacks_interface: bool,
}

/// The device's driver is not the same as before, and Jackfield does not restore the driver.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "its driver is {} but was {}; restore the driver by hand, because Jackfield does not",
    or_none(.now), or_none(.before)
)]
pub struct OtherDriver {
    /// The driver before.
    pub before: Option<String>,
    /// The driver now.
    pub now: Option<String>,
}

/// Why the pod's device no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Replacement {
    /// The device was recreated at the same address.
    #[error(
        "it was recreated after the pod got it, for example by a reset of its physical function; \
         Jackfield does not restore it"
    )]
    Recreated,
    /// The device is missing.
    #[error("it is missing; Jackfield does not restore it")]
    Missing,
}

/// One value to restore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// A setting of the VF on its physical function.
    Function(VfSetting),
    /// A property of the interface.
    Netdev(LinkChange),
    /// The GUID of the IPoIB interface. Jackfield restores the GUID by rebinding the VF, because a
    /// driver reads the GUID from the physical function only when it probes the VF.
    Rebind {
        /// The driver to rebind the VF to.
        driver: String,
        /// The GUID that the interface had.
        guid: Guid,
    },
}

/// A part of a device's state that determines who a pod is in the network, or which hosts the pod
/// can reach. If the device keeps this part, the next pod with the device may get the previous
/// pod's address, GUID or VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodIdentity {
    /// The hardware address.
    Mac,
    /// The GUID.
    Guid,
    /// The VLAN, which determines the hosts that the pod can reach.
    Vlan,
}

/// Compares two states of a device: before a pod used the device, and now.
#[must_use]
pub fn compare(before: &DeviceState, now: &DeviceState) -> Comparison {
    let mut comparison = Comparison::default();
    if before.is_recreated(now) {
        comparison.replacement = Some(Replacement::Recreated);
        return comparison;
    }
    if let (Some(then), Some(is)) = (&before.function, &now.function) {
        let differs = |then: &VfSetting| is.of_kind(*then).is_some_and(|is| is != *then);
        let repairs = then.settings().filter(differs).map(Repair::Function);
        comparison.repairs.extend(repairs);
    }
    compare_interfaces(before, now, &mut comparison);
    // Revoke trust last, because many drivers let only a trusted function change its address.
    let is_last = |repair: &Repair| *repair == Repair::Function(VfSetting::Trust(false));
    comparison.repairs.sort_by_key(is_last);
    comparison
}

fn compare_interfaces(before: &DeviceState, now: &DeviceState, comparison: &mut Comparison) {
    let rebind = || {
        let guid = port_guid(&before.netdev.as_ref()?.address)?;
        let driver = before.driver.clone()?;
        Some(Repair::Rebind { driver, guid })
    };
    if now.driver.is_none()
        && let Some(rebind) = rebind()
    {
        comparison.repairs.push(rebind);
        return;
    }
    if before.driver != now.driver {
        comparison.other_driver = Some(OtherDriver {
            before: before.driver.clone(),
            now: now.driver.clone(),
        });
        return;
    }
    match (&before.netdev, &now.netdev) {
        (Some(then), Some(is)) => {
            if port_guid(&then.address) != port_guid(&is.address) {
                comparison.repairs.extend(rebind());
            }
            let changes = netdev_changes(then, is).map(Repair::Netdev);
            comparison.repairs.extend(changes);
        }
        (Some(_), None) => comparison.lacks_interface = true,
        (None, _) => {}
    }
}

/// The length of an Ethernet address in octets. Jackfield restores only Ethernet addresses. An
/// IPoIB address cannot be set: its GUID comes from the physical function, and its queue pair
/// number changes on every start of the interface.
const ETHERNET: usize = 6;

impl DeviceState {
    /// Whether the device was recreated between this state and `now`.
    #[must_use]
    pub fn is_recreated(&self, now: &DeviceState) -> bool {
        let generations = self.generation.zip(now.generation);
        generations.is_some_and(|(before, now)| before != now)
    }

    /// If `setting` sets the node GUID or the port GUID to zero, returns a setting that replaces
    /// zero with the port GUID of the device's interface. The caller uses the returned setting if
    /// the driver refuses zero. Returns [`None`] for any other setting. Also returns [`None`] if the
    /// interface has no port GUID or the port GUID is zero.
    #[must_use]
    pub fn own_guid(&self, setting: VfSetting) -> Option<VfSetting> {
        let own = port_guid(&self.netdev.as_ref()?.address);
        let own = own.filter(|own| !own.is_zero())?;
        match setting {
            VfSetting::NodeGuid(none) if none.is_zero() => Some(VfSetting::NodeGuid(own)),
            VfSetting::PortGuid(none) if none.is_zero() => Some(VfSetting::PortGuid(own)),
            _ => None,
        }
    }
}

/// Returns the port GUID of an IPoIB address. Returns [`None`] for any other address.
pub fn port_guid(address: &[u8]) -> Option<Guid> {
    let octets: [u8; 20] = address.try_into().ok()?;
    Some(IpoibAddr::from(octets).port_guid())
}

fn or_none(driver: &Option<String>) -> &str {
    driver.as_deref().unwrap_or("none")
}

impl Repair {
    /// Returns the part of the pod's identity that this repair removes from the device. `before` is
    /// the state before the pod used the device. Returns [`None`] if the repair concerns no
    /// identity, or if the device does not have the pod's identity now.
    #[must_use]
    pub fn identity(&self, before: &DeviceState, now: &DeviceState) -> Option<PodIdentity> {
        let netdev = before.netdev.as_ref();
        let is_own_mac = |mac: &[u8]| netdev.is_some_and(|netdev| netdev.address == mac);
        let own_guid = netdev.and_then(|netdev| port_guid(&netdev.address));
        let is_foreign = |guid: Guid| !guid.is_zero() && own_guid != Some(guid);
        let function = now.function.as_ref();
        let (is_kept, identity) = match self {
            Repair::Function(VfSetting::Mac(_)) => {
                let mac = function?.mac?.octets();
                (mac != [0; 6] && !is_own_mac(&mac), PodIdentity::Mac)
            }
            Repair::Function(VfSetting::Vlan(_)) => (function?.vlan?.id != 0, PodIdentity::Vlan),
            Repair::Function(VfSetting::NodeGuid(_)) => {
                (is_foreign(function?.node_guid?), PodIdentity::Guid)
            }
            Repair::Function(VfSetting::PortGuid(_)) => {
                (is_foreign(function?.port_guid?), PodIdentity::Guid)
            }
            Repair::Rebind { .. } => (true, PodIdentity::Guid),
            Repair::Netdev(LinkChange::Address(_)) => (true, PodIdentity::Mac),
            Repair::Netdev(_) | Repair::Function(_) => return None,
        };
        is_kept.then_some(identity)
    }
}

fn netdev_changes(
    then: &NetdevState,
    is: &NetdevState,
) -> impl Iterator<Item = LinkChange> + use<> {
    let name = (then.name != is.name).then(|| LinkChange::Name(then.name.clone()));
    let is_ethernet = then.address.len() == ETHERNET && is.address.len() == ETHERNET;
    let address = (is_ethernet && then.address != is.address)
        .then(|| LinkChange::Address(then.address.clone()));
    let mtu = (then.mtu != is.mtu).then_some(LinkChange::Mtu(then.mtu));
    [name, address, mtu].into_iter().flatten()
}

impl fmt::Display for Repair {
    /// Formats the value to restore.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repair::Function(setting) => setting.fmt(f),
            Repair::Netdev(LinkChange::Name(name)) => write!(f, "name {name}"),
            Repair::Netdev(LinkChange::Address(address)) => {
                let octets = address.iter().map(|octet| format!("{octet:02x}"));
                let octets: Vec<String> = octets.collect();
                write!(f, "hardware address {}", octets.join(":"))
            }
            Repair::Netdev(LinkChange::Mtu(mtu)) => write!(f, "MTU {mtu}"),
            Repair::Netdev(LinkChange::Up | LinkChange::Down | LinkChange::Home(_)) => {
                // `compare` never returns such a repair.
                f.write_str("state or namespace of its interface")
            }
            Repair::Rebind { guid, .. } => write!(f, "GUID {guid} of its interface"),
        }
    }
}

impl fmt::Display for DeviceState {
    /// Formats the name of the device for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}", self.device)?;
        if let (Some(function), Some(physical)) = (&self.function, self.physical) {
            write!(f, " (VF {} of {physical})", function.index)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
