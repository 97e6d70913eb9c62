use super::*;
use crate::kernel::{VfLinkState, VfRates, VfVlan};

const OWN: [u8; 6] = [0xda, 0x49, 0xc2, 0x64, 4, 0x38];
const PODS: [u8; 6] = [2, 0x11, 0x22, 0x33, 0x44, 0x55];

/// A VF of igb in its initial state.
fn fresh() -> DeviceState {
    DeviceState {
        device: "0000:01:10.0".parse().unwrap(),
        generation: Some(7),
        driver: Some("igbvf".to_owned()),
        netdev: Some(NetdevState {
            name: "eth2".to_owned(),
            address: OWN.to_vec(),
            mtu: 1500,
        }),
        physical: Some("0000:01:00.0".parse().unwrap()),
        function: Some(VfState {
            mac: Some([0; 6].into()),
            vlan: Some(VfVlan::default()),
            spoof_check: Some(true),
            trust: Some(false),
            link_state: Some(VfLinkState::Auto),
            rates: Some(VfRates::default()),
            ..VfState::default()
        }),
    }
}

fn with(change: impl FnOnce(&mut DeviceState)) -> DeviceState {
    let mut state = fresh();
    change(&mut state);
    state
}

fn function(change: impl FnOnce(&mut VfState)) -> DeviceState {
    with(|state| change(state.function.as_mut().unwrap()))
}

fn netdev(change: impl FnOnce(&mut NetdevState)) -> DeviceState {
    with(|state| change(state.netdev.as_mut().unwrap()))
}

fn repairs(before: &DeviceState, now: &DeviceState) -> Vec<String> {
    let comparison = compare(before, now);
    assert_eq!(comparison.other_driver, None);
    assert!(!comparison.lacks_interface);
    comparison.repairs.iter().map(Repair::to_string).collect()
}

#[test]
fn an_unchanged_device_needs_no_repair() {
    assert_eq!(compare(&fresh(), &fresh()), Comparison::default());
}

#[test]
fn an_admin_mac_that_equals_the_vfs_own_address_is_reset_to_zero() {
    let left = function(|vf| vf.mac = Some(OWN.into()));
    assert_eq!(repairs(&fresh(), &left), ["mac 00:00:00:00:00:00"]);
}

#[test]
fn changed_attributes_of_an_interface_are_restored() {
    let left = netdev(|link| {
        link.name = "net1".to_owned();
        link.address = PODS.to_vec();
        link.mtu = 9000;
    });
    let expected = [
        "name eth2",
        "hardware address da:49:c2:64:04:38",
        "MTU 1500",
    ];
    assert_eq!(repairs(&fresh(), &left), expected);
}

#[test]
fn every_setting_of_a_vf_is_restored_and_trust_comes_last() {
    let before = function(|vf| {
        vf.vlan = Some(VfVlan {
            id: 7,
            qos: 1,
            ..VfVlan::default()
        });
        vf.node_guid = Some([1; 8].into());
        vf.port_guid = Some([2; 8].into());
        vf.rss_query = Some(false);
    });
    let left = function(|vf| {
        *vf = VfState {
            index: 0,
            mac: Some(PODS.into()),
            vlan: Some(VfVlan::default()),
            spoof_check: Some(false),
            trust: Some(true),
            rss_query: Some(true),
            link_state: Some(VfLinkState::Enable),
            rates: Some(VfRates { min: 0, max: 100 }),
            node_guid: Some([3; 8].into()),
            port_guid: Some([3; 8].into()),
        };
    });
    let expected = [
        "mac 00:00:00:00:00:00",
        "vlan 7 qos 1",
        "spoofchk on",
        "query_rss off",
        "state auto",
        "min_tx_rate 0 max_tx_rate 0",
        "node_guid 01:01:01:01:01:01:01:01",
        "port_guid 02:02:02:02:02:02:02:02",
        "trust off",
    ];
    assert_eq!(repairs(&before, &left), expected);
}

#[test]
fn a_setting_that_the_driver_does_not_report_is_not_restored() {
    let silent = function(|vf| {
        *vf = VfState {
            index: 0,
            ..VfState::default()
        }
    });
    assert_eq!(repairs(&silent, &fresh()), [""; 0]);
    assert_eq!(repairs(&fresh(), &silent), [""; 0]);
    let without_pf = with(|state| state.function = None);
    assert_eq!(repairs(&fresh(), &without_pf), [""; 0]);
}

#[test]
fn the_settings_of_a_vf_without_an_interface_are_restored() {
    let vfio = |state: &mut DeviceState| {
        state.driver = Some("vfio-pci".to_owned());
        state.netdev = None;
    };
    let before = with(vfio);
    let left = {
        let mut left = function(|vf| vf.trust = Some(true));
        vfio(&mut left);
        left
    };
    assert_eq!(repairs(&before, &left), ["trust off"]);
}

#[test]
fn a_missing_interface_is_reported() {
    let left = with(|state| state.netdev = None);
    let comparison = compare(&fresh(), &left);
    assert!(comparison.lacks_interface && comparison.repairs.is_empty());
}

