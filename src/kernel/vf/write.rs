//! Encodes a setting for the kernel.

use netlink_packet_route::link::{
    LinkAttribute, LinkVfInfo, VfInfo, VfInfoGuid, VfInfoLinkState, VfInfoMac, VfInfoRate,
    VfInfoRssQueryEn, VfInfoSpoofCheck, VfInfoTrust, VfInfoVlan, VfLinkState as WireLinkState,
    VfVlan as WireVlan, VfVlanInfo, VlanProtocol as WireProtocol,
};

use super::{VfLinkState, VfSetting, VlanProtocol};

impl VfSetting {
    /// Returns `IFLA_VFINFO_LIST` with this setting for virtual function number `vf`. The list
    /// contains only one setting, so that the caller knows which setting the kernel refused.
    pub(in crate::kernel) fn attribute(self, vf: u32) -> LinkAttribute {
        LinkAttribute::VfInfoList(vec![LinkVfInfo(vec![self.info(vf)])])
    }

    fn info(self, vf: u32) -> VfInfo {
        let guid = |guid: device_info::Guid| VfInfoGuid::new(vf, u64::from_be_bytes(guid.octets()));
        match self {
            Self::Mac(mac) => VfInfo::Mac(VfInfoMac::new(vf, &mac.octets())),
            Self::Vlan(vlan) if vlan.protocol == VlanProtocol::Customer => {
                VfInfo::Vlan(VfInfoVlan::new(vf, u32::from(vlan.id), u32::from(vlan.qos)))
            }
            Self::Vlan(vlan) => VfInfo::VlanList(vec![WireVlan::Info(VfVlanInfo::new(
                vf,
                u32::from(vlan.id),
                u32::from(vlan.qos),
                WireProtocol::Ieee8021Ad,
            ))]),
            Self::SpoofCheck(on) => VfInfo::SpoofCheck(VfInfoSpoofCheck::new(vf, on)),
            Self::Trust(on) => VfInfo::Trust(VfInfoTrust::new(vf, on)),
            Self::RssQuery(on) => VfInfo::RssQueryEn(VfInfoRssQueryEn::new(vf, on)),
            Self::LinkState(state) => {
                let state = match state {
                    VfLinkState::Auto => WireLinkState::Auto,
                    VfLinkState::Enable => WireLinkState::Enable,
                    VfLinkState::Disable => WireLinkState::Disable,
                };
                VfInfo::LinkState(VfInfoLinkState::new(vf, state))
            }
            Self::Rates(rates) => VfInfo::Rate(VfInfoRate::new(vf, rates.min, rates.max)),
            Self::NodeGuid(node) => VfInfo::IbNodeGuid(guid(node)),
            Self::PortGuid(port) => VfInfo::IbPortGuid(guid(port)),
        }
    }
}
