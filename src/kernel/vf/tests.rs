//! Tests that read virtual functions from octets, and write settings as octets.

use netlink_packet_core::{Emitable, NetlinkDeserializable, NetlinkHeader};
use nix::libc;

use super::*;

fn nla(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap();
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Returns the octets of a structure of 32-bit numbers.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn mac(vf: u32, octets: &[u8]) -> Vec<u8> {
    let mut value = words(&[vf]);
    value.extend(octets);
    value.resize(36, 0);
    nla(1, &value)
}

fn guid_attribute(kind: u16, vf: u32, guid: u64) -> Vec<u8> {
    // In struct ifla_vf_guid, four octets of padding precede the 64-bit number.
    let value = [words(&[vf]), vec![0xee; 4], guid.to_ne_bytes().to_vec()].concat();
    assert_eq!(value.len(), 16);
    nla(kind, &value)
}

/// Returns an `RTM_NEWLINK` payload for a link with this ARP type and these virtual functions.
fn message(arp_type: u16, functions: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = vec![0; 16];
    payload[2..4].copy_from_slice(&arp_type.to_ne_bytes());
    let list: Vec<u8> = functions.iter().flat_map(|info| nla(1, info)).collect();
    payload.extend(nla(3, b"eth0\0"));
    // IFLA_NUM_VF, and IFLA_VFINFO_LIST with the flag NLA_F_NESTED.
    payload.extend(nla(21, &words(&[2])));
    payload.extend(nla(22 | 0x8000, &list));
    payload
}

fn read(payload: &[u8]) -> Result<Vec<VfState>, netlink_packet_core::DecodeError> {
    let mut header = NetlinkHeader::default();
    header.message_type = libc::RTM_NEWLINK;
    Functions::deserialize(&header, payload).map(|Functions(functions)| functions)
}

const UNSUPPORTED: u32 = u32::MAX;

/// A VF of the igb driver, which reports rates and VLANs, but no GUIDs and no RSS query setting.
fn igb(vf: u32) -> Vec<u8> {
    let vlan = nla(
        1,
        &[
            words(&[vf, 100, 3]),
            0x8100_u16.to_be_bytes().to_vec(),
            vec![0; 2],
        ]
        .concat(),
    );
    [
        mac(vf, &[2, 0x11, 0x22, 0x33, 0x44, 0x55]),
        nla(13, &[0xff; 32]),
        nla(2, &words(&[vf, 100, 3])),
        nla(6, &words(&[vf, 0, 200])),
        nla(3, &words(&[vf, 200])),
        nla(4, &words(&[vf, 0])),
        nla(5, &words(&[vf, 0])),
        nla(7, &words(&[vf, UNSUPPORTED])),
        nla(9, &words(&[vf, 1])),
        nla(12, &vlan),
    ]
    .concat()
}

#[test]
fn vf_attributes_contain_the_vf_number() {
    let found = read(&message(1, &[igb(5), igb(1)])).unwrap();
    let numbers: Vec<u32> = found.iter().map(|vf| vf.index).collect();
    assert_eq!(numbers, [5, 1]);
    let expected = VfState {
        index: 5,
        mac: Some([2, 0x11, 0x22, 0x33, 0x44, 0x55].into()),
        vlan: Some(VfVlan {
            id: 100,
            qos: 3,
            protocol: VlanProtocol::Customer,
        }),
        spoof_check: Some(false),
        trust: Some(true),
        rss_query: None,
        link_state: Some(VfLinkState::Auto),
        rates: Some(VfRates { min: 0, max: 200 }),
        node_guid: None,
        port_guid: None,
    };
    assert_eq!(found[0], expected);
}

#[test]
fn a_vf_setting_with_all_bits_set_is_unsupported() {
    let info = [
        mac(0, &[0; 6]),
        nla(4, &words(&[0, UNSUPPORTED])),
        nla(9, &words(&[0, UNSUPPORTED])),
        nla(7, &words(&[0, UNSUPPORTED])),
        nla(5, &words(&[0, 9])),
    ]
    .concat();
    let found = read(&message(1, &[info])).unwrap();
    let expected = VfState {
        mac: Some([0; 6].into()),
        ..VfState::default()
    };
    assert_eq!(found, [expected]);
}

#[test]
fn vf_vlan_protocols_are_distinguished() {
    let vlan = |protocol: u16| {
        let info = [
            words(&[0, 7, 1]),
            protocol.to_be_bytes().to_vec(),
            vec![0; 2],
        ]
        .concat();
        let list = [nla(2, &words(&[0, 7, 1])), nla(12, &nla(1, &info))].concat();
        read(&message(1, &[list])).unwrap()[0]
            .vlan
            .unwrap()
            .to_string()
    };
    assert_eq!(vlan(0x88a8), "vlan 7 qos 1 proto 802.1ad");
    assert_eq!(vlan(0x8100), "vlan 7 qos 1");
}

#[test]
fn a_vf_guid_starts_at_offset_eight_of_its_attribute() {
    let info = [
        mac(3, &[0x80, 0, 0, 0x49, 0xfe, 0x80]),
        guid_attribute(10, 3, 0x1122_3344_5566_7788),
        guid_attribute(11, 3, 0x0200_0000_0000_003e),
    ]
    .concat();
    let found = read(&message(32, &[info])).unwrap();
    assert_eq!(found[0].index, 3);
    let texts = [found[0].node_guid, found[0].port_guid].map(|guid| guid.unwrap().to_string());
    assert_eq!(
        texts,
        ["11:22:33:44:55:66:77:88", "02:00:00:00:00:00:00:3e"]
    );
    assert_eq!(found[0].mac, None, "an IPoIB address is not a MAC address");
}

#[test]
fn vf_numbers_are_not_read_from_attributes_that_lack_them() {
    let info = [nla(13, &[0xff; 32]), mac(6, &[0; 6])].concat();
    assert_eq!(read(&message(1, &[info])).unwrap()[0].index, 6);
}

#[test]
fn vf_guids_that_are_too_short_are_unknown() {
    let info = [mac(0, &[0; 6]), nla(10, &[1; 12])].concat();
    assert_eq!(read(&message(32, &[info])).unwrap()[0].node_guid, None);
}

#[test]
fn a_pf_without_vf_attributes_has_no_vfs() {
    assert_eq!(read(&message(1, &[])).unwrap(), []);
    let mut bare = vec![0; 16];
    bare.extend(nla(3, b"eth0\0"));
    assert_eq!(read(&bare).unwrap(), []);
    assert!(read(&[0; 15]).is_err());
    let mut broken = message(1, &[igb(0)]);
    broken.truncate(broken.len() - 8);
    assert!(read(&broken).is_err(), "a truncated list");
}

fn all() -> [VfSetting; 10] {
    let guid: Guid = "02:00:00:00:00:00:00:3e".parse().unwrap();
    [
        VfSetting::Mac("02:11:22:33:44:55".parse().unwrap()),
        VfSetting::Vlan(VfVlan {
            id: 100,
            qos: 3,
            protocol: VlanProtocol::Customer,
        }),
        VfSetting::Vlan(VfVlan {
            id: 7,
            qos: 0,
            protocol: VlanProtocol::Service,
        }),
        VfSetting::SpoofCheck(false),
        VfSetting::Trust(true),
        VfSetting::RssQuery(true),
        VfSetting::LinkState(VfLinkState::Disable),
        VfSetting::Rates(VfRates { min: 10, max: 100 }),
        VfSetting::NodeGuid(guid),
        VfSetting::PortGuid(guid),
    ]
}

/// Writes each setting and reads the octets back.
#[test]
fn a_written_setting_reads_back_unchanged() {
    for setting in all() {
        let attribute = setting.attribute(4);
        let mut bytes = vec![0; attribute.buffer_len()];
        attribute.emit(&mut bytes);
        let arp_type = if matches!(setting, VfSetting::NodeGuid(_) | VfSetting::PortGuid(_)) {
            32_u16
        } else {
            1
        };
        let mut payload = vec![0; 16];
        payload[2..4].copy_from_slice(&arp_type.to_ne_bytes());
        payload.extend(bytes);
        let found = read(&payload).unwrap();
        assert_eq!(found.len(), 1, "{setting}");
        assert_eq!(found[0].index, 4, "{setting}");
        let all: Vec<VfSetting> = found[0].settings().collect();
        assert_eq!(all, [setting]);
        assert_eq!(found[0].of_kind(setting), Some(setting));
    }
}

#[test]
fn a_setting_is_written_in_the_syntax_of_ip_link() {
    let lines: Vec<String> = all().iter().map(ToString::to_string).collect();
    let expected = [
        "mac 02:11:22:33:44:55",
        "vlan 100 qos 3",
        "vlan 7 proto 802.1ad",
        "spoofchk off",
        "trust on",
        "query_rss on",
        "state disable",
        "min_tx_rate 10 max_tx_rate 100",
        "node_guid 02:00:00:00:00:00:00:3e",
        "port_guid 02:00:00:00:00:00:00:3e",
    ];
    assert_eq!(lines, expected);
}

/// `IFLA_VF_INFO` as Linux 6.12 wrote it: VF 0 of igb, configured with `ip link`.
const IGB: &str = "2800010000000000021122334455000000000000000000000000000000000000000000000000000024000d00\
    ffffffffffff0000000000000000000000000000000000000000000000000000100002000000000064000000\
    03000000100006000000000000000000000000000c00030000000000000000000c0004000000000000000000\
    0c00050000000000000000000c00070000000000ffffffff0c000900000000000100000018000c0014000100\
    00000000640000000300000081000000";

/// `IFLA_VF_INFO` for VF 1 of an IPoIB interface on a stub device.
const IPOIB: &str = "280001000100000080000101fe80000000000000024a46000001000100000000000000000000000024000d00\
    00ffffffff12401bffff000000000000ffffffff000000000000000000000000100002000100000000000000\
    00000000100006000100000000000000000000000c00030001000000000000000c0004000100000000000000\
    0c00050001000000000000000c00070001000000000000000c000900010000000000000014000a0001000000\
    00000000887766554433221114000b0001000000000000003e0000000000000218000c001400010001000000\
    000000000000000000000000";

fn octets(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().as_chunks::<2>().0.iter();
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn index_and_settings(arp_type: u16, hex: &str) -> Vec<String> {
    let found = read(&message(arp_type, &[octets(hex)])).unwrap();
    let number = format!("vf {}", found[0].index);
    let settings = found[0].settings().map(|setting| setting.to_string());
    std::iter::once(number).chain(settings).collect()
}

#[test]
#[cfg(target_endian = "little")]
fn vf_attributes_of_a_real_igb_are_read_as_ip_link_shows_them() {
    let expected = [
        "vf 0",
        "trust on",
        "mac 02:11:22:33:44:55",
        "vlan 100 qos 3",
        "spoofchk off",
        "state auto",
        "min_tx_rate 0 max_tx_rate 0",
    ];
    assert_eq!(index_and_settings(1, IGB), expected);
}

#[test]
#[cfg(target_endian = "little")]
fn a_real_kernel_puts_a_vf_guid_at_offset_eight() {
    let found = index_and_settings(32, IPOIB);
    let guids = [
        "node_guid 11:22:33:44:55:66:77:88",
        "port_guid 02:00:00:00:00:00:00:3e",
    ];
    assert_eq!(found[0], "vf 1");
    assert_eq!(found[found.len() - 2..], guids);
    // Octets 4 to 7 are padding. A parser that starts at octet 4 gets the padding and only half of
    // the GUID.
    let cut = octets(IPOIB)
        .windows(16)
        .any(|window| window[..4] == [1, 0, 0, 0] && window[4..8] == [0; 4] && window[8] == 0x88);
    assert!(cut, "no padding before the lowest octet of the GUID");
}