#[test]
fn a_changed_driver_is_reported_and_not_restored() {
    let left = {
        let mut left = function(|vf| vf.trust = Some(true));
        left.driver = Some("vfio-pci".to_owned());
        left.netdev = None;
        left
    };
    let comparison = compare(&fresh(), &left);
    assert_eq!(
        comparison.repairs,
        [Repair::Function(VfSetting::Trust(false))]
    );
    assert!(!comparison.lacks_interface);
    let remark = comparison.other_driver.unwrap();
    assert_eq!(
        remark.to_string(),
        "its driver is vfio-pci but was igbvf; restore the driver by hand, because Jackfield does \
         not"
    );
}

#[test]
fn a_recreated_vf_is_another_device() {
    let left = {
        let mut left = function(|vf| vf.trust = Some(true));
        left.generation = Some(8);
        left
    };
    let comparison = compare(&fresh(), &left);
    assert_eq!(comparison.repairs, []);
    assert_eq!(comparison.replacement, Some(Replacement::Recreated));
}

#[test]
fn an_interface_gets_its_address_while_its_function_is_trusted() {
    let left = |trust| {
        let mut left = netdev(|link| link.address = PODS.to_vec());
        left.function.as_mut().unwrap().trust = Some(trust);
        left
    };
    let address = "hardware address da:49:c2:64:04:38";
    assert_eq!(repairs(&fresh(), &left(true)), [address, "trust off"]);
    let trusted = function(|vf| vf.trust = Some(true));
    assert_eq!(repairs(&trusted, &left(false)), ["trust on", address]);
}

/// An IPoIB interface whose hardware address contains this queue pair number and this GUID.
fn ipoib(queue_pair: u8, guid: u8) -> DeviceState {
    let mut address = vec![0; 20];
    address[3] = queue_pair;
    address[19] = guid;
    netdev(|link| link.address = address)
}

#[test]
fn a_rebind_restores_the_guid_of_an_ipoib_interface() {
    assert_eq!(repairs(&ipoib(1, 1), &ipoib(2, 1)), [""; 0]);
    let guid = "GUID 00:00:00:00:00:00:00:01 of its interface";
    assert_eq!(repairs(&ipoib(1, 1), &ipoib(1, 2)), [guid]);
    // A call of Jackfield unbound the driver, and ended before it bound the driver again.
    let mut unbound = ipoib(1, 2);
    unbound.driver = None;
    unbound.netdev = None;
    assert_eq!(repairs(&ipoib(1, 1), &unbound), [guid]);
    let mut set = ipoib(1, 2);
    let vf = set.function.as_mut().unwrap();
    (vf.port_guid, vf.trust) = (Some([2; 8].into()), Some(true));
    let mut before = ipoib(1, 1);
    before.function.as_mut().unwrap().port_guid = Some([0; 8].into());
    let expected = ["port_guid 00:00:00:00:00:00:00:00", guid, "trust off"];
    assert_eq!(repairs(&before, &set), expected);
}

#[test]
fn a_repair_names_the_pod_identity_that_it_removes() {
    let identities = |before: &DeviceState, now: &DeviceState| -> Vec<PodIdentity> {
        let repairs = compare(before, now).repairs;
        let of = |repair: &Repair| repair.identity(before, now);
        repairs.iter().filter_map(of).collect()
    };
    let pods = function(|vf| {
        vf.mac = Some(PODS.into());
        vf.trust = Some(true);
        vf.vlan = Some(VfVlan {
            id: 100,
            ..VfVlan::default()
        });
    });
    assert_eq!(
        identities(&fresh(), &pods),
        [PodIdentity::Mac, PodIdentity::Vlan]
    );
    let own = function(|vf| vf.mac = Some(OWN.into()));
    assert_eq!(identities(&fresh(), &own), []);
    let link = netdev(|link| (link.name, link.address) = ("net1".to_owned(), PODS.to_vec()));
    assert_eq!(identities(&fresh(), &link), [PodIdentity::Mac]);
    assert_eq!(identities(&ipoib(1, 1), &ipoib(1, 2)), [PodIdentity::Guid]);
    let with_guid = |guid: u8| {
        let mut state = ipoib(1, 1);
        let vf = state.function.as_mut().unwrap();
        vf.port_guid = Some([0, 0, 0, 0, 0, 0, 0, guid].into());
        state
    };
    assert_eq!(
        identities(&with_guid(0), &with_guid(9)),
        [PodIdentity::Guid]
    );
    let own = with_guid(0).own_guid(VfSetting::PortGuid([0; 8].into()));
    assert_eq!(
        own,
        Some(VfSetting::PortGuid([0, 0, 0, 0, 0, 0, 0, 1].into()))
    );
    assert_eq!(
        identities(&with_guid(0), &with_guid(1)),
        [],
        "the GUID is the VF's own"
    );
    let of_vlan = function(|vf| {
        vf.vlan = Some(VfVlan {
            id: 7,
            ..VfVlan::default()
        })
    });
    assert_eq!(identities(&of_vlan, &fresh()), [], "the VF has no VLAN now");
}
