//! A device as it was before a pod got it, and what of it has to be put right when the pod is done.
//!
//! ```text
//! before the first plugin: DeviceState ──journal──▶ ┐
//!                                                   ├─▶ compare ─▶ Comparison: repairs, remarks
//! after the last one:      DeviceState ─────────────┘
//! ```
//!
//! Without any I/O: whoever can read a device and change it does that, and compares again. Only
//! what was known before and is known now is compared, since what a driver does not tell nobody can
//! give back; and a device that was made anew at the same address is another one.

use std::fmt;

use device_info::{Guid, IpoibAddr, PciAddress};
use serde::{Deserialize, Serialize};

use crate::kernel::{LinkChange, VfSetting, VfState};

/// What a PCI device is like, as far as plugins change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeviceState {
    /// Its address.
    pub device: PciAddress,
    /// Which device of that address it is: the number of its directory in sysfs, which is another
    /// one as soon as the device is made anew, as by its physical function's reset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
    /// The driver that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The interface that it is on the host; none on a driver that makes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netdev: Option<NetdevState>,
    /// The physical function that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical: Option<PciAddress>,
    /// What that one says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<VfState>,
}

/// What a device's interface is like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetdevState {
    /// Its name.
    pub name: String,
    /// Its hardware address.
    pub address: Vec<u8>,
    /// Its MTU, in octets.
    pub mtu: u32,
}

/// What is to be done about a device, and what is only to be said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What has to be put right, in an order in which drivers accept it.
    pub repairs: Vec<Repair>,
    /// What is otherwise than it was and stays so, a line each.
    pub remarks: Vec<String>,
    /// Why it is another device by now, of which nothing is put back.
    pub is_another: Option<&'static str>,
    /// The interface that it was is not there, though its driver is.
    pub lacks_interface: bool,
}

/// One thing that is put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Of a virtual function, on its physical function.
    Function(VfSetting),
    /// Of its interface.
    Netdev(LinkChange),
    /// The GUID of its IPoIB interface. What the physical function has set takes effect when the
    /// driver finds the function anew, and no sooner.
    Rebind {
        /// The driver.
        driver: String,
        /// The GUID that the interface had.
        guid: Guid,
    },
}

/// Something by which others know a pod, and the next one that has its device for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The hardware address.
    Mac,
    /// The GUID.
    Guid,
    /// The VLAN, which is whom it can reach.
    Vlan,
}

/// Compares a device with what it was.
#[must_use]
pub fn compare(before: &DeviceState, now: &DeviceState) -> Comparison {
    let mut comparison = Comparison::default();
    let made_anew = before.generation.zip(now.generation);
    if made_anew.is_some_and(|(before, now)| before != now) {
        comparison.is_another = Some(
            "it was made anew since (its physical function was reset): nothing of it is put back",
        );
        return comparison;
    }
    if let (Some(then), Some(is)) = (&before.function, &now.function) {
        let differs = |setting: &VfSetting| {
            let is = is.of_kind(*setting);
            is.is_some_and(|is| is != *setting)
        };
        let repairs = then.settings().filter(differs).map(Repair::Function);
        comparison.repairs.extend(repairs);
    }
    compare_interfaces(before, now, &mut comparison);
    // Many drivers let only a function that is trusted have another address.
    let is_last = |repair: &Repair| *repair == Repair::Function(VfSetting::Trust(false));
    comparison.repairs.sort_by_key(is_last);
    comparison
}

fn compare_interfaces(before: &DeviceState, now: &DeviceState, comparison: &mut Comparison) {
    let ipoib = before.netdev.as_ref().and_then(NetdevState::port_guid);
    let is_unbound_ipoib = now.driver.is_none() && ipoib.is_some();
    if let (true, Some(guid), Some(driver)) = (is_unbound_ipoib, ipoib, &before.driver) {
        let driver = driver.clone();
        comparison.repairs.push(Repair::Rebind { driver, guid });
        return;
    }
    if before.driver != now.driver {
        let name = |driver: &Option<String>| driver.clone().unwrap_or_else(|| "none".to_owned());
        comparison.remarks.push(format!(
            "its driver is {}, it was {}: drivers are not changed, bind it anew",
            name(&now.driver),
            name(&before.driver)
        ));
        return;
    }
    match (&before.netdev, &now.netdev) {
        (Some(then), Some(is)) => {
            if let (Some(guid), Some(driver)) = (then.port_guid(), &before.driver)
                && is.port_guid() != Some(guid)
            {
                let driver = driver.clone();
                comparison.repairs.push(Repair::Rebind { driver, guid });
            }
            let changes = netdev_changes(then, is).map(Repair::Netdev);
            comparison.repairs.extend(changes);
        }
        (Some(_), None) => comparison.lacks_interface = true,
        (None, _) => {}
    }
}

