//! A virtual function as its physical function has it: what an administrator may set of it from the
//! host, whatever namespace or program has the function itself.
//!
//! ```text
//! RTM_GETLINK of one PF, RTEXT_FILTER_VF ──read──▶ [VfState] ──(somebody compares)──▶ [VfSetting]
//! RTM_SETLINK of that PF, IFLA_VFINFO_LIST ◀──write───────────────────────────────────────┘
//! ```
//!
//! What a driver does not report is [`None`], never zero or off: only what is known can be compared
//! with anything. Of rates the kernel says 0 where a driver knows none, which is also what "no
//! limit" is.

mod read;
mod write;

use std::fmt;

use device_info::{Guid, MacAddr};
use serde::{Deserialize, Serialize};

pub(super) use read::Functions;

/// What a physical function says of one of its virtual functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct VfState {
    /// Its number, from 0.
    pub index: u32,
    /// The hardware address that the administrator gave it; all zeros where none was given. None
    /// on InfiniBand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<MacAddr>,
    /// The VLAN that its frames are put into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VfVlan>,
    /// Whether frames with a foreign source address are dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoof_check: Option<bool>,
    /// Whether it may do what others may not: change its address, be promiscuous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
    /// Whether it may read how received frames are spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_query: Option<bool>,
    /// Which link it sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_state: Option<VfLinkState>,
    /// How fast it may send.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<VfRates>,
    /// The GUID of its InfiniBand node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_guid: Option<Guid>,
    /// The GUID of its InfiniBand port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_guid: Option<Guid>,
}

/// The VLAN of a virtual function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfVlan {
    /// Its number; 0 is none.
    pub id: u16,
    /// The priority, 0 to 7.
    pub qos: u8,
    /// How it is written into frames.
    pub protocol: VlanProtocol,
}

/// How a VLAN is written into a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VlanProtocol {
    /// The usual tag.
    #[default]
    #[serde(rename = "802.1q")]
    Customer,
    /// The outer of two tags.
    #[serde(rename = "802.1ad")]
    Service,
}

/// Which link a virtual function sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VfLinkState {
    /// The physical function's.
    Auto,
    /// Always up, so that virtual functions reach each other without a cable.
    Enable,
    /// Always down.
    Disable,
}

/// How fast a virtual function may send, in Mbit/s; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VfRates {
    /// What it has for certain.
    pub min: u32,
    /// What it may have at most.
    pub max: u32,
}

/// One thing that is set of a virtual function from its physical function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfSetting {
    /// [`VfState::mac`].
    Mac(MacAddr),
    /// [`VfState::vlan`].
    Vlan(VfVlan),
    /// [`VfState::spoof_check`].
    SpoofCheck(bool),
    /// [`VfState::trust`].
    Trust(bool),
    /// [`VfState::rss_query`].
    RssQuery(bool),
    /// [`VfState::link_state`].
    LinkState(VfLinkState),
    /// [`VfState::rates`].
    Rates(VfRates),
    /// [`VfState::node_guid`].
    NodeGuid(Guid),
    /// [`VfState::port_guid`].
    PortGuid(Guid),
}

impl VfState {
    /// Everything that is known of it, as settings that would make it so.
    ///
    /// Trust comes first, and the hardware address next: while one is given by the administrator,
    /// many drivers refuse a function that is not trusted any other.
    pub fn settings(&self) -> impl Iterator<Item = VfSetting> + use<> {
        [
            self.trust.map(VfSetting::Trust),
            self.mac.map(VfSetting::Mac),
            self.vlan.map(VfSetting::Vlan),
            self.spoof_check.map(VfSetting::SpoofCheck),
            self.rss_query.map(VfSetting::RssQuery),
            self.link_state.map(VfSetting::LinkState),
            self.rates.map(VfSetting::Rates),
            self.node_guid.map(VfSetting::NodeGuid),
            self.port_guid.map(VfSetting::PortGuid),
        ]
        .into_iter()
        .flatten()
    }

    /// What is known of the thing that `setting` sets; [`None`] where its driver does not say.
    #[must_use]
    pub fn of_kind(&self, setting: VfSetting) -> Option<VfSetting> {
        match setting {
            VfSetting::Mac(_) => self.mac.map(VfSetting::Mac),
            VfSetting::Vlan(_) => self.vlan.map(VfSetting::Vlan),
            VfSetting::SpoofCheck(_) => self.spoof_check.map(VfSetting::SpoofCheck),
            VfSetting::Trust(_) => self.trust.map(VfSetting::Trust),
            VfSetting::RssQuery(_) => self.rss_query.map(VfSetting::RssQuery),
            VfSetting::LinkState(_) => self.link_state.map(VfSetting::LinkState),
            VfSetting::Rates(_) => self.rates.map(VfSetting::Rates),
            VfSetting::NodeGuid(_) => self.node_guid.map(VfSetting::NodeGuid),
            VfSetting::PortGuid(_) => self.port_guid.map(VfSetting::PortGuid),
        }
    }
}

impl fmt::Display for VfVlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vlan {}", self.id)?;
        if self.qos != 0 {
            write!(f, " qos {}", self.qos)?;
        }
        match self.protocol {
            VlanProtocol::Customer => Ok(()),
            VlanProtocol::Service => f.write_str(" proto 802.1ad"),
        }
    }
}

impl fmt::Display for VfLinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Enable => "enable",
            Self::Disable => "disable",
        })
    }
}

impl fmt::Display for VfSetting {
    /// As `ip link set … vf N` takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switch = |on: &bool| if *on { "on" } else { "off" };
        match self {
            Self::Mac(mac) => write!(f, "mac {mac}"),
            Self::Vlan(vlan) => vlan.fmt(f),
            Self::SpoofCheck(on) => write!(f, "spoofchk {}", switch(on)),
            Self::Trust(on) => write!(f, "trust {}", switch(on)),
            Self::RssQuery(on) => write!(f, "query_rss {}", switch(on)),
            Self::LinkState(state) => write!(f, "state {state}"),
            Self::Rates(VfRates { min, max }) => {
                write!(f, "min_tx_rate {min} max_tx_rate {max}")
            }
            Self::NodeGuid(guid) => write!(f, "node_guid {guid}"),
            Self::PortGuid(guid) => write!(f, "port_guid {guid}"),
        }
    }
}

#[cfg(test)]
mod tests;
