//! The settings that a physical function (PF) has for each of its virtual functions (VFs). The host
//! can change these settings while another namespace or program uses the VF.
//!
//! ```text
//! RTM_GETLINK of one PF, RTEXT_FILTER_VF ──read─▶ [VfState] ──(the caller compares)──▶ [VfSetting]
//! RTM_SETLINK of that PF, IFLA_VFINFO_LIST ◀──write───────────────────────────────────────┘
//! ```
//!
//! If the driver does not report an on/off setting or a GUID, the value is [`None`], and callers do
//! not compare it. If the driver does not report an address, a VLAN, a link state or a rate, the
//! kernel fills in a default. So a rate of 0, for example, can mean "no limit" or "the driver has
//! no rate limits".

mod read;
mod write;

use std::fmt;
use std::mem::discriminant;

use device_info::{Guid, MacAddr};

pub(super) use read::Functions;

/// The settings of one virtual function, as its physical function reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VfState {
    /// The VF number, from 0.
    pub index: u32,
    /// The MAC that is set for the VF on the physical function; all zeros if none is set. Always
    /// [`None`] on InfiniBand.
    pub mac: Option<MacAddr>,
    /// The VLAN of the VF's frames.
    pub vlan: Option<VfVlan>,
    /// Whether the NIC drops frames that the VF sends from an address other than its own.
    pub spoof_check: Option<bool>,
    /// Whether the VF is trusted. A trusted VF may change its address and use promiscuous mode.
    pub trust: Option<bool>,
    /// Whether the VF may query its RSS configuration.
    pub rss_query: Option<bool>,
    /// The link state that the VF sees.
    pub link_state: Option<VfLinkState>,
    /// The transmit rates.
    pub rates: Option<VfRates>,
    /// The node GUID (InfiniBand).
    pub node_guid: Option<Guid>,
    /// The port GUID (InfiniBand).
    pub port_guid: Option<Guid>,
}

/// The VLAN of a virtual function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VfVlan {
    /// The VLAN ID; 0 for none.
    pub id: u16,
    /// The priority (QoS), 0 to 7.
    pub qos: u8,
    /// The protocol of the tag.
    pub protocol: VlanProtocol,
}

/// The protocol of a VLAN tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VlanProtocol {
    /// 802.1Q, the usual tag.
    #[default]
    Customer,
    /// 802.1ad, the outer tag of two.
    Service,
}

/// The link state that a virtual function sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfLinkState {
    /// The link state of the physical function.
    Auto,
    /// Always up, so that VFs reach each other without a cable.
    Enable,
    /// Always down.
    Disable,
}

/// The transmit rates of a virtual function, in Mbit/s; 0 for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VfRates {
    /// The guaranteed rate.
    pub min: u32,
    /// The maximum rate.
    pub max: u32,
}

/// One setting of a virtual function on its physical function.
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
    /// Returns the reported values as settings. Writing the settings in this sequence restores the
    /// state.
    ///
    /// `trust` and `mac` come first, because they decide whether the address of the VF's interface
    /// can change. Many drivers allow this change only if the VF is trusted or `mac` is not set.
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

    /// Returns the reported setting of the same kind as `setting`. For example, returns the
    /// reported VLAN if `setting` is a [`VfSetting::Vlan`]. Returns [`None`] if the driver reports
    /// no setting of this kind.
    #[must_use]
    pub fn of_kind(&self, setting: VfSetting) -> Option<VfSetting> {
        let kind = discriminant(&setting);
        self.settings().find(|ours| discriminant(ours) == kind)
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
    /// Writes the setting in the syntax of `ip link set … vf N`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switch = |on: &bool| if *on { "on" } else { "off" };
        match self {
            Self::Mac(mac) => write!(f, "mac {mac}"),
            Self::Vlan(vlan) => vlan.fmt(f),
            Self::SpoofCheck(on) => write!(f, "spoofchk {}", switch(on)),
            Self::Trust(on) => write!(f, "trust {}", switch(on)),
            Self::RssQuery(on) => write!(f, "query_rss {}", switch(on)),
            Self::LinkState(state) => write!(f, "state {state}"),
            Self::Rates(VfRates { min, max }) => write!(f, "min_tx_rate {min} max_tx_rate {max}"),
            Self::NodeGuid(guid) => write!(f, "node_guid {guid}"),
            Self::PortGuid(guid) => write!(f, "port_guid {guid}"),
        }
    }
}

#[cfg(test)]
mod tests;
