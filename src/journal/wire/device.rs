//! The JSON form of a device's original state: the state before a pod got the device.

use device_info::{Guid, MacAddr, PciAddress};
use serde::{Deserialize, Serialize};

use super::Maybe;
use crate::baseline::{DeviceState, NetdevState};
use crate::kernel::{VfLinkState, VfRates, VfState, VfVlan, VlanProtocol};

/// One device.
#[derive(Serialize, Deserialize)]
#[serde(remote = "DeviceState", rename_all = "kebab-case")]
pub(in crate::journal) struct Device {
    device: PciAddress,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "Maybe::<Netdev>")]
    netdev: Option<NetdevState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    physical: Option<PciAddress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "Maybe::<Function>")]
    function: Option<VfState>,
}

/// The network interface of a device.
#[derive(Serialize, Deserialize)]
#[serde(remote = "NetdevState")]
pub(super) struct Netdev {
    name: String,
    address: Vec<u8>,
    mtu: u32,
}

/// The settings of a virtual function. The physical function reports them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "VfState", rename_all = "kebab-case")]
pub(super) struct Function {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<MacAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "Maybe::<Vlan>")]
    vlan: Option<VfVlan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spoof_check: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rss_query: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "Maybe::<LinkState>")]
    link_state: Option<VfLinkState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(with = "Maybe::<Rates>")]
    rates: Option<VfRates>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_guid: Option<Guid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_guid: Option<Guid>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "VfVlan")]
pub(super) struct Vlan {
    id: u16,
    qos: u8,
    #[serde(with = "Protocol")]
    protocol: VlanProtocol,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "VlanProtocol")]
enum Protocol {
    #[serde(rename = "802.1q")]
    Customer,
    #[serde(rename = "802.1ad")]
    Service,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "VfLinkState", rename_all = "lowercase")]
pub(super) enum LinkState {
    Auto,
    Enable,
    Disable,
}

/// The transmit rates of a virtual function, in Mbit/s.
#[derive(Serialize, Deserialize)]
#[serde(remote = "VfRates")]
pub(super) struct Rates {
    min: u32,
    max: u32,
}
