//! A device as it was before a pod got it.

use std::borrow::Cow;

use device_info::{Guid, MacAddr, PciAddress};
use serde::{Deserialize, Serialize};

use crate::baseline::{DeviceState, NetdevState};
use crate::kernel::{VfLinkState, VfRates, VfState, VfVlan, VlanProtocol};

/// One device: [`DeviceState`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::journal) struct Device<'a> {
    device: PciAddress,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    driver: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    netdev: Option<Netdev<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    physical: Option<PciAddress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    function: Option<Function>,
}

impl<'a> From<&'a DeviceState> for Device<'a> {
    fn from(state: &'a DeviceState) -> Device<'a> {
        Device {
            device: state.device,
            generation: state.generation,
            driver: state.driver.as_deref().map(Cow::Borrowed),
            netdev: state.netdev.as_ref().map(Netdev::from),
            physical: state.physical,
            function: state.function.map(Function::from),
        }
    }
}

impl From<Device<'_>> for DeviceState {
    fn from(device: Device<'_>) -> DeviceState {
        DeviceState {
            device: device.device,
            generation: device.generation,
            driver: device.driver.map(Cow::into_owned),
            netdev: device.netdev.map(NetdevState::from),
            physical: device.physical,
            function: device.function.map(VfState::from),
        }
    }
}

/// A device's interface: [`NetdevState`].
#[derive(Serialize, Deserialize)]
struct Netdev<'a> {
    name: Cow<'a, str>,
    address: Cow<'a, [u8]>,
    mtu: u32,
}

impl<'a> From<&'a NetdevState> for Netdev<'a> {
    fn from(state: &'a NetdevState) -> Netdev<'a> {
        Netdev {
            name: Cow::Borrowed(&state.name),
            address: Cow::Borrowed(&state.address),
            mtu: state.mtu,
        }
    }
}

impl From<Netdev<'_>> for NetdevState {
    fn from(netdev: Netdev<'_>) -> NetdevState {
        NetdevState {
            name: netdev.name.into_owned(),
            address: netdev.address.into_owned(),
            mtu: netdev.mtu,
        }
    }
}

/// A virtual function as its physical function has it: [`VfState`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Function {
    index: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<MacAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vlan: Option<Vlan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spoof_check: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trust: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rss_query: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link_state: Option<LinkState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rates: Option<Rates>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node_guid: Option<Guid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    port_guid: Option<Guid>,
}

/// [`VfVlan`].
#[derive(Serialize, Deserialize)]
struct Vlan {
    id: u16,
    qos: u8,
    protocol: Protocol,
}

/// [`VlanProtocol`].
#[derive(Serialize, Deserialize)]
enum Protocol {
    #[serde(rename = "802.1q")]
    Customer,
    #[serde(rename = "802.1ad")]
    Service,
}

/// [`VfLinkState`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LinkState {
    Auto,
    Enable,
    Disable,
}

/// [`VfRates`], in Mbit/s.
#[derive(Serialize, Deserialize)]
struct Rates {
    min: u32,
    max: u32,
}

impl From<VfState> for Function {
    fn from(state: VfState) -> Function {
        Function {
            index: state.index,
            mac: state.mac,
            vlan: state.vlan.map(Vlan::from),
            spoof_check: state.spoof_check,
            trust: state.trust,
            rss_query: state.rss_query,
            link_state: state.link_state.map(|state| match state {
                VfLinkState::Auto => LinkState::Auto,
                VfLinkState::Enable => LinkState::Enable,
                VfLinkState::Disable => LinkState::Disable,
            }),
            rates: state.rates.map(|VfRates { min, max }| Rates { min, max }),
            node_guid: state.node_guid,
            port_guid: state.port_guid,
        }
    }
}

impl From<Function> for VfState {
    fn from(function: Function) -> VfState {
        VfState {
            index: function.index,
            mac: function.mac,
            vlan: function.vlan.map(VfVlan::from),
            spoof_check: function.spoof_check,
            trust: function.trust,
            rss_query: function.rss_query,
            link_state: function.link_state.map(|state| match state {
                LinkState::Auto => VfLinkState::Auto,
                LinkState::Enable => VfLinkState::Enable,
                LinkState::Disable => VfLinkState::Disable,
            }),
            rates: function
                .rates
                .map(|Rates { min, max }| VfRates { min, max }),
            node_guid: function.node_guid,
            port_guid: function.port_guid,
        }
    }
}

impl From<VfVlan> for Vlan {
    fn from(vlan: VfVlan) -> Vlan {
        Vlan {
            id: vlan.id,
            qos: vlan.qos,
            protocol: match vlan.protocol {
                VlanProtocol::Customer => Protocol::Customer,
                VlanProtocol::Service => Protocol::Service,
            },
        }
    }
}

impl From<Vlan> for VfVlan {
    fn from(vlan: Vlan) -> VfVlan {
        VfVlan {
            id: vlan.id,
            qos: vlan.qos,
            protocol: match vlan.protocol {
                Protocol::Customer => VlanProtocol::Customer,
                Protocol::Service => VlanProtocol::Service,
            },
        }
    }
}
