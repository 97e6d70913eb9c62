//! A link, as `RTM_NEWLINK` describes it.

use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use nix::libc;

/// A network interface, as the kernel reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The interface index, unique within the namespace.
    pub index: u32,
    /// The name.
    pub name: String,
    /// The hardware address: 6 octets on Ethernet, 20 on IPoIB, empty on some links.
    pub address: Vec<u8>,
    /// The permanent hardware address, if the link has one. This address remains the same when a
    /// bond changes [`Link::address`]. Reported by Linux 5.6 and later.
    pub perm_address: Option<Vec<u8>>,
    /// The MTU, in octets.
    pub mtu: u32,
    /// Whether the link is administratively up (`IFF_UP`).
    pub up: bool,
    /// Whether the link has a carrier.
    pub carrier: bool,
    /// `ARPHRD_*`: 1 for Ethernet, 32 for InfiniBand.
    pub arp_type: u16,
    /// The kind of software device (`veth`, `macvlan`); [`None`] for hardware.
    pub kind: Option<String>,
    /// The index of the link's master: a bridge, a bond or a VRF.
    pub master: Option<u32>,
    /// The index of the lower link, such as the parent of a macvlan. For a veth, the index of the
    /// peer.
    pub lower: Option<u32>,
    /// The namespace of [`Link::lower`], as an ID that is valid in the namespace of this link.
    /// [`None`] if both links are in the same namespace.
    pub lower_netns: Option<i32>,
    /// The bus of the parent device (`pci`, `virtio`, `auxiliary`). Reported by Linux 5.14 and
    /// later.
    pub parent_bus: Option<String>,
    /// The name of the parent device on that bus. Reported by Linux 5.14 and later.
    pub parent_name: Option<String>,
}

impl Link {
    /// `ARPHRD_INFINIBAND`, the type of IPoIB links. Their addresses have 20 octets, and the last 8
    /// octets are the port GUID.
    pub const INFINIBAND: u16 = 32;
}

/// The attributes that [`Link`] reads. A filter drops all other attributes before the message is
/// parsed.
pub(super) const READ: [u16; 11] = [
    libc::IFLA_ADDRESS,
    libc::IFLA_IFNAME,
    libc::IFLA_MTU,
    libc::IFLA_LINK,
    libc::IFLA_MASTER,
    libc::IFLA_LINKINFO,
    libc::IFLA_CARRIER,
    libc::IFLA_LINK_NETNSID,
    libc::IFLA_PERM_ADDRESS,
    libc::IFLA_PARENT_DEV_NAME,
    libc::IFLA_PARENT_DEV_BUS_NAME,
];

impl From<LinkMessage> for Link {
    fn from(message: LinkMessage) -> Self {
        let mut link = Self {
            index: message.header.index,
            up: message.header.flags.contains(LinkFlags::Up),
            arp_type: message.header.link_layer_type.into(),
            ..Self::default()
        };
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name = name,
                LinkAttribute::Address(address) => link.address = address,
                LinkAttribute::PermAddress(address) => link.perm_address = Some(address),
                LinkAttribute::Mtu(mtu) => link.mtu = mtu,
                LinkAttribute::Carrier(carrier) => link.carrier = carrier != 0,
                LinkAttribute::Controller(index) => link.master = Some(index),
                LinkAttribute::Link(index) => link.lower = Some(index),
                LinkAttribute::LinkNetNsId(id) => link.lower_netns = Some(id),
                LinkAttribute::ParentDevBusName(bus) => link.parent_bus = Some(bus),
                LinkAttribute::ParentDevName(name) => link.parent_name = Some(name),
                LinkAttribute::LinkInfo(info) => link.kind = kind(&info),
                _ => {}
            }
        }
        link
    }
}

fn kind(info: &[LinkInfo]) -> Option<String> {
    info.iter().find_map(|part| match part {
        LinkInfo::Kind(kind) => Some(kind.to_string()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::DefaultNla;
    use netlink_packet_route::link::{InfoKind, LinkHeader, LinkLayerType};

    use super::*;

    fn message(attributes: Vec<LinkAttribute>) -> LinkMessage {
        let mut message = LinkMessage::default();
        message.header = LinkHeader {
            index: 7,
            link_layer_type: LinkLayerType::Infiniband,
            flags: LinkFlags::Up | LinkFlags::Multicast,
            ..LinkHeader::default()
        };
        message.attributes = attributes;
        message
    }

    #[test]
    fn a_message_sets_every_field_of_a_link() {
        let link = Link::from(message(vec![
            LinkAttribute::IfName("ib0".to_owned()),
            LinkAttribute::Mtu(4092),
            LinkAttribute::Address(vec![2; 20]),
            LinkAttribute::PermAddress(vec![3; 20]),
            LinkAttribute::Carrier(1),
            LinkAttribute::Controller(4),
            LinkAttribute::Link(5),
            LinkAttribute::LinkNetNsId(0),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::MacVlan)]),
            LinkAttribute::ParentDevBusName("pci".to_owned()),
            LinkAttribute::ParentDevName("0000:01:10.0".to_owned()),
            LinkAttribute::Other(DefaultNla::new(9999, vec![1])),
        ]));
        let expected = Link {
            index: 7,
            name: "ib0".to_owned(),
            address: vec![2; 20],
            perm_address: Some(vec![3; 20]),
            mtu: 4092,
            up: true,
            carrier: true,
            arp_type: Link::INFINIBAND,
            kind: Some("macvlan".to_owned()),
            master: Some(4),
            lower: Some(5),
            lower_netns: Some(0),
            parent_bus: Some("pci".to_owned()),
            parent_name: Some("0000:01:10.0".to_owned()),
        };
        assert_eq!(link, expected);
    }

    #[test]
    fn the_filter_keeps_exactly_the_attributes_for_fields_of_a_link() {
        use netlink_packet_core::Nla;
        let judged = [
            LinkAttribute::IfName("ib0".to_owned()),
            LinkAttribute::Mtu(4092),
            LinkAttribute::Address(vec![2; 20]),
            LinkAttribute::PermAddress(vec![3; 20]),
            LinkAttribute::Carrier(1),
            LinkAttribute::Controller(4),
            LinkAttribute::Link(5),
            LinkAttribute::LinkNetNsId(0),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::MacVlan)]),
            LinkAttribute::ParentDevBusName("pci".to_owned()),
            LinkAttribute::ParentDevName("0000:01:10.0".to_owned()),
        ];
        let mut kinds = judged.map(|attribute| attribute.kind() & 0x3fff);
        let mut read = READ;
        kinds.sort_unstable();
        read.sort_unstable();
        assert_eq!(kinds, read);
    }

    #[test]
    fn a_field_that_the_kernel_omits_stays_empty() {
        let link = Link::from(message(vec![LinkAttribute::IfName("net1".to_owned())]));
        assert_eq!(link.perm_address, None);
        assert_eq!(link.master, None);
        assert_eq!(link.parent_name, None);
        assert!(!link.carrier);
        assert!(link.address.is_empty());
    }
}