/// The length of an Ethernet address. Of an IPoIB address nothing can be set: its GUID is its
/// physical function's to give, and its queue pair is new with every start.
const ETHERNET: usize = 6;

impl DeviceState {
    /// The function's own GUID in place of a setting that takes a GUID away.
    #[must_use]
    pub fn own_guid(&self, instead: VfSetting) -> Option<VfSetting> {
        let own = self.netdev.as_ref()?.port_guid()?;
        let own = Some(own).filter(|own| !own.is_zero())?;
        match instead {
            VfSetting::NodeGuid(none) if none.is_zero() => Some(VfSetting::NodeGuid(own)),
            VfSetting::PortGuid(none) if none.is_zero() => Some(VfSetting::PortGuid(own)),
            _ => None,
        }
    }
}

impl NetdevState {
    /// The GUID of the port, where this is an IPoIB interface.
    fn port_guid(&self) -> Option<Guid> {
        let octets: [u8; 20] = self.address.as_slice().try_into().ok()?;
        Some(IpoibAddr::from(octets).port_guid())
    }
}

impl Repair {
    /// By what of it others would know the pod that had the device `before`, as long as it is not
    /// made: nothing where the device has its own, or none.
    #[must_use]
    pub fn identity(&self, before: &DeviceState, now: &DeviceState) -> Option<Identity> {
        let own = before
            .netdev
            .as_ref()
            .map(|netdev| netdev.address.as_slice());
        let is_anothers = |octets: &[u8]| octets.iter().any(|it| *it != 0) && own != Some(octets);
        let own_guid = before.netdev.as_ref().and_then(NetdevState::port_guid);
        let is_anothers_guid = |guid: Guid| !guid.is_zero() && own_guid != Some(guid);
        let function = now.function.as_ref();
        match self {
            Repair::Function(VfSetting::Mac(_)) => {
                let mac = function?.mac?;
                is_anothers(&mac.octets()).then_some(Identity::Mac)
            }
            Repair::Function(VfSetting::Vlan(_)) => {
                (function?.vlan?.id != 0).then_some(Identity::Vlan)
            }
            Repair::Function(VfSetting::NodeGuid(_)) => {
                is_anothers_guid(function?.node_guid?).then_some(Identity::Guid)
            }
            Repair::Function(VfSetting::PortGuid(_)) => {
                is_anothers_guid(function?.port_guid?).then_some(Identity::Guid)
            }
            Repair::Rebind { .. } => Some(Identity::Guid),
            Repair::Netdev(LinkChange::Address(_)) => Some(Identity::Mac),
            Repair::Netdev(_) | Repair::Function(_) => None,
        }
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
    /// What it is put back to.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repair::Function(setting) => setting.fmt(f),
            Repair::Netdev(LinkChange::Name(name)) => write!(f, "name {name}"),
            Repair::Netdev(LinkChange::Address(address)) => {
                f.write_str("hardware address ")?;
                for (place, octet) in address.iter().enumerate() {
                    let colon = if place == 0 { "" } else { ":" };
                    write!(f, "{colon}{octet:02x}")?;
                }
                Ok(())
            }
            Repair::Netdev(LinkChange::Mtu(mtu)) => write!(f, "MTU {mtu}"),
            Repair::Netdev(LinkChange::Up | LinkChange::Down | LinkChange::Home(_)) => {
                f.write_str("place")
            }
            Repair::Rebind { guid, .. } => write!(f, "GUID {guid} of its interface"),
        }
    }
}

impl fmt::Display for DeviceState {
    /// The device as messages name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "device {}", self.device)?;
        match (&self.function, self.physical) {
            (Some(function), Some(physical)) => {
                write!(f, " (VF {} of {physical})", function.index)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
