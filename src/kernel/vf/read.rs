//! Reads the virtual functions from the description of a physical function.
//!
//! This module parses the kernel's octets itself. The `netlink-packet-route` crate cannot be used,
//! because it reports an unsupported setting as "off".

use device_info::{Guid, MacAddr};
use netlink_packet_core::{DecodeError, NetlinkDeserializable, NetlinkHeader, NlasIterator};
use nix::libc;

use super::{VfLinkState, VfRates, VfState, VfVlan, VlanProtocol};

/// The length of `struct ifinfomsg`.
const HEADER: usize = 16;
/// `IFLA_VF_INFO`, one virtual function.
const INFO: u16 = 1;
/// `IFLA_VF_VLAN_INFO`, one VLAN in `IFLA_VF_VLAN_LIST`.
const VLAN_INFO: u16 = 1;
/// `ARPHRD_ETHER`. This module reads MACs only on Ethernet links, because the addresses of other
/// link types may have a different length.
const ETHERNET: u16 = 1;
/// `ETH_P_8021AD`.
const SERVICE: u16 = 0x88a8;

/// All virtual functions in a link message.
#[derive(Debug)]
pub(in crate::kernel) struct Functions(pub(in crate::kernel) Vec<VfState>);

impl NetlinkDeserializable for Functions {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        if header.message_type != libc::RTM_NEWLINK {
            return Ok(Self(Vec::new()));
        }
        let short = || DecodeError::from("a link message without its header");
        let (fixed, attributes) = payload.split_at_checked(HEADER).ok_or_else(short)?;
        let is_ethernet = octets::<2>(fixed, 2).map(u16::from_ne_bytes) == Some(ETHERNET);
        let mut functions = Vec::new();
        for attribute in NlasIterator::new(attributes) {
            let attribute = attribute?;
            if attribute.kind() != libc::IFLA_VFINFO_LIST {
                continue;
            }
            for info in NlasIterator::new(attribute.value()) {
                let info = info?;
                if info.kind() == INFO {
                    functions.extend(function(info.value(), is_ethernet)?);
                }
            }
        }
        Ok(Self(functions))
    }
}

/// Reads one virtual function. Returns [`None`] if no attribute contains the VF number.
fn function(attributes: &[u8], is_ethernet: bool) -> Result<Option<VfState>, DecodeError> {
    let mut index = None;
    let mut state = VfState::default();
    for attribute in NlasIterator::new(attributes) {
        let attribute = attribute?;
        let value = attribute.value();
        let kind = i32::from(attribute.kind());
        if ![VLAN_LIST, STATS, BROADCAST].contains(&kind) {
            // The values of all other attributes begin with the VF number.
            index = index.or(number32(value, 0));
        }
        let setting = number32(value, 4);
        match kind {
            MAC if is_ethernet => state.mac = octets::<6>(value, 4).map(MacAddr::from),
            VLAN => state.vlan = state.vlan.or_else(|| vlan(value, None)),
            VLAN_LIST => {
                let first = NlasIterator::new(value).map_while(Result::ok);
                let mut first = first.filter(|vlan| vlan.kind() == VLAN_INFO);
                if let Some(info) = first.next() {
                    let info = info.value();
                    index = index.or(number32(info, 0));
                    let protocol = octets::<2>(info, 12).map(u16::from_be_bytes);
                    state.vlan = vlan(info, protocol).or(state.vlan);
                }
            }
            SPOOF_CHECK => state.spoof_check = setting.and_then(switch),
            TRUST => state.trust = setting.and_then(switch),
            RSS_QUERY => state.rss_query = setting.and_then(switch),
            LINK_STATE => state.link_state = setting.and_then(link_state),
            RATE => {
                let rates = setting.zip(number32(value, 8));
                state.rates = rates.map(|(min, max)| VfRates { min, max });
            }
            NODE_GUID => state.node_guid = guid(value),
            PORT_GUID => state.port_guid = guid(value),
            _ => {}
        }
    }
    Ok(index.map(|index| VfState { index, ..state }))
}

/// `IFLA_VF_*` in `linux/if_link.h`.
const MAC: i32 = 1;
const VLAN: i32 = 2;
const SPOOF_CHECK: i32 = 4;
const LINK_STATE: i32 = 5;
const RATE: i32 = 6;
const RSS_QUERY: i32 = 7;
const STATS: i32 = 8;
const TRUST: i32 = 9;
const NODE_GUID: i32 = 10;
const PORT_GUID: i32 = 11;
const VLAN_LIST: i32 = 12;
const BROADCAST: i32 = 13;

/// Reads the VLAN ID and the priority, which follow the VF number.
fn vlan(value: &[u8], protocol: Option<u16>) -> Option<VfVlan> {
    Some(VfVlan {
        id: u16::try_from(number32(value, 4)?).ok()?,
        qos: u8::try_from(number32(value, 8)?).ok()?,
        protocol: match protocol {
            Some(SERVICE) => VlanProtocol::Service,
            _ => VlanProtocol::Customer,
        },
    })
}

/// Reads an on/off setting. The kernel writes -1 if the driver does not report the setting.
fn switch(setting: u32) -> Option<bool> {
    (setting != u32::MAX).then_some(setting != 0)
}

fn link_state(state: u32) -> Option<VfLinkState> {
    match state {
        0 => Some(VfLinkState::Auto),
        1 => Some(VfLinkState::Enable),
        2 => Some(VfLinkState::Disable),
        _ => None,
    }
}

/// Reads a GUID. The kernel writes a GUID as a 64-bit number in the machine's byte order, after the
/// VF number and four octets of padding. [`Guid`] has the highest octet first, as in the text form.
fn guid(value: &[u8]) -> Option<Guid> {
    let number = octets::<8>(value, 8).map(u64::from_ne_bytes)?;
    Some(Guid::from(number.to_be_bytes()))
}

fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    octets(bytes, at).map(u32::from_ne_bytes)
}

fn octets<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
